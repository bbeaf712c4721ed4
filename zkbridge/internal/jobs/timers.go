package jobs

import (
	"slices"
	"time"
)

// Timers are timers that end together with what they belong to: a timer that is set keeps all in
// memory that its function refers to. They belong to the actor.
//
// Timers that are due at one moment have their functions called in the order in which they were set: in
// virtual time, where many are, Go fires them in a random order.
type Timers struct {
	post  func(func()) // has the actor call a function
	began time.Time
	set   map[time.Duration][]*timer // by when they are due, after began
}

type timer struct {
	*time.Timer
	f func()
}

// NewTimers returns timers of the actor that post has call functions.
func NewTimers(post func(f func())) Timers {
	return Timers{post, time.Now(), map[time.Duration][]*timer{}}
}

// After has the actor call f after d, unless stop or End is called before. stop may be called at
// any time.
func (s *Timers) After(d time.Duration, f func()) (stop func()) {
	due := time.Since(s.began) + d
	t := &timer{f: f}
	t.Timer = time.AfterFunc(d, func() { s.post(func() { s.fire(due) }) })
	s.set[due] = append(s.set[due], t)
	return func() {
		t.Stop()
		s.remove(due, t)
	}
}

// fire calls the functions of the timers that are due at a moment. One of them may stop others, or set one
// for the same moment, which fires later.
func (s *Timers) fire(due time.Duration) {
	for n := len(s.set[due]); n > 0 && len(s.set[due]) > 0; n-- {
		first := s.set[due][0]
		s.remove(due, first)
		first.f()
	}
}

func (s *Timers) remove(due time.Duration, t *timer) {
	s.set[due] = slices.DeleteFunc(s.set[due], func(other *timer) bool { return other == t })
	if len(s.set[due]) == 0 {
		delete(s.set, due)
	}
}

// End stops all timers.
func (s *Timers) End() {
	for _, all := range s.set {
		for _, t := range all {
			t.Stop()
		}
	}
	clear(s.set)
}
