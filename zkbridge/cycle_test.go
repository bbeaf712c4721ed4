package zkbridge

import (
	"slices"
	"testing"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

func TestFlow(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		b := connected(t, Config{Servers: s.Addr()})
		u, dir := newUser(t, b), s.Path(t)+"/below/deep"

		if names := u.list(dir); len(names) != 0 {
			t.Errorf("missing directory lists %v", names)
		}
		first := u.created(dir, "first-")
		if first.GetNode() != "first-0000000000" || first.GetStep() != 0 {
			t.Errorf("first create: %v", first)
		}
		second := u.created(dir, "second-")
		if second.GetNode() != "second-0000000001" || second.GetDirectoryCzxid() != first.GetDirectoryCzxid() || second.GetCzxid() <= first.GetCzxid() {
			t.Errorf("second create after %v: %v", first, second)
		}
		_, stat, err := s.Client(t).Get(dir + "/" + second.GetNode())
		if err != nil || stat.Czxid != second.GetCzxid() || stat.EphemeralOwner != b.Session().ID {
			t.Errorf("node is %+v, %v; answered %v in session %#x", stat, err, second, b.Session().ID)
		}
		names := u.list(dir)
		slices.Sort(names)
		if !slices.Equal(names, []string{first.GetNode(), second.GetNode()}) {
			t.Errorf("listed %v", names)
		}

		watched := u.watch(dir, first.GetNode(), "absent")
		if !slices.Equal(watched.GetGone(), []string{"absent"}) {
			t.Errorf("gone: %v", watched.GetGone())
		}
		id := u.release(dir, first.GetNode())
		wake := next[*messages.Wake](u)
		if !wake.GetDeleted() || wake.GetNode() != first.GetNode() || wake.GetDirectory() != dir {
			t.Errorf("wake: %v", wake)
		}
		if m := next[*messages.NodeReleased](u); m.GetId() != id {
			t.Errorf("released %v, not %d", m, id)
		}
		u.release(dir, first.GetNode()) // which is deleted already
		next[*messages.NodeReleased](u)
		if names := s.Nodes(t, dir); !slices.Equal(names, []string{second.GetNode()}) {
			t.Errorf("left: %v", names)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if names := s.Nodes(t, dir); len(names) != 0 {
			t.Errorf("left after Close: %v", names)
		}
	})
}
