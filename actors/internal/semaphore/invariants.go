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
	for id, q := range p.requests {
		lacking += q.missing
		leases += len(q.leases) - q.missing
		if !q.released {
			used += q.Permits
			owners[q.Owner] += q.Permits
		}
		asks := slices.Contains(p.asked, q)
		switch {
		case q.ID != id:
			return fmt.Errorf("semaphore: request %d is known as %d", q.ID, id)
		case q.held && (q.passedQueue || q.missing > 0 || q.queueSerial != 0 || len(q.leases) != q.Permits):
			return fmt.Errorf("semaphore: request %d holds %d leases and lacks %d of %d", id, len(q.leases), q.missing, q.Permits)
		case !q.held && (q.queueSerial == 0 || p.queued[q.queueSerial] != q):
			return fmt.Errorf("semaphore: request %d has left the request queue and holds nothing", id)
		case asks != (q.passedQueue && len(q.leases) > 0) && !q.MultiLock, asks && q.MultiLock:
			return fmt.Errorf("semaphore: request %d has %d leases, and asks: %v", id, len(q.leases), asks)
		case slices.Contains(p.next, q) != (q.passedQueue && len(q.leases) == 0) && !q.MultiLock:
			return fmt.Errorf("semaphore: request %d has %d leases, and is not next", id, len(q.leases))
		case q.released != (q.releasing > 0):
			return fmt.Errorf("semaphore: request %d is released: %v, and %d leases are to go", id, q.released, q.releasing)
		}
	}
	for _, q := range p.next {
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
	case len(p.requests) == 0 && len(p.queued)+len(p.leases)+len(p.asked)+len(p.next) > 0:
		return fmt.Errorf("semaphore: nothing is wanted, and %+v is left", *p)
	}
	return nil
}
