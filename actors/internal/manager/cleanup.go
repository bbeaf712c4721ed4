package manager

import (
	"fmt"
	"strings"
	"time"

	"github.com/actorlock/actorlock/messages"
)

// A stopped actor cleans up while its session goes on: it takes in the bridge's answers until its
// nodes are deleted. Manager.Close waits for that.

// cleanups are the stopped actors whose nodes are not deleted yet.
type cleanups struct {
	sessionGoesOn bool // after Close
	open          map[*Entry]struct{}
	allDone       chan struct{} // closed when open is empty; nil until Close waits for that
	undeleted     []string      // nodes whose deletion has failed since Close
}

// StartCleanup notes that the actor of e has stopped with nodes, and reports whether the actor
// is to clean up: only if the session goes on.
func (m *Manager) StartCleanup(e *Entry) bool {
	if !m.cleanups.sessionGoesOn {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cleanups.open[e] = struct{}{}
	return true
}

// CleanedUp notes that all nodes of e are deleted, except those of NoteUndeleted.
func (m *Manager) CleanedUp(e *Entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := &m.cleanups
	delete(d.open, e)
	if d.allDone != nil && len(d.open) == 0 {
		close(d.allDone)
	}
}

// NoteUndeleted notes a node that ZooKeeper does not delete.
func (m *Manager) NoteUndeleted(path string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		m.cleanups.undeleted = append(m.cleanups.undeleted, path)
	}
}

// awaitCleanups blocks until the nodes of all actors are deleted, or for the timeout of the
// session. The error names the nodes that may remain.
func (m *Manager) awaitCleanups() error {
	allDone := make(chan struct{})
	m.mu.Lock()
	m.cleanups.allDone = allDone
	if len(m.cleanups.open) == 0 {
		close(allDone)
	}
	m.mu.Unlock()
	session := m.Session.Session()
	select {
	case <-allDone:
	case <-time.After(session.Timeout):
	}
	nodes := m.undeletedNodes()
	if len(nodes) == 0 {
		return nil
	}
	const most = 20
	names := strings.Join(nodes[:min(len(nodes), most)], ", ")
	if len(nodes) > most {
		names += fmt.Sprintf(" and %d more", len(nodes)-most)
	}
	return fmt.Errorf("actors: ZooKeeper has not confirmed that these nodes are deleted: %s; "+
		"they may stay until session %s ends", names, messages.FormatSession(session.ID))
}

// undeletedNodes returns the nodes that may remain.
func (m *Manager) undeletedNodes() (nodes []string) {
	m.mu.Lock()
	nodes = append(nodes, m.cleanups.undeleted...)
	replies := make(chan []string, len(m.cleanups.open))
	asked := cap(replies)
	for e := range m.cleanups.open {
		e.Self.Tell(NodesQuery{replies})
	}
	m.mu.Unlock()
	for range asked {
		nodes = append(nodes, <-replies...)
	}
	return nodes
}
