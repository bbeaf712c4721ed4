package zkbridge

import (
	"math"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// replaced releases a node and creates another in one transaction, which writes another
// directory: this one may be spared.
func (u *user) replaced(t *testing.T, dir, node, prefix string) *messages.Created {
	t.Helper()
	elsewhere := dir + "-elsewhere"
	u.created(elsewhere, "first-")
	var id uint64
	u.together(func() {
		u.create(elsewhere, "second-")
		u.release(dir, node)
		id = u.create(dir, prefix)
	})
	m := next[*messages.Created](t, u.peer)
	if m.GetId() != id {
		m = next[*messages.Created](t, u.peer)
	}
	next[*messages.NodeReleased](t, u.peer)
	return m
}

// Of two that were made together neither was alone, though there were no others.
func TestNotSparedAfterTwo(t *testing.T) {
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		u, dir := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t)
		u.release(dir, u.created(dir, "first-").GetNode())
		next[*messages.NodeReleased](t, u.peer)
		u.together(func() {
			u.create(dir, "one-")
			u.create(dir, "two-")
		})
		next[*messages.Created](t, u.peer)
		two := next[*messages.Created](t, u.peer)
		if m := u.replaced(t, dir, two.GetNode(), "three-"); m.GetOthers() != 1 {
			t.Errorf("%v, but there is one-", m)
		}
	})
}

// A node that is not the one made last, but has the same number in a later directory of
// the same path, is not taken for it.
func TestNotSparedAfterNamesake(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	u, dir, conn := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t), s.Client(t)
	u.release(dir, u.created(dir, "zero-").GetNode())
	next[*messages.NodeReleased](t, u.peer)
	one := u.created(dir, "one-")
	must(t, conn.Delete(dir+"/"+one.GetNode(), -1))
	must(t, conn.Delete(dir, -1))
	_, err := conn.Create(dir, nil, 0, zk.WorldACL(zk.PermAll))
	must(t, err)
	_, err = conn.Create(dir+"/other", nil, 0, zk.WorldACL(zk.PermAll))
	must(t, err)
	// The bridge learns of this one by a look at what is there.
	fault := s.Embedded().Inject(embedded.Fault{Op: embedded.OpMulti, Session: u.bridge.Session().ID, Action: embedded.DropReply})
	anew := u.created(dir, "anew-")
	fired(t, fault)
	m := u.replaced(t, dir, anew.GetNode(), "two-")
	if m.GetOthers() != 1 || m.GetDirectoryCzxid() != anew.GetDirectoryCzxid() {
		t.Errorf("after %v and %v comes %v, but there is another", one, anew, m)
	}
}

// The greatest number is given again and again, and proves nothing.
func TestNotSparedAtTheEnd(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	u, dir, conn := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t), s.Client(t)
	u.release(dir, u.created(dir, "first-").GetNode())
	next[*messages.NodeReleased](t, u.peer)
	s.SetCreateCount(t, dir, math.MaxInt32-1)
	former := u.created(dir, "former-")
	_, err := conn.Create(dir+"/other-", nil, zk.FlagSequence, zk.WorldACL(zk.PermAll))
	must(t, err)
	if m := u.replaced(t, dir, former.GetNode(), "new-"); m.GetOthers() == 0 {
		t.Errorf("after %v comes %v, but there is another", former, m)
	}
}
