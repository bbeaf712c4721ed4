package simplelock

import "fmt"

// Check returns an error that names an invariant which does not hold, or nil. It is meant for
// tests.
func (s *Contender) Check() error {
	nodes := len(s.Nodes()) > 0
	switch s.stage {
	case simpleFree, simpleWatching, simpleWaiting:
		if nodes {
			return fmt.Errorf("simplelock: nodes %q in stage %d", s.Nodes(), s.stage)
		}
	default:
		if !nodes {
			return fmt.Errorf("simplelock: no node in stage %d", s.stage)
		}
	}
	switch {
	case s.stage == simpleHolding && (!s.wanted() || s.asked != 0):
		return fmt.Errorf("simplelock: the lock is held for request %d by %d", s.by, s.asked)
	case s.stage == simpleStaying && (!s.gated || !s.shared || !s.wanted()):
		return fmt.Errorf("simplelock: request %d keeps the lock node: %v", s.by, s.gated)
	case (s.stage == simpleWatching || s.stage == simpleWaiting) && (s.wish == nil || s.wish.try):
		return fmt.Errorf("simplelock: nothing waits in stage %d", s.stage)
	case (s.stage == simpleFree || s.stage == simpleWaiting) && s.asked != 0:
		return fmt.Errorf("simplelock: an answer is awaited in stage %d", s.stage)
	case s.stage == simpleFree && s.wish != nil && s.live:
		return fmt.Errorf("simplelock: request %d is forgotten", s.wish.id)
	}
	return nil
}
