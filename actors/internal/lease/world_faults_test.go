package lease

import (
	"fmt"
	"time"
)

// faultsEnd is how long faults come for.
const faultsEnd = 90 * time.Second

func (w *world) fault(format string, args ...any) {
	f := fmt.Sprintf(format, args...)
	w.faults = append(w.faults, fmt.Sprintf("%.2f %s", w.now.Seconds(), f))
	w.log("FAULT: %s", f)
}

// planFaults has faults come at random times, often several together.
func (w *world) planFaults(n int) {
	var last time.Duration
	for range n {
		at := w.seconds(10, faultsEnd.Seconds()-5)
		if last > 0 && w.chance(0.5) {
			at = min(last+w.seconds(0, 12), faultsEnd-5*time.Second)
		}
		last = at
		w.at(at, w.anyFault)
	}
}

func (w *world) anyFault() {
	long, short := w.seconds(0.2, 25), w.seconds(0.2, 8)
	s, c := w.server, w.client
	f := w.leader.followers[w.random.IntN(2)]
	if s.bridge.conn != nil && w.chance(0.7) {
		f = s.bridge.conn.follower
	}
	switch w.random.IntN(16) {
	case 0:
		w.fault("client to server is cut for %v", long)
		w.toServer.cut(long)
	case 1, 2:
		w.fault("server to client is cut for %v", long)
		w.toClient.cut(long)
	case 3, 4:
		w.fault("the stream breaks")
		if c.stream != nil {
			c.stream.breakUp("fault")
		}
	case 5:
		w.fault("the client is frozen for %v", long)
		c.freeze(long)
		if w.weak.clockStops {
			c.stood += long * 7 / 10
		}
	case 6:
		w.fault("the server is frozen for %v", long)
		s.freeze(long)
	case 7:
		w.fault("the server is killed")
		s.kill(w.seconds(0.5, 5))
	case 8:
		w.fault("the server drains")
		s.do(s.drain)
	case 9:
		w.fault("follower %d is cut off from the leader for %v", f.id, long)
		f.cut(long)
	case 10:
		w.fault("follower %d crashes for %v", f.id, short)
		f.crash(short)
	case 11:
		w.fault("the server is cut off from follower %d for %v", f.id, short)
		f.in.cut(short)
		f.out.cut(short)
		if w.chance(0.7) {
			w.fault("and that from the leader")
			f.cut(short)
		}
	case 12:
		w.fault("the server's bridge fails")
		if s.bridge.conn != nil {
			s.do(func() { s.bridge.lose("it has failed") })
		}
	default:
		w.severalFaults()
	}
}

// severalFaults cuts the server's follower off from the leader, perhaps while the server is frozen,
// and later kills the server, so that its session expires.
func (w *world) severalFaults() {
	s := w.server
	if s.bridge.conn == nil || w.now > faultsEnd-30*time.Second {
		return
	}
	f, frozen := s.bridge.conn.follower, time.Duration(0)
	if w.chance(0.7) {
		frozen = w.seconds(1, 15)
		w.fault("the server is frozen for %v", frozen)
		s.freeze(frozen)
	}
	const long = 40 * time.Second
	w.in(max(0, frozen-w.seconds(0, 1)), func() {
		w.fault("follower %d is cut off from the leader for %v", f.id, long)
		f.cut(long)
		if w.chance(0.6) {
			w.in(w.seconds(0, 1), func() {
				w.fault("the server is cut off from that follower for %v", long)
				f.in.cut(long)
				f.out.cut(long)
			})
		}
	})
	w.in(frozen+w.seconds(0, 8), func() {
		w.fault("the server is killed")
		s.kill(25 * time.Second)
	})
}

// lastFault is the reason for which the rival must get the lock in the end.
func (w *world) lastFault() {
	const forEver = 1000 * time.Hour
	s, c := w.server, w.client
	c.forEver, c.done = true, true
	switch w.random.IntN(7) {
	case 0:
		w.fault("the client is killed")
		c.dead = true
		if c.stream != nil && w.chance(0.5) {
			c.stream.breakUp("the client has ended")
		}
	case 1, 2:
		w.fault("server to client is cut for ever")
		w.toClient.cut(forEver)
	case 3:
		w.fault("client to server is cut for ever")
		w.toServer.cut(forEver)
	case 4:
		w.fault("the client is frozen for ever")
		c.freeze(forEver)
	case 5:
		if !s.dead {
			w.fault("the server drains at last")
			life := s.life
			s.do(s.drain)
			w.in(w.bound(), func() {
				if s.life == life {
					w.violate("the server drains without end")
				}
			})
		}
	case 6:
		w.fault("the client releases")
		c.do(func() {
			c.forEver, c.wants = false, 0
			c.release()
		})
	}
	w.in(w.bound(), func() {
		if !w.leader.rivalHolds {
			w.violate("the rival does not get the lock; the client believes: %t", c.believes())
		}
	})
}
