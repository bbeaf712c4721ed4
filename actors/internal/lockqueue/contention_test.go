package lockqueue

import (
	"fmt"
	"slices"
	"testing"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// A holder that wants to know of contention is among many readers of other processes. That one of
// them comes or goes does not have the directory listed at once, but the next Tick does.
func TestContentionAmongMany(t *testing.T) {
	for _, many := range []int{maxAtOnce - 1, maxAtOnce} {
		s := newState(queue.ReadWrite(), Incarnation{})
		lists := func(effects []Effect) (lists []Effect) {
			for _, e := range effects {
				if e.Kind == requests.ListDirectory {
					lists = append(lists, e)
				}
			}
			return lists
		}
		Step(s, Session{Epoch: 1, State: Connected})
		create := Step(s, Acquire{ID: 1, Kind: queue.Shared, NotifyContended: true})[0]
		children := []string{create.Node + "0000000000"}
		for i := range many {
			children = append(children, fmt.Sprintf("other-__READ__%010d", i+1))
		}
		effects := lists(Step(s, Created{Serial: create.Serial, Node: children[0], Token: requests.Token{Czxid: 7}, DirectoryCzxid: 1, Children: children}))
		if len(effects) != 1 || !effects[0].Watch {
			t.Fatalf("after the grant: %+v", effects)
		}
		Step(s, Listed{Serial: effects[0].Serial, DirectoryCzxid: 1, Children: children})
		effects = lists(Step(s, Wake{Epoch: 1}))
		if atOnce := len(effects) == 1; atOnce != (many < maxAtOnce) {
			t.Fatalf("beside %d: %+v", many, effects)
		}
		if len(effects) == 0 {
			effects = lists(Step(s, Tick{}))
		}
		if len(effects) != 1 || !effects[0].Watch {
			t.Fatalf("beside %d, at the Tick: %+v", many, effects)
		}
		contended := Step(s, Listed{Serial: effects[0].Serial, DirectoryCzxid: 1, Children: append(children, "other-__WRIT__0000000099")})
		if !slices.ContainsFunc(contended, func(e Effect) bool { return e.Kind == requests.NotifyContended && e.ID == 1 }) {
			t.Fatalf("a writer waits beside %d: %+v", many, contended)
		}
	}
}
