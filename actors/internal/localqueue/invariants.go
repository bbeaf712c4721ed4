package localqueue

import (
	"fmt"
	"slices"

	"github.com/actorlock/actorlock/actors/queue"
)

// Check returns an error that names an invariant which does not hold, or nil. It is meant for
// tests.
func (l *Queue) Check() error {
	waiting, holding := newCensus(l.rule), newCensus(l.rule)
	tries, open := 0, 0
	count := func(b *localOwner) {
		open += len(b.requests)
		for _, r := range b.requests {
			if r.try {
				tries++
			}
		}
	}
	for b := l.waiting.first; b != nil; b = b.next {
		waiting[b.kind]++
		count(b)
		if b.stage != queued || len(b.requests) == 0 || b.next == nil && l.waiting.last != b || b.next != nil && b.next.prev != b {
			return fmt.Errorf("localqueue: a borrower of kind %d waits in stage %d with %d requests", b.kind, b.stage, len(b.requests))
		}
	}
	for i, b := range l.holders {
		holding[b.kind]++
		count(b)
		enters := slices.ContainsFunc(b.requests, func(r ownerRequest) bool { return r.enters })
		if b.stage != held || b.index != i || len(b.requests) == 0 || enters && l.hold.beside.stage != creating {
			return fmt.Errorf("localqueue: a borrower of kind %d holds in stage %d with %d requests at %d", b.kind, b.stage, len(b.requests), b.index)
		}
	}
	for id, b := range l.requests.All() {
		if !slices.ContainsFunc(b.requests, func(r ownerRequest) bool { return r.id == id }) {
			return fmt.Errorf("localqueue: request %d is not one of its borrower's", id)
		}
	}
	for owner, b := range l.owners {
		if b.owner != owner || len(b.requests) == 0 {
			return fmt.Errorf("localqueue: owner %q has the borrower of %q", owner, b.owner)
		}
	}
	switch first, beside := l.hold.node.stage, l.hold.beside.stage; {
	case !slices.Equal(waiting, l.waiting.kinds) || !slices.Equal(holding, l.holding) || tries != l.tries:
		return fmt.Errorf("localqueue: %v wait, %v hold and %d are tries; counted are %v, %v and %d", waiting, holding, tries, l.waiting.kinds, l.holding, l.tries)
	case open != l.requests.Len():
		return fmt.Errorf("localqueue: %d requests are open, and borrowers have %d", l.requests.Len(), open)
	case len(l.holders) > 0 && first != held, beside != unsent && first != held:
		return fmt.Errorf("localqueue: %d hold, by nodes in stages %d and %d", len(l.holders), first, beside)
	case l.holding.has(l.rule.BlockedBy[queue.Exclusive]) && holding[queue.Exclusive] > 1:
		return fmt.Errorf("localqueue: %v hold", holding)
	case first == unsent && l.waiting.first != nil:
		return fmt.Errorf("localqueue: a borrower waits, and no node is asked for")
	}
	return nil
}
