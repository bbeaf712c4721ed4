package embedded_test

import (
	"testing"

	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// A follower that has missed a deletion shows the node, and other servers do not.
func TestHaunt(t *testing.T) {
	inBubble(t, func(t *testing.T, s *embedded.Server) {
		bad, good := connectAt(t, s, "bad:1", nil), connectAt(t, s, "good:1", nil)
		s.Haunt("bad:1", "/none")
		good.answer(sendCreate(good, "/x"))
		s.Haunt("bad:1", "/x")
		bad.call(embedded.OpExists, "/x", true)
		want(t, "deleted", good.call(embedded.OpDelete, "/x", -1).err, 0)
		for name, c := range map[string]*rawClient{"bad": bad, "good": good} {
			want(t, name+": exists", c.call(embedded.OpExists, "/x", false).err == 0, name == "bad")
			children := unpack{t: t, b: c.call(embedded.OpGetChildren, "/", false).body}
			want(t, name+": children", children.int(), map[string]int{"bad": 2, "good": 1}[name])
			want(t, name+": delete", c.call(embedded.OpDelete, "/x", -1).err, -101)
		}
		want(t, "events", len(bad.takeEvents()), 0)
	})
}
