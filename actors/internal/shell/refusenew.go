package shell

import "github.com/actorlock/actorlock/messages"

// Before the end of a program its locks are drained: they refuse new requests, and holders go on.

// drain is the state of a Manager that drains its locks.
type drain struct {
	quiet chan struct{} // closed when only requests of lost grants are open; nil before RefuseNew
	over  bool          // quiet is closed
}

// refuseWaiting is sent to all actors when their locks are drained, and to an actor again when one of its grants ends
// later: the owner may wait for another one.
type refuseWaiting struct{}

// RefuseNew has all locks refuse the requests that wait, and new requests, except those of an owner
// that holds the lock. It returns a channel that is closed when no owner holds a lock any more and all
// releases are confirmed.
func (m *Manager) RefuseNew() (quiet <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.drain.quiet == nil {
		m.drain.quiet = make(chan struct{})
		m.refusesNew.Store(true)
		for _, e := range m.activeEntries() {
			e.Self.Tell(refuseWaiting{})
		}
	}
	m.noteQuietLocked()
	return m.drain.quiet
}

// noteGrantEnd is called when a grant has ended, in whatever way.
func (s *Shell) noteGrantEnd(r *Request) {
	if r.Granted != nil && !r.FromLockActor && s.Manager.refusesNew.Load() {
		s.Self.Tell(refuseWaiting{})
	}
}

// noteEnd is called when a request has ended, or its grant.
func (m *Manager) noteEnd() {
	if !m.refusesNew.Load() {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.noteQuietLocked()
}

// noteQuietLocked needs m.mu. The requests of lost grants do not count: their owners hold nothing.
func (m *Manager) noteQuietLocked() {
	if !m.drain.over && m.openRequests.Load() == m.unreleased.Load() {
		m.drain.over = true
		close(m.drain.quiet)
	}
}

// refusesNew reports whether a request is refused because the locks are drained.
func (s *Shell) refusesNew(msg *messages.Acquire) bool {
	return s.Manager.refusesNew.Load() && !s.holds(msg.GetOwner())
}

// refuseWaiting ends the requests that wait. An owner that holds the lock may wait to enter it again.
func (s *Shell) refuseWaiting() {
	s.failWaiting(messages.Reason_DRAINING, func(r *Request) bool { return !s.holds(r.OwnerName()) })
}

// holds reports whether a named owner holds the lock.
func (s *Shell) holds(owner string) bool {
	if owner == "" {
		return false
	}
	for _, r := range s.Requests() {
		if r.Holds() && r.OwnerName() == owner {
			return true
		}
	}
	return false
}
