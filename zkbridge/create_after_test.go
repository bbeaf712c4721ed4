package zkbridge

import (
	"fmt"
	"testing"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// createAfter asks for a node, and for the names behind its creation unless one transaction
// deletes the node after.
func (u *user) createAfter(directory, prefix, after string) {
	u.bridge.Ref().SendCreate(&messages.Create{Id: u.id(), Epoch: u.epoch(), Directory: directory, Prefix: prefix, ListAfter: true, After: after}, u)
}

// The bridge does not read a directory if the transaction itself shows that it is the directory of a
// node of this process. In all other cases the bridge reads it.
func TestAfter(t *testing.T) {
	for _, c := range []struct {
		name string
		send func(s *zktest.Server, u *user, dir, beside, former string) // former is a node of both directories
		same bool
		want string // messages by type: 12 list, 14 transaction
	}{
		{"deleted before", func(s *zktest.Server, u *user, dir, beside, former string) {
			u.release(dir, former)
			u.createAfter(dir, "n-", former)
		}, true, "map[14:1]"},
		{"deleted before others", func(s *zktest.Server, u *user, dir, beside, former string) {
			u.release(dir, former)
			u.release(beside, former)
			u.createAfter(dir, "n-", former)
		}, true, "map[14:1]"},
		{"sent again after a failure", func(s *zktest.Server, u *user, dir, beside, former string) {
			u.release(dir, former)
			u.release(dir, "missing")
			u.createAfter(dir, "n-", former)
		}, true, "map[14:2]"},
		{"deleted behind", func(s *zktest.Server, u *user, dir, beside, former string) {
			u.createAfter(dir, "n-", former)
			u.release(dir, former)
		}, false, "map[12:1 14:1]"},
		{"a node of that name deleted beside", func(s *zktest.Server, u *user, dir, beside, former string) {
			u.release(beside, former)
			u.createAfter(dir, "n-", former)
		}, false, "map[12:1 14:1]"},
		{"gone before", func(s *zktest.Server, u *user, dir, beside, former string) {
			must(u.t, s.Client(u.t).Delete(dir+"/"+former, -1))
			u.release(dir, former)
			u.createAfter(dir, "n-", former)
		}, false, "map[12:1 14:2]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			zktest.Each(t, func(t *testing.T, s *zktest.Server) {
				var count counter
				u, dir := newUser(t, connected(t, Config{Servers: s.Addr(), Dial: count.dial})), s.Path(t)+"-0"
				beside := s.Path(t) + "-1" // as long
				former := u.created(dir, "n-").GetNode()
				if other := u.created(beside, "n-").GetNode(); other != former {
					t.Fatalf("%s is beside %s", other, former)
				}
				u.settled()
				count.take()
				u.together(func() { c.send(s, u, dir, beside, former) })
				m := next[*messages.Created](t, u.peer)
				if m.GetSameDirectory() != c.same || (m.GetDirectoryCzxid() == 0) != c.same || (len(m.GetChildren()) == 0) != c.same {
					t.Errorf("%v", m)
				}
				if got := fmt.Sprint(count.take()); got != c.want {
					t.Errorf("took %v, not %v", got, c.want)
				}
			})
		})
	}
}
