package manager

import (
	"context"
	"fmt"

	"github.com/actorlock/actorlock/actors/internal/check"
	"github.com/actorlock/actorlock/messages"
)

// Limits bound requests; 0 is no limit.
type Limits struct {
	// PerLock and Total bound the open requests.
	PerLock, Total int
	// NodeData bounds the bytes of a node's data.
	NodeData int
}

// CheckNodeData returns the error that every request with the data gets, or nil.
func (m *Manager) CheckNodeData(data []byte) error {
	if problem := m.Limits.nodeDataProblem(data); problem != "" {
		return &messages.Refused{Reason: messages.Reason_LIMIT_EXCEEDED, Detail: problem}
	}
	return nil
}

// nodeDataProblem returns what is wrong with the data of a request, or "".
func (l *Limits) nodeDataProblem(data []byte) string {
	if l.NodeData > 0 && len(data) > l.NodeData {
		return fmt.Sprintf("%d bytes of node data, MaxNodeData allows %d", len(data), l.NodeData)
	}
	return ""
}

// Admit counts one more open request of an owner and returns 0, or returns why the lock refuses the
// request. open is how many requests are open for the lock. holds reports whether a named owner
// holds the lock: a Drain lets it enter again.
func (m *Manager) Admit(msg *messages.Acquire, open int, holds func(owner string) bool) (messages.Reason, string) {
	limits := &m.Limits
	switch {
	case limits.PerLock > 0 && open >= limits.PerLock:
		return messages.Reason_LIMIT_EXCEEDED, fmt.Sprintf("%d requests are open for this lock, the most that MaxRequestsPerLock allows", limits.PerLock)
	case limits.nodeDataProblem(msg.Data) != "":
		return messages.Reason_LIMIT_EXCEEDED, limits.nodeDataProblem(msg.Data)
	case !m.countRequest():
		return messages.Reason_LIMIT_EXCEEDED, fmt.Sprintf("%d requests are open, the most that MaxRequests allows", limits.Total)
	case m.RefusesNew() && !holds(msg.Owner):
		// It is asked behind the count, because RefuseNew looks at the count after it has said so.
		m.UncountRequest()
		return messages.Reason_DRAINING, "Drain was called"
	}
	return 0, ""
}

// countRequest counts one more open request and returns true, or returns false if that would be
// over the limit.
func (m *Manager) countRequest() bool {
	if n := m.openRequests.Add(1); m.Limits.Total > 0 && n > int64(m.Limits.Total) {
		m.UncountRequest()
		return false
	}
	return true
}

// UncountRequest counts one open request less. A Drain may wait for that, also if the request was
// refused: it was counted when the last holder released.
func (m *Manager) UncountRequest() {
	m.openRequests.Add(-1)
	m.noteEnd()
}

// lostBy is a lock that a named owner has lost.
type lostBy struct{ path, owner string }

// NoteLost notes a lost grant of the lock at the path, which its named owner has yet to release. A
// Drain may wait for that.
func (m *Manager) NoteLost(path, owner string, why messages.Reason) {
	m.mu.Lock()
	defer m.mu.Unlock()
	by := lostBy{path, owner}
	m.lost[by] = append(m.lost[by], why)
	m.unreleased++
	m.noteQuietLocked()
}

// ForgetLost notes that the owner has released a lost grant.
func (m *Manager) ForgetLost(path, owner string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	by := lostBy{path, owner}
	if m.lost[by] = m.lost[by][1:]; len(m.lost[by]) == 0 {
		delete(m.lost, by)
	}
	m.unreleased--
	m.noteQuietLocked()
}

// LostBy returns why a named owner has lost the lock at the path, which it has not released; 0 if it
// has not.
func (m *Manager) LostBy(path, owner string) messages.Reason {
	m.mu.Lock()
	defer m.mu.Unlock()
	if all := m.lost[lostBy{path, owner}]; len(all) > 0 {
		return all[0]
	}
	return 0
}

// Before the end of a program its locks are drained: they refuse new requests, and holders go on.

// RefuseNew has all locks refuse the requests that wait, and new requests, except those of an owner
// that holds the lock. It returns a context that ends when no owner holds a lock any more and
// all releases are confirmed.
func (m *Manager) RefuseNew() (quiet context.Context) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.RefusesNew() {
		m.beginDrain()
		for _, e := range m.activeEntries() {
			e.Self.Tell(RefuseWaiting{})
		}
	}
	m.noteQuietLocked()
	return m.quiet
}

// Draining returns a context that ends with the first call of RefuseNew.
func (m *Manager) Draining() context.Context { return m.draining }

// RefusesNew reports whether RefuseNew was called.
func (m *Manager) RefusesNew() bool { return m.draining.Err() != nil }

// noteEnd is called when a request has ended, or its grant.
func (m *Manager) noteEnd() {
	if !m.RefusesNew() {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.noteQuietLocked()
}

// noteQuietLocked needs m.mu. The requests of lost grants do not count: their owners hold nothing.
func (m *Manager) noteQuietLocked() {
	if m.RefusesNew() && m.openRequests.Load() == m.unreleased {
		m.becomeQuiet()
	}
}

// Check returns what is wrong with the settings that Locks have from a Config, or nil.
func (s *Settings) Check() error {
	if s.IdleTimeout < 0 {
		return check.Invalid(fmt.Sprintf("IdleTimeout %v: it must be positive, or 0 for the default", s.IdleTimeout))
	}
	for name, limit := range map[string]int{"MaxRequestsPerLock": s.Limits.PerLock, "MaxRequests": s.Limits.Total, "MaxNodeData": s.Limits.NodeData} {
		if limit < 0 {
			return check.Invalid(fmt.Sprintf("%s %d: it must be positive, or 0 for no limit", name, limit))
		}
	}
	return nil
}
