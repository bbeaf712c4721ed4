// Package stack runs a state machine on top of others, whose requests are the machine's: a local
// queue on the queue of a directory, or a semaphore on those of two. It is as pure as they are. The
// machine on top makes requests of those below; news is what comes back, a grant, a refusal or a loss.
package stack

import (
	"github.com/actorlock/actorlock/actors/internal/invariants"
	"github.com/actorlock/actorlock/actors/internal/requests"
)

// Machine is a state machine that makes requests of others.
type Machine interface {
	// Acquire takes in an owner's request.
	Acquire(requests.Incoming)
	// Cancel withdraws an owner's request, because of why. It releases a grant, too.
	Cancel(id requests.ID, why requests.Reason)
	// Release releases an owner's grant.
	Release(id requests.ID)
	// Answered takes in an effect of a machine below: news of a request there. It ignores news of a
	// withdrawn request.
	Answered(requests.Effect)
	// Effects returns what is to be done since the last call, in order. The slice is valid until the
	// next call of another method.
	Effects() []requests.Effect
	// Idle reports whether no request is open, here and below.
	Idle() bool
	// ReleaseMemory frees what is not in use.
	ReleaseMemory()
	// Check returns an error that names an invariant which does not hold, or nil.
	Check() error
}

// Stack is a Machine and what is under way between it and the machines below. That waits until the
// event in hand is over, so that no machine has an event while it decides.
type Stack struct {
	Machine Machine
	// Perform performs the Effects of the Machine. It adds those that are for Below.
	Perform func()
	// Below has a machine below perform an effect of the Machine, and adds that machine's news.
	Below func(requests.Effect)

	due    requests.EffectList // in order: for a machine below, or news for the Machine
	closed bool
}

// Add adds an effect of the Machine for Below, or news for the Machine. Run deals with it.
func (s *Stack) Add(f requests.Effect) {
	if !s.closed {
		s.due.Append(f)
	}
}

// Run performs the effects of the Machine, and all that follows from them. It is called behind each
// event of the Machine, and of a machine below it.
func (s *Stack) Run() {
	if s.closed {
		return
	}
	s.Perform()
	for i := 0; i < s.due.Len(); i++ {
		if f := s.due.At(i); f.Kind.IsNews() {
			s.Machine.Answered(f)
			s.Perform()
		} else {
			s.Below(f)
		}
	}
	s.due.Performed()
	invariants.Check(s.Machine)
}

// Close ends the Stack: nothing is added or performed any more.
func (s *Stack) Close() { s.closed = true }
