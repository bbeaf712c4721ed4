package embedded

import "time"

// Halt ends the server as kill -9 does a ZooKeeper, and [Server.Restart] starts it again:
// connections are cut, with the watches and the requests of them, and new ones are refused.
// The data stays, the sessions as well. Their time stands still.
func (s *Server) Halt() {
	s.call(func() {
		s.cfg.Logger.Info("halted")
		s.halted, s.paused = true, false
		for c := range s.conns {
			c.closing, c.delayed = true, false // no request of it is executed any more
			c.nc.Close()
			s.goOn(c)
		}
		parked := s.parked
		s.parked = nil
		for _, b := range parked {
			s.take(b)
		}
	})
}

// Restart ends [Server.Halt]. As in a ZooKeeper that was started again, the time of each
// session begins anew. It does nothing to a server that runs.
func (s *Server) Restart() {
	s.call(func() {
		if !s.halted {
			return
		}
		s.cfg.Logger.Info("restarted")
		s.halted = false
		for _, sess := range s.sessions {
			s.touch(sess)
		}
		s.wake = time.Time{} // what is due was put off
	})
}

// Backup is the data of a server, and its sessions, at one moment.
type Backup struct {
	tree     *tree
	sessions map[int64]time.Duration // timeouts
}

// Backup returns the data as they are now.
func (s *Server) Backup() *Backup {
	b := &Backup{sessions: map[int64]time.Duration{}}
	s.call(func() {
		b.tree = s.tree.clone()
		for id, sess := range s.sessions {
			b.sessions[id] = sess.timeout
		}
	})
	return b
}

// Restore replaces the data by those of a backup, as an operator may in the folder of a ZooKeeper
// that does not run. With nil the server comes back empty. Later transactions follow on the zxid of
// the backup. The server must be halted, otherwise Restore does nothing.
func (s *Server) Restore(b *Backup) {
	s.call(func() {
		if !s.halted {
			return
		}
		s.cfg.Logger.Info("restored", "empty", b == nil)
		s.tree, s.sessions = newTree(), map[int64]*session{}
		if b != nil {
			s.tree = b.tree.clone()
			for id, timeout := range b.sessions {
				s.sessions[id] = &session{id: id, timeout: timeout}
			}
		}
		s.lagging, s.replicas, s.phantoms = map[*replica]struct{}{}, map[string]*replica{}, map[string][]*node{}
	})
}
