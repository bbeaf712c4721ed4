package embedded

import (
	"encoding/binary"
	"time"
)

// loop owns the state. Whatever has come in is worked off before output is
// handed to the writers, so that many replies go out in one write.
func (s *Server) loop() {
	defer s.shutdown()
	for {
		select {
		case <-s.done:
			return
		case b := <-s.incoming:
			s.takeAll(b)
		case f := <-s.calls:
			f()
		case <-s.timer.C:
			s.wake = time.Time{}
		}
		s.housekeep(s.now())
		s.flush()
	}
}

func (s *Server) shutdown() {
	s.timer.Stop()
	for c := range s.conns {
		c.nc.Close()
	}
}

func (s *Server) takeAll(b *batch) {
	for range 64 {
		s.take(b)
		select {
		case b = <-s.incoming:
		default:
			return
		}
	}
	s.take(b)
}

// take works off what a connection sent, or puts it aside.
func (s *Server) take(b *batch) {
	c := b.conn
	switch {
	case s.paused:
		s.parked = append(s.parked, b)
	case len(c.stalled) > 0:
		c.stalled = append(c.stalled, b)
	case s.work(b):
		b.free()
	default:
		c.stalled = append(c.stalled, b)
	}
}

// work handles the frames of a batch. It returns false if a fault stalled
// the connection before the batch was done.
func (s *Server) work(b *batch) bool {
	c := b.conn
	for b.done < len(b.buf) {
		n := int(binary.BigEndian.Uint32(b.buf[b.done:]))
		frame := b.buf[b.done+4 : b.done+4+n]
		if !s.handle(c, frame) {
			return false
		}
		b.done += 4 + n
	}
	if b.word != "" {
		c.answerWord(b.word)
	}
	if b.eof {
		s.drop(c)
	}
	return true
}

// housekeep does what is due by the clock and sets the timer for the rest.
func (s *Server) housekeep(now time.Time) {
	if s.halted {
		return
	}
	if s.wake.IsZero() || !now.Before(s.wake) {
		s.expireSessions(now)
		s.releaseStalled(now)
	}
	if len(s.tree.reapable) == 0 {
		s.nextReap = time.Time{}
	} else if s.nextReap.IsZero() {
		s.nextReap = now.Add(s.cfg.ContainerInterval)
		s.wakeAt(s.nextReap)
	} else if !now.Before(s.nextReap) {
		s.reapContainers(now)
		s.nextReap = now.Add(s.cfg.ContainerInterval)
	}
	if s.wake.IsZero() || !now.Before(s.wake) {
		s.wake = time.Time{}
		s.timer.Stop()
		s.rearm()
	}
}

// rearm sets the timer for the earliest thing to come.
func (s *Server) rearm() {
	if !s.nextReap.IsZero() {
		s.wakeAt(s.nextReap)
	}
	for _, sess := range s.sessions {
		s.wakeAt(sess.expires)
	}
	for c := range s.conns {
		if !c.heldUntil.IsZero() {
			s.wakeAt(c.heldUntil)
		}
		if !c.stalledUntil.IsZero() && !s.paused {
			s.wakeAt(c.stalledUntil)
		}
	}
}

// wakeAt makes sure that the loop runs at t.
func (s *Server) wakeAt(t time.Time) {
	if s.wake.IsZero() || t.Before(s.wake) {
		s.wake = t
		s.timer.Reset(max(t.Sub(s.now()), 0))
	}
}

func (s *Server) reapContainers(now time.Time) {
	for _, n := range s.tree.reap(now.UnixMilli()) {
		x := s.begin(nil)
		x.remove(n)
		s.commit(x)
	}
}

// flush hands the output to the writers. While the server is paused it stays.
func (s *Server) flush() {
	if s.paused || len(s.dirty) == 0 {
		return
	}
	held := s.dirty[:0]
	for _, c := range s.dirty {
		if c.heldUntil.IsZero() {
			c.dirty = false
			c.handOver()
		} else {
			held = append(held, c)
		}
	}
	clear(s.dirty[len(held):])
	s.dirty = held
}

// begin opens a transaction, which takes a zxid even if it fails.
func (s *Server) begin(c *conn) *txn {
	x := &txn{tree: s.tree, release: s.release, zxid: s.tree.zxid + 1, now: s.now().UnixMilli()}
	if c != nil {
		x.session, x.auth = c.session.id, c.auth
	}
	return x
}

// commit makes the transaction's changes known.
func (s *Server) commit(x *txn) {
	s.tree.zxid = x.zxid
	for _, ch := range x.changes {
		if ch.kind == nodeDeleted && s.cfg.Deleted != nil {
			s.cfg.Deleted(ch.path, x.zxid)
		}
		s.notify(ch, nil)
	}
	for r := range s.lagging {
		r.missed = append(r.missed, x.changes...)
	}
}
