package remote

import (
	"cmp"
	"maps"
	"slices"

	"github.com/actorlock/actorlock/gen/ask"
)

// subscribers hear of the state of a session, in the order in which they came.
type subscribers struct {
	order map[ask.Recipient]uint64
	last  uint64
}

func (s *subscribers) add(r ask.Recipient) {
	if s.order[r] == 0 {
		s.last++
		s.order[r] = s.last
	}
}

func (s *subscribers) tell(msg any) {
	byOrder := func(a, b ask.Recipient) int { return cmp.Compare(s.order[a], s.order[b]) }
	for _, r := range slices.SortedFunc(maps.Keys(s.order), byOrder) {
		r.Tell(msg)
	}
}
