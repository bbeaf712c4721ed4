package recipes

import (
	"github.com/actorlock/actorlock/actors/internal/lock"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/internal/stack"
	"github.com/actorlock/actorlock/messages"
)

// stacked has the methods of the actor of a lock with a machine on top of its directories, a local
// queue or a semaphore, that do not depend on the machine.
type stacked struct {
	directories
	stack  stack.Stack
	create *atomicCreate // of the message in hand, of which the next node is a part; nil if that is not of a multi-lock
}

// below has a directory perform an effect of the machine.
func (s *stacked) below(f requests.Effect) {
	d := &s.queue
	if f.Below != 0 {
		d = s.leases
	}
	switch f.Kind {
	case requests.Acquire:
		d.acquireWith(f.More, *f.Request, s.takeCreate())
	case requests.Cancel:
		d.cancel(f.ID, false, requests.Cancelled)
	case requests.Release:
		d.release(f.ID)
	}
}

func (s *stacked) takeCreate() *atomicCreate {
	with := s.create
	s.create = nil
	return with
}

// Acquire implements lock.Behavior.
func (s *stacked) Acquire(r *lock.Request, msg *messages.Acquire) {
	s.stack.Machine.Acquire(incoming(r, msg))
	s.stack.Run()
}

// Cancel implements lock.Behavior.
func (s *stacked) Cancel(r *lock.Request, reason messages.Reason) {
	s.stack.Machine.Cancel(r.ID, requests.Reason(reason))
	s.stack.Run()
}

// Release implements lock.Behavior.
func (s *stacked) Release(r *lock.Request) {
	s.stack.Machine.Release(r.ID)
	s.stack.Run()
}

// Idle implements lock.Behavior.
func (s *stacked) Idle() bool { return s.stack.Machine.Idle() && s.directories.Idle() }

// SessionOverdue implements lock.Behavior.
func (s *stacked) SessionOverdue() {
	s.directories.SessionOverdue()
	s.stack.Run()
}

// Tick implements lock.Behavior.
func (s *stacked) Tick(quiet bool) {
	s.directories.Tick(quiet)
	s.stack.Run()
	if quiet {
		s.stack.Machine.ReleaseMemory()
	}
}

// Close implements lock.Behavior.
func (s *stacked) Close(failed bool) {
	s.EndAll(requests.Closed)
	s.stack.Close()
	s.directories.Close(failed)
}
