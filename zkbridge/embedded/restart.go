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
