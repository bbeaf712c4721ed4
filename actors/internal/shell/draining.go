package shell

import (
	"fmt"
	"strings"
	"time"

	"github.com/actorlock/actorlock/messages"
)

// A stopped actor drains while its session goes on: it takes in the bridge's answers until its
// nodes are deleted. Manager.Close waits for that.

// drainingActors are the stopped actors whose nodes are not deleted yet.
type drainingActors struct {
	sessionGoesOn bool // after Close
	open          map[*Entry]struct{}
	allDrained    chan struct{} // closed when open is empty; nil until Close waits for that
	undeleted     []string      // nodes whose deletion has failed since Close
}

// NodesQuery asks a draining actor for the paths of its nodes.
type NodesQuery struct{ Reply chan<- []string }

// StartDraining notes that the actor of e has stopped with nodes, and reports whether the actor
// is to drain: only if the session goes on.
func (m *Manager) StartDraining(e *Entry) bool {
	if !m.draining.sessionGoesOn {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.draining.open[e] = struct{}{}
	return true
}

// Drained notes that all nodes of e are deleted, except the undeleted.
func (m *Manager) Drained(e *Entry, undeleted ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := &m.draining
	delete(d.open, e)
	if m.closed {
		d.undeleted = append(d.undeleted, undeleted...)
	}
	if d.allDrained != nil && len(d.open) == 0 {
		close(d.allDrained)
	}
}

// NoteUndeleted notes a node that ZooKeeper does not delete.
func (m *Manager) NoteUndeleted(path string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		m.draining.undeleted = append(m.draining.undeleted, path)
	}
}

// awaitDrained blocks until the nodes of all actors are deleted, or for the timeout of the
// session. The error names the nodes that may remain.
func (m *Manager) awaitDrained() error {
	allDrained := make(chan struct{})
	m.mu.Lock()
	m.draining.allDrained = allDrained
	if len(m.draining.open) == 0 {
		close(allDrained)
	}
	m.mu.Unlock()
	session := m.Bridge.Session()
	timer := time.NewTimer(session.Timeout)
	defer timer.Stop()
	select {
	case <-allDrained:
	case <-timer.C:
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
	nodes = append(nodes, m.draining.undeleted...)
	replies := make(chan []string, len(m.draining.open))
	asked := cap(replies)
	for e := range m.draining.open {
		e.Self.Tell(NodesQuery{replies})
	}
	m.mu.Unlock()
	for range asked {
		nodes = append(nodes, <-replies...)
	}
	return nodes
}
