package semaphore

import (
	"fmt"
	"slices"
)

// Check returns an error that names an invariant which does not hold, or nil. It is meant for
// tests.
func (p *State) Check() error {
	used, tries, lacking, leases := 0, 0, 0, 0
	owners := map[string]int{}
	for id, q := range p.parties {
		lacking += q.lacks
		leases += len(q.leases) - q.lacks
		if !q.released {
			used += q.Permits
			owners[q.Owner] += q.Permits
		}
		asks := slices.Contains(p.asked, q)
		switch {
		case q.ID != id:
			return fmt.Errorf("semaphore: request %d is known as %d", q.ID, id)
		case q.held && (q.past || q.lacks > 0 || q.gate != 0 || len(q.leases) != q.Permits):
			return fmt.Errorf("semaphore: request %d holds %d leases and lacks %d of %d", id, len(q.leases), q.lacks, q.Permits)
		case !q.held && (q.gate == 0 || p.gates[q.gate] != q):
			return fmt.Errorf("semaphore: request %d has left the request queue and holds nothing", id)
		case asks != (q.past && len(q.leases) > 0) && !q.MultiLock, asks && q.MultiLock:
			return fmt.Errorf("semaphore: request %d has %d leases, and asks: %v", id, len(q.leases), asks)
		case slices.Contains(p.next, q) != (q.past && len(q.leases) == 0) && !q.MultiLock:
			return fmt.Errorf("semaphore: request %d has %d leases, and is not next", id, len(q.leases))
		case q.released != (q.returns > 0):
			return fmt.Errorf("semaphore: request %d is released: %v, and %d leases are to go", id, q.released, q.returns)
		}
	}
	for _, q := range p.next {
		if q.Try {
			tries++
		}
	}
	delete(owners, "")
	switch {
	case used != p.used || tries != p.tries || lacking != p.lacking:
		return fmt.Errorf("semaphore: %d permits, %d tries and %d leases are counted as %d, %d and %d", used, tries, lacking, p.used, p.tries, p.lacking)
	case fmt.Sprint(owners) != fmt.Sprint(p.owners):
		return fmt.Errorf("semaphore: owners %v are counted as %v", owners, p.owners)
	case len(p.parties) == 0 && len(p.gates)+len(p.leases)+len(p.asked)+len(p.next) > 0:
		return fmt.Errorf("semaphore: nothing is wanted, and %+v is left", *p)
	}
	return nil
}
