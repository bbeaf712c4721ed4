package semaphore

import "fmt"

// Check returns an error that names an invariant which does not hold, or nil. It is meant for
// tests.
func (p *State) Check() error {
	if len(p.parties) == 0 && len(p.gates)+len(p.leases)+len(p.asked)+len(p.next)+len(p.owners)+p.used+p.tries+p.lacking != 0 {
		return fmt.Errorf("nothing is wanted, and %+v is left", *p)
	}
	return nil
}
