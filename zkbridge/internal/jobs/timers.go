package jobs

import "time"

// Timers are timers that end together with what they belong to: a timer that is set keeps all in
// memory that its function refers to. They belong to the actor.
type Timers struct {
	post func(func()) // has the actor call a function
	set  map[*time.Timer]struct{}
}

// NewTimers returns timers of the actor that post has call functions.
func NewTimers(post func(f func())) Timers { return Timers{post, map[*time.Timer]struct{}{}} }

// After has the actor call f after d, unless stop or End is called before. stop may be called at
// any time.
func (s *Timers) After(d time.Duration, f func()) (stop func()) {
	var timer *time.Timer
	timer = time.AfterFunc(d, func() {
		s.post(func() {
			if _, set := s.set[timer]; set {
				delete(s.set, timer)
				f()
			}
		})
	})
	s.set[timer] = struct{}{}
	return func() {
		timer.Stop()
		delete(s.set, timer)
	}
}

// End stops all timers.
func (s *Timers) End() {
	for timer := range s.set {
		timer.Stop()
	}
	clear(s.set)
}
