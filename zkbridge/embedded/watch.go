package embedded

import "slices"

// watchMode says how long a watch lives and how far it reaches: a set of modes.
type watchMode uint8

const (
	watchOnce watchMode = 1 << iota
	watchPersistent
	watchRecursive

	watchAny = watchOnce | watchPersistent | watchRecursive
)

// watchTable holds the watches of one kind: on data (and existence), or on
// children. A connection has at most one watch on a path. Setting another one adds its mode if
// addsUp, else it replaces the modes.
type watchTable struct {
	watchers  map[string][]*conn
	byConn    map[*conn]map[string]watchMode
	count     int
	recursive int // so that without recursive watches only one path is looked up
	addsUp    bool
}

func newWatchTable(addsUp bool) *watchTable {
	return &watchTable{watchers: map[string][]*conn{}, byConn: map[*conn]map[string]watchMode{}, addsUp: addsUp}
}

func (w *watchTable) add(path string, c *conn, mode watchMode) {
	was := w.byConn[c][path]
	if was == 0 {
		w.watchers[path] = append(w.watchers[path], c)
	}
	if w.addsUp {
		mode |= was
	}
	w.set(path, c, mode)
}

// set changes the connection's side of a watch, which goes if it has no mode left.
func (w *watchTable) set(path string, c *conn, modes watchMode) {
	paths := w.byConn[c]
	if paths == nil {
		paths = map[string]watchMode{}
		w.byConn[c] = paths
	}
	was := paths[path]
	paths[path] = modes
	if modes == 0 {
		delete(paths, path)
	}
	if len(paths) == 0 {
		delete(w.byConn, c)
	}
	w.count += min(int(modes), 1) - min(int(was), 1)
	w.recursive += int(modes&watchRecursive)/int(watchRecursive) - int(was&watchRecursive)/int(watchRecursive)
}

// remove takes modes away from the connection's watch, and reports whether it had one of them.
func (w *watchTable) remove(path string, c *conn, modes watchMode) bool {
	was := w.byConn[c][path]
	if was&modes == 0 {
		return false
	}
	w.set(path, c, was&^modes)
	if was&^modes == 0 {
		w.setWatchers(path, slices.DeleteFunc(w.watchers[path], func(other *conn) bool { return other == c }))
	}
	return true
}

// has reports whether the connection has a watch of one of the modes.
func (w *watchTable) has(path string, c *conn, modes watchMode) bool {
	if w.addsUp {
		return w.byConn[c][path]&modes != 0
	}
	return len(w.watchers[path]) > 0 // ZooKeeper asks there whether anybody watches the path
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
		w.remove(path, c, watchAny)
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
		modes := w.byConn[c][path]
		keep := true
		switch {
		case c.replica() != by:
		case kind == nodeChildrenChanged && modes&watchRecursive != 0:
		case !above || modes&watchRecursive != 0:
			deliver(c)
			if !above && modes&watchOnce != 0 {
				keep = modes != watchOnce
				w.set(path, c, modes&^watchOnce)
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
