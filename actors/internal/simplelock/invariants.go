package simplelock

import "fmt"

// Check returns an error that names an invariant which does not hold, or nil. It is meant for
// tests.
func (s *Contender) Check() error {
	none := s.stage == free || s.stage == waiting
	switch {
	case none != (len(s.nodes) == 0):
		return fmt.Errorf("simplelock: nodes %q in stage %d", s.nodes, s.stage)
	case s.stage == holding && !s.wanted():
		return fmt.Errorf("simplelock: the lock is held for request %d", s.madeFor)
	case s.stage == listing && s.awaited == 0 && (!s.writes() || !s.shared || !s.wanted()):
		return fmt.Errorf("simplelock: request %d keeps the nodes %q", s.madeFor, s.nodes)
	case s.stage == waiting && (s.request == nil || s.request.Try):
		return fmt.Errorf("simplelock: nothing waits in stage %d", s.stage)
	case s.stage == free && s.awaited != 0:
		return fmt.Errorf("simplelock: an answer is awaited in stage %d", s.stage)
	case s.stage == free && s.request != nil && s.live:
		return fmt.Errorf("simplelock: request %d is forgotten", s.request.ID)
	}
	return nil
}
