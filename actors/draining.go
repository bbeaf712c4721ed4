package actors

import (
	"fmt"
	"strings"
	"time"
)

// A stopped actor with nodes goes on taking in the bridge's answers until its nodes are gone,
// if the session goes on. Close waits for that.

// drainingActors are the actors of which that is so.
type drainingActors struct {
	sessionGoesOn bool // the session goes on after close
	open          map[*actorEntry]struct{}
	allDrained    chan struct{} // closed when open is empty; nil before close
	undeleted     []string      // nodes that could not be deleted since close
}

// nodesQuery asks a departing actor for its nodes.
type nodesQuery struct{ reply chan<- []string }

// startDraining notes that r has stopped, and its nodes are not gone yet.
func (m *manager) startDraining(r *actorEntry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.draining.open == nil {
		m.draining.open = map[*actorEntry]struct{}{}
	}
	m.draining.open[r] = struct{}{}
}

// onDrained notes that all nodes of r are gone, but for those left.
func (m *manager) onDrained(r *actorEntry, left ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := &m.draining
	delete(d.open, r)
	if d.allDrained == nil {
		return
	}
	d.undeleted = append(d.undeleted, left...)
	if len(d.open) == 0 {
		close(d.allDrained)
	}
}

// awaitDrained blocks until the nodes of all actors are gone, or for the timeout of the
// session. The error names the nodes that are left, or may be.
func (m *manager) awaitDrained() error {
	none := make(chan struct{})
	m.mu.Lock()
	m.draining.allDrained = none
	if len(m.draining.open) == 0 {
		close(none)
	}
	m.mu.Unlock()
	session := m.zk.Session()
	timer := time.NewTimer(session.Timeout)
	defer timer.Stop()
	select {
	case <-none:
	case <-timer.C:
	}
	left := m.undeletedNodes()
	if len(left) == 0 {
		return nil
	}
	const most = 20
	names := strings.Join(left[:min(len(left), most)], ", ")
	if len(left) > most {
		names += fmt.Sprintf(" and %d more", len(left)-most)
	}
	return fmt.Errorf("actors: ZooKeeper has not confirmed that these nodes are deleted: %s; "+
		"they may stay until session %#x ends", names, session.ID)
}

// undeletedNodes returns the nodes that are left, or may be.
func (m *manager) undeletedNodes() (left []string) {
	m.mu.Lock()
	left = append(left, m.draining.undeleted...)
	replies := make(chan []string, len(m.draining.open))
	asked := cap(replies)
	for r := range m.draining.open {
		r.self.Tell(nodesQuery{replies})
	}
	m.mu.Unlock()
	for range asked {
		left = append(left, <-replies...)
	}
	return left
}

// nodePaths returns the paths of nodes in the lock's directory.
func (b *bridgeClient) nodePaths(nodes []string) []string {
	paths := make([]string, 0, len(nodes))
	for _, node := range nodes {
		paths = append(paths, b.path+"/"+node)
	}
	return paths
}

// noteUndeleted notes a node that ZooKeeper does not delete.
func (m *manager) noteUndeleted(path string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		m.draining.undeleted = append(m.draining.undeleted, path)
	}
}
