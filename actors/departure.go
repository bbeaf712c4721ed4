package actors

import (
	"fmt"
	"strings"
	"time"
)

// A stopped actor with nodes goes on taking in the bridge's answers until its nodes are gone,
// if the session goes on. Close waits for that.

// departures are the actors of which that is so.
type departures struct {
	lasting bool // the session goes on after close
	open    map[*resident]struct{}
	none    chan struct{} // closed when open is empty; nil before close
	left    []string      // nodes that could not be deleted since close
}

// inventory asks a departing actor for its nodes.
type inventory struct{ reply chan<- []string }

// depart notes that r has stopped, and its nodes are not gone yet.
func (m *manager) depart(r *resident) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.departures.open == nil {
		m.departures.open = map[*resident]struct{}{}
	}
	m.departures.open[r] = struct{}{}
}

// departed notes that all nodes of r are gone, but for those left.
func (m *manager) departed(r *resident, left ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := &m.departures
	delete(d.open, r)
	if d.none == nil {
		return
	}
	d.left = append(d.left, left...)
	if len(d.open) == 0 {
		close(d.none)
	}
}

// awaitDepartures blocks until the nodes of all actors are gone, or for the timeout of the
// session. The error names the nodes that are left, or may be.
func (m *manager) awaitDepartures() error {
	none := make(chan struct{})
	m.mu.Lock()
	m.departures.none = none
	if len(m.departures.open) == 0 {
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
	left := m.leftBehind()
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

// leftBehind returns the nodes that are left, or may be.
func (m *manager) leftBehind() (left []string) {
	m.mu.Lock()
	left = append(left, m.departures.left...)
	replies := make(chan []string, len(m.departures.open))
	asked := cap(replies)
	for r := range m.departures.open {
		r.self.Tell(inventory{replies})
	}
	m.mu.Unlock()
	for range asked {
		left = append(left, <-replies...)
	}
	return left
}

// paths returns the paths of nodes in the lock's directory.
func (b *bridged) paths(nodes []string) []string {
	paths := make([]string, 0, len(nodes))
	for _, node := range nodes {
		paths = append(paths, b.path+"/"+node)
	}
	return paths
}

// remains notes a node that ZooKeeper does not delete.
func (m *manager) remains(path string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		m.departures.left = append(m.departures.left, path)
	}
}
