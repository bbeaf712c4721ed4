package embedded

import "slices"

// watchMode says how long a watch lives and how far it reaches.
type watchMode uint8

const (
	watchOnce watchMode = iota
	watchPersistent
	watchRecursive
)

// watchTable holds the watches of one kind: on data (and existence), or on
// children. A connection has at most one watch on a path; setting another one
// replaces its mode, as in ZooKeeper.
type watchTable struct {
	watchers  map[string][]*conn
	byConn    map[*conn]map[string]watchMode
	count     int
	recursive int // so that without recursive watches only one path is looked up
}

func newWatchTable() *watchTable {
	return &watchTable{watchers: map[string][]*conn{}, byConn: map[*conn]map[string]watchMode{}}
}

func (w *watchTable) add(path string, c *conn, mode watchMode) {
	paths := w.byConn[c]
	if paths == nil {
		paths = map[string]watchMode{}
		w.byConn[c] = paths
	}
	was, known := paths[path]
	if !known {
		w.watchers[path] = append(w.watchers[path], c)
		w.count++
	} else if was == watchRecursive {
		w.recursive--
	}
	if mode == watchRecursive {
		w.recursive++
	}
	paths[path] = mode
}

// forget drops the connection's side of a watch.
func (w *watchTable) forget(path string, c *conn) {
	paths := w.byConn[c]
	if paths[path] == watchRecursive {
		w.recursive--
	}
	delete(paths, path)
	if len(paths) == 0 {
		delete(w.byConn, c)
	}
	w.count--
}

func (w *watchTable) remove(path string, c *conn) bool {
	if _, ok := w.byConn[c][path]; !ok {
		return false
	}
	w.forget(path, c)
	w.setWatchers(path, slices.DeleteFunc(w.watchers[path], func(other *conn) bool { return other == c }))
	return true
}

func (w *watchTable) setWatchers(path string, list []*conn) {
	if len(list) == 0 {
		delete(w.watchers, path)
	} else {
		w.watchers[path] = list
	}
}

func (w *watchTable) removeConn(c *conn) {
	for path := range w.byConn[c] {
		w.remove(path, c)
	}
}

// fire calls deliver for every connection that watches the path, once. It
// takes one-shot watches away. A connection is passed over that reads another replica than by.
func (w *watchTable) fire(path string, kind eventType, by *replica, deliver func(*conn)) {
	w.fireAt(path, kind, false, by, deliver)
	for above := path; w.recursive > 0 && above != "/" && above != ""; {
		above = watchParent(above)
		w.fireAt(above, kind, true, by, deliver)
	}
}

func (w *watchTable) fireAt(path string, kind eventType, above bool, by *replica, deliver func(*conn)) {
	list := w.watchers[path]
	if len(list) == 0 {
		return
	}
	kept := list[:0]
	for _, c := range list {
		mode := w.byConn[c][path]
		keep := true
		switch {
		case c.replica() != by:
		case mode == watchRecursive:
			if kind != nodeChildrenChanged {
				deliver(c)
			}
		case !above:
			deliver(c)
			if mode == watchOnce {
				w.forget(path, c)
				keep = false
			}
		}
		if keep {
			kept = append(kept, c)
		}
	}
	clear(list[len(kept):])
	w.setWatchers(path, kept)
}

// notify fires the watches that a change touches: those of all connections that do
// not lag behind, or of those that read a replica that catches up.
func (s *Server) notify(ch change, by *replica) {
	tell := s.teller(ch.path, ch.kind, ch.acl, ch.zxid)
	s.dataWatches.fire(ch.path, ch.kind, by, tell)
	if ch.kind == nodeDataChanged {
		return
	}
	if ch.kind == nodeDeleted {
		s.childWatches.fire(ch.path, ch.kind, by, tell)
	}
	parent := watchParent(ch.path)
	s.childWatches.fire(parent, nodeChildrenChanged, by, s.teller(parent, nodeChildrenChanged, ch.parentACL, ch.zxid))
}

// teller returns what sends an event to a connection, but not twice, even if
// several of its watches see it.
func (s *Server) teller(path string, kind eventType, list []acl, zxid int64) func(*conn) {
	if !s.release.has(eventsHaveZxid) {
		zxid = noZxid
	}
	s.firing++
	round := s.firing
	return func(c *conn) {
		if c.fired == round {
			return
		}
		c.fired = round
		if kind == nodeDeleted && s.misses(c, path) {
			return
		}
		if allowed(list, permRead, c.auth) {
			c.sendEvent(kind, path, zxid)
		}
	}
}
