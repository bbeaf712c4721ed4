package embedded

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// SessionInfo describes a live session.
type SessionInfo struct {
	ID         int64
	Timeout    time.Duration // as negotiated
	Ephemerals []string      // paths, oldest first
	Connected  bool
}

// Sessions lists the live sessions, oldest first.
func (s *Server) Sessions() (list []SessionInfo) {
	s.call(func() {
		for _, sess := range s.sessions {
			info := SessionInfo{ID: sess.id, Timeout: sess.timeout, Connected: sess.conn != nil}
			for _, n := range s.tree.owned(sess.id) {
				info.Ephemerals = append(info.Ephemerals, n.path)
			}
			list = append(list, info)
		}
	})
	slices.SortFunc(list, func(a, b SessionInfo) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// Watches counts the watches that are set now, over all connections. A
// persistent watch counts twice, as data and as child watch.
func (s *Server) Watches() (count int) {
	s.call(func() { count = s.dataWatches.count + s.childWatches.count })
	return count
}

// WatchedPaths returns how many watches are set now on each path, over all connections.
func (s *Server) WatchedPaths() map[string]int {
	paths := map[string]int{}
	s.call(func() {
		for _, table := range []*watchTable{s.dataWatches, s.childWatches} {
			for path, watchers := range table.watchers {
				paths[path] += len(watchers)
			}
		}
	})
	return paths
}

// Dump shows the tree without ZooKeeper's own nodes, one line per node in the
// order of paths: the path, the czxid and version, the owner of an ephemeral
// node, and the data.
func (s *Server) Dump() (dump string) {
	s.call(func() {
		var lines []string
		for path, n := range s.tree.nodes {
			if path == "" || path == "/" || path == "/zookeeper" || strings.HasPrefix(path, "/zookeeper/") {
				continue
			}
			kind := ""
			switch {
			case n.session != 0:
				kind = " ephemeral=" + hex(n.session)
			case n.container:
				kind = " container"
			case n.ttl != 0:
				kind = fmt.Sprintf(" ttl=%dms", n.ttl)
			}
			lines = append(lines, fmt.Sprintf("%s czxid=%d version=%d%s %q\n", path, n.czxid, n.version, kind, n.data))
		}
		slices.Sort(lines)
		dump = strings.Join(lines, "")
	})
	return dump
}

// Zxid returns the number of the last transaction.
func (s *Server) Zxid() (zxid int64) {
	s.call(func() { zxid = s.tree.zxid })
	return zxid
}

// Expire ends a session now, as if its time had run out: its ephemeral nodes
// go, and its connection is cut. It reports whether there was such a session.
func (s *Server) Expire(sessionID int64) (found bool) {
	s.call(func() {
		if sess := s.sessions[sessionID]; sess != nil {
			s.expire(sess)
			found = true
		}
	})
	return found
}

// DropConnections cuts all connections now. The sessions live on.
func (s *Server) DropConnections() {
	s.call(func() {
		s.cfg.Logger.Info("connections dropped", "count", len(s.conns))
		for c := range s.conns {
			c.closing = true
			c.nc.Close()
		}
	})
}

// Pause makes the server a black hole: it accepts connections and takes
// requests in, but works on none and sends nothing, not even the end of a
// connection. Sessions go on to expire by the clock.
func (s *Server) Pause() {
	s.call(func() {
		s.cfg.Logger.Info("paused")
		s.paused = true
	})
}

// Resume ends Pause. What came in meanwhile is worked off in order; requests
// of sessions that have expired are dropped and their connections closed.
func (s *Server) Resume() {
	s.call(func() {
		s.cfg.Logger.Info("resumed")
		s.paused = false
		s.wake = time.Time{} // delays may have ended meanwhile
		parked := s.parked
		s.parked = nil
		for _, b := range parked {
			s.take(b)
		}
	})
}

// Freeze makes a session read as from a follower that lags behind: reads show
// the state of this moment, and watch events are held back. As a real
// follower it catches up before it answers a write or a sync of that session,
// and lags again from there. Session 0 means all sessions, later ones too.
func (s *Server) Freeze(sessionID int64) {
	s.call(func() {
		s.cfg.Logger.Info("reads frozen", "session", hex(sessionID))
		old := s.tree.clone()
		s.lagAll = s.lagAll || sessionID == 0
		for id, sess := range s.sessions {
			if sess.replica == nil && (sessionID == 0 || sessionID == id) {
				s.lag(sess, old)
			}
		}
	})
}

// Thaw ends Freeze: the session catches up and hears of what it missed.
// Session 0 means all sessions.
func (s *Server) Thaw(sessionID int64) {
	s.call(func() {
		s.cfg.Logger.Info("reads thawed", "session", hex(sessionID))
		s.lagAll = s.lagAll && sessionID != 0
		for id, sess := range s.sessions {
			if r := sess.replica; r != nil && (sessionID == 0 || sessionID == id) {
				if sess.conn != nil {
					s.catchUp(s.replicas[sess.conn.address])
				}
				s.catchUp(r)
				sess.replica = nil
				delete(s.lagging, r)
			}
		}
	})
}

// SetCreateCount presets how many children a node has had, which is the next
// sequence number below it. It reports whether there is such a node.
func (s *Server) SetCreateCount(path string, n int32) (found bool) {
	s.call(func() {
		if parent := s.tree.nodes[path]; parent != nil {
			parent.cversion = n
			found = true
		}
	})
	return found
}
