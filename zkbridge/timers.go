package zkbridge

import "time"

// timers are timers that end together with what they belong to: a timer that is set keeps all in
// memory that its function refers to. They belong to the actor.
type timers struct {
	post func(func()) // has the actor call a function
	set  map[*time.Timer]struct{}
}

func newTimers(post func(func())) timers { return timers{post, map[*time.Timer]struct{}{}} }

// after has the actor call f after d, unless stop or end is called before. stop may be called at
// any time.
func (s *timers) after(d time.Duration, f func()) (stop func()) {
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

// end stops all timers.
func (s *timers) end() {
	for timer := range s.set {
		timer.Stop()
	}
	clear(s.set)
}
