package localqueue

import (
	"fmt"
	"slices"

	"github.com/actorlock/actorlock/actors/queue"
)

// Check returns an error that names an invariant which does not hold, or nil. It is meant for
// tests.
func (l *Queue) Check() error {
	waiting, holding := l.rule.NewCensus(), l.rule.NewCensus()
	tries, open := 0, 0
	for b := range l.waiting.All() {
		waiting[b.kind]++
		open += len(b.requests)
		for _, r := range b.requests {
			if r.try {
				tries++
			}
		}
		if b.stage != queued || len(b.requests) == 0 {
			return fmt.Errorf("localqueue: an owner of kind %d waits in stage %d with %d requests", b.kind, b.stage, len(b.requests))
		}
	}
	for b := range l.holders.All() {
		holding[b.kind]++
		open += len(b.requests)
		enters := slices.ContainsFunc(b.requests, func(r ownerRequest) bool { return r.enters })
		if b.stage != held || len(b.requests) == 0 || enters && l.hold.second.stage != creating {
			return fmt.Errorf("localqueue: an owner of kind %d holds in stage %d with %d requests", b.kind, b.stage, len(b.requests))
		}
	}
	for id, b := range l.requests.All() {
		if !slices.ContainsFunc(b.requests, func(r ownerRequest) bool { return r.id == id }) {
			return fmt.Errorf("localqueue: request %d is not one of its owner's", id)
		}
	}
	for owner, b := range l.owners {
		if b.owner != owner || len(b.requests) == 0 {
			return fmt.Errorf("localqueue: owner %q is known as %q", owner, b.owner)
		}
	}
	switch first, second := l.hold.node.stage, l.hold.second.stage; {
	case !slices.Equal(waiting, l.waiting.kinds) || !slices.Equal(holding, l.holders.kinds) || tries != l.tries:
		return fmt.Errorf("localqueue: %v wait, %v hold and %d are tries; counted are %v, %v and %d", waiting, holding, tries, l.waiting.kinds, l.holders.kinds, l.tries)
	case open != l.requests.Len():
		return fmt.Errorf("localqueue: %d requests are open, and the owners have %d", l.requests.Len(), open)
	case !l.holders.empty() && first != held, second != unsent && first != held:
		return fmt.Errorf("localqueue: %v hold, by nodes in stages %d and %d", holding, first, second)
	case l.holders.kinds.Count(l.rule.BlockedBy[queue.Exclusive]) > 0 && holding[queue.Exclusive] > 1:
		return fmt.Errorf("localqueue: %v hold", holding)
	case first == unsent && !l.waiting.empty():
		return fmt.Errorf("localqueue: an owner waits, and no node is asked for")
	}
	return nil
}
