package embedded

import "time"

// now is the server's clock: the time of day, plus what Advance has skipped.
func (s *Server) now() time.Time { return time.Now().Add(s.ahead) }

// Advance moves the server's clock forward by d. All that is due by then has
// happened when it returns: delays are over, TTL nodes and emptied containers
// are gone, and sessions without a connection have expired. Clients that are
// connected would have pinged meanwhile, so their sessions live on, unless a
// fault keeps their pings from being heard. Use [Server.Expire] to end those.
// A client that has just hung up counts as connected until the server notices;
// [Server.Sessions] tells.
//
// Clients do not notice: their own timers go by the time of day. To move
// those as well, run the whole test in a testing/synctest bubble.
func (s *Server) Advance(d time.Duration) {
	s.call(func() {
		s.cfg.Logger.Info("clock advanced", "by", d)
		step := max(s.cfg.TickTime, d/10_000) // so that things happen in their order
		for d > 0 {
			s.ahead += min(step, d)
			d -= step
			for _, sess := range s.sessions {
				if sess.conn != nil && !s.paused && !sess.conn.deaf() {
					s.touch(sess)
				}
			}
			s.wake = time.Time{}
			s.housekeep(s.now())
		}
	})
}

// deaf reports whether a ping of the client would not be served now.
func (c *conn) deaf() bool { return c.hole || c.closing || len(c.stalled) > 0 }
