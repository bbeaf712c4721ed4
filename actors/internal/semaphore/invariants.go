package semaphore

import (
	"fmt"
	"slices"

	"github.com/actorlock/actorlock/actors/internal/requests"
)

// Check returns an error that names an invariant which does not hold, or nil. It is meant for
// tests.
func (p *State) Check() error {
	used, tries, lacking := 0, 0, 0
	owners := map[string]int{}
	inAsked, inNext := slices.Collect(p.asked.All()), slices.Collect(p.next.All())
	for id, q := range p.requests.All() {
		stage, asked := q.leases.Stage(), len(q.leaseIDs)
		held := stage == requests.Held || stage == requests.Releasing
		lacking += q.leases.Missing()
		if stage != requests.Releasing {
			used += q.Permits
			owners[q.Owner] += q.Permits
		}
		if err := q.leases.Check(); err != nil {
			return fmt.Errorf("semaphore: request %d: %w", id, err)
		}
		asks := slices.Contains(inAsked, q)
		switch {
		case q.ID != id:
			return fmt.Errorf("semaphore: request %d is known as %d", q.ID, id)
		case asked != 0 && asked != q.Permits, held && (q.passedQueue || q.queueID != 0):
			return fmt.Errorf("semaphore: request %d has %d leases of %d, in stage %d", id, asked, q.Permits, stage)
		case !held && p.below.At(q.queueID) != q:
			return fmt.Errorf("semaphore: request %d has left the request queue and holds nothing", id)
		case asks != (stage == requests.Acquiring) && !q.Atomic, asks && q.Atomic:
			return fmt.Errorf("semaphore: request %d has %d leases, and asks: %v", id, asked, asks)
		case slices.Contains(inNext, q) != (q.passedQueue && asked == 0) && !q.Atomic:
			return fmt.Errorf("semaphore: request %d has %d leases, and is not next", id, asked)
		}
	}
	for _, q := range inNext {
		if q.Try {
			tries++
		}
	}
	delete(owners, "")
	switch {
	case used != p.used || tries != p.tries || lacking != p.missing:
		return fmt.Errorf("semaphore: %d permits, %d tries and %d leases are counted as %d, %d and %d", used, tries, lacking, p.used, p.tries, p.missing)
	case fmt.Sprint(owners) != fmt.Sprint(p.owners):
		return fmt.Errorf("semaphore: owners %v are counted as %v", owners, p.owners)
	case p.requests.Len() == 0 && len(inAsked)+len(inNext) > 0:
		return fmt.Errorf("semaphore: nothing is wanted, and %+v is left", *p)
	}
	return nil
}
