package simplelock

import "fmt"

// Check returns an error that names an invariant which does not hold, or nil. It is meant for
// tests.
func (s *Contender) Check() error {
	nodes := len(s.Nodes()) > 0
	switch s.stage {
	case free, watching, waiting:
		if nodes {
			return fmt.Errorf("simplelock: nodes %q in stage %d", s.Nodes(), s.stage)
		}
	default:
		if !nodes {
			return fmt.Errorf("simplelock: no node in stage %d", s.stage)
		}
	}
	switch {
	case s.stage == holding && (!s.wanted() || s.awaited != 0):
		return fmt.Errorf("simplelock: the lock is held for request %d by %d", s.madeFor, s.awaited)
	case s.stage == awaitingReaders && (!s.hasLockNode || !s.shared || !s.wanted()):
		return fmt.Errorf("simplelock: request %d keeps the lock node: %v", s.madeFor, s.hasLockNode)
	case (s.stage == watching || s.stage == waiting) && (s.request == nil || s.request.try):
		return fmt.Errorf("simplelock: nothing waits in stage %d", s.stage)
	case (s.stage == free || s.stage == waiting) && s.awaited != 0:
		return fmt.Errorf("simplelock: an answer is awaited in stage %d", s.stage)
	case s.stage == free && s.request != nil && s.live:
		return fmt.Errorf("simplelock: request %d is forgotten", s.request.id)
	}
	return nil
}
