package embedded_test

import (
	"testing"
	"time"

	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// A follower that has missed a deletion shows the node, and the rest of the world does not.
func TestHaunt(t *testing.T) {
	inBubble(t, func(t *testing.T, s *embedded.Server) {
		dial := func(address string) *raw {
			nc, err := s.Dial(t.Context(), "", address)
			if err != nil {
				t.Fatal(err)
			}
			c := rawOn(t, nc)
			want(t, "session", c.attach(40*time.Second, 0, make([]byte, 16), 0), true)
			return c
		}
		bad, good := dial("bad:1"), dial("good:1")
		s.Haunt("bad:1", "/none")
		good.answer(create(good, "/x"))
		s.Haunt("bad:1", "/x")
		bad.call(embedded.OpExists, "/x", true)
		want(t, "deleted", good.call(embedded.OpDelete, "/x", -1).err, 0)
		for name, c := range map[string]*raw{"bad": bad, "good": good} {
			want(t, name+": exists", c.call(embedded.OpExists, "/x", false).err == 0, name == "bad")
			children := unpack{t: t, b: c.call(embedded.OpGetChildren, "/", false).body}
			want(t, name+": children", children.int(), map[string]int{"bad": 2, "good": 1}[name])
			want(t, name+": delete", c.call(embedded.OpDelete, "/x", -1).err, -101)
		}
		want(t, "events", len(bad.takeEvents()), 0)
	})
}
