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

// fire delivers an event to every connection that watches its path. It takes one-shot watches away.
// A connection is passed over that reads another replica than by.
func (w *watchTable) fire(ev watchEvent, by *replica) {
	w.fireAt(ev.path, false, ev, by)
	for above := ev.path; w.recursive > 0 && above != "/" && above != ""; {
		above = watchParent(above)
		w.fireAt(above, true, ev, by)
	}
}

func (w *watchTable) fireAt(path string, above bool, ev watchEvent, by *replica) {
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
		case ev.kind == nodeChildrenChanged && modes&watchRecursive != 0:
		case !above || modes&watchRecursive != 0:
			ev.deliver(c)
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
	ev := s.watchEvent(ch.path, ch.kind, ch.acl, ch.zxid)
	s.dataWatches.fire(ev, by)
	if ch.kind == nodeDataChanged {
		return
	}
	if ch.kind == nodeDeleted {
		s.childWatches.fire(ev, by)
	}
	s.childWatches.fire(s.watchEvent(watchParent(ch.path), nodeChildrenChanged, ch.parentACL, ch.zxid), by)
}

// watchEvent is what watches on a path are told. A connection is told once, even if several of its
// watches see it. Every write makes two of them: they are values, which take no memory of their own.
type watchEvent struct {
	server *Server
	round  uint64 // a number of its own
	path   string
	kind   eventType
	acl    []acl // of the node
	zxid   int64
}

func (s *Server) watchEvent(path string, kind eventType, list []acl, zxid int64) watchEvent {
	if !s.release.has(eventsHaveZxid) {
		zxid = noZxid
	}
	s.firing++
	return watchEvent{s, s.firing, path, kind, list, zxid}
}

func (ev watchEvent) deliver(c *conn) {
	if c.fired == ev.round {
		return
	}
	c.fired = ev.round
	if ev.kind == nodeDeleted && ev.server.misses(c, ev.path) {
		return
	}
	if allowed(ev.acl, permRead, c.auth) {
		c.sendEvent(ev.kind, ev.path, ev.zxid)
	}
}
