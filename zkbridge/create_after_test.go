package zkbridge

import (
	"fmt"
	"testing"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// createAfter creates a node, and asks for the names in the directory unless one transaction
// deletes the node after.
func (u *user) createAfter(directory, prefix, after string) {
	u.sendCreate(&messages.Create{Directory: directory, Prefix: prefix, ListAfter: true, After: after})
}

// The bridge does not read a directory if the transaction itself shows that it is the directory of
// a node of this process. In all other cases the bridge reads it.
func TestCreateAfter(t *testing.T) {
	for _, c := range []struct {
		name string
		send func(s *zktest.Server, u *user, dir, otherDir, former string) // former is a node of both directories
		same bool
		want string // requests by type
	}{
		{"deleted before", func(s *zktest.Server, u *user, dir, otherDir, former string) {
			u.release(dir, former)
			u.createAfter(dir, "n-", former)
		}, true, "map[multi:1]"},
		{"deleted before others", func(s *zktest.Server, u *user, dir, otherDir, former string) {
			u.release(dir, former)
			u.release(otherDir, former)
			u.createAfter(dir, "n-", former)
		}, true, "map[multi:1]"},
		{"sent again after a failure", func(s *zktest.Server, u *user, dir, otherDir, former string) {
			u.release(dir, former)
			u.release(dir, "missing")
			u.createAfter(dir, "n-", former)
		}, true, "map[multi:2]"},
		{"deleted after the create", func(s *zktest.Server, u *user, dir, otherDir, former string) {
			u.createAfter(dir, "n-", former)
			u.release(dir, former)
		}, false, "map[getChildren2:1 multi:1]"},
		{"node of that name deleted in the other directory", func(s *zktest.Server, u *user, dir, otherDir, former string) {
			u.release(otherDir, former)
			u.createAfter(dir, "n-", former)
		}, false, "map[getChildren2:1 multi:1]"},
		{"deleted by another client before", func(s *zktest.Server, u *user, dir, otherDir, former string) {
			must(u.t, s.Client(u.t).Delete(dir+"/"+former, -1))
			u.release(dir, former)
			u.createAfter(dir, "n-", former)
		}, false, "map[getChildren2:1 multi:2]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			zktest.Each(t, func(t *testing.T, s *zktest.Server) {
				var d testDialer
				u, dir := newUser(t, connected(t, Config{Servers: s.Addr(), Dial: d.Dial})), s.Path(t)+"-0"
				otherDir := s.Path(t) + "-1" // of the same length
				former := u.created(dir, "n-").GetNode()
				if other := u.created(otherDir, "n-").GetNode(); other != former {
					t.Fatalf("the directories have %s and %s", former, other)
				}
				u.created(dir, "n-") // so that the directory does not become empty, and is not deleted
				u.flush()
				d.take()
				u.batch(func() { c.send(s, u, dir, otherDir, former) })
				m := next[*messages.Created](u)
				if m.GetSameDirectory() != c.same || (m.GetDirectoryCzxid() == 0) != c.same || (len(m.GetChildren()) == 0) != c.same {
					t.Errorf("%v", m)
				}
				if got := fmt.Sprint(d.take()); got != c.want {
					t.Errorf("took %v, not %v", got, c.want)
				}
			})
		})
	}
}
