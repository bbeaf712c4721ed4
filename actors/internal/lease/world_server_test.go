package lease

import (
	"slices"
	"time"
)

// leaseServer is the lock server: one session with ZooKeeper at a time, and leases of the client.
type leaseServer struct {
	proc
	bridge   *bridgeModel
	leases   []*serverLease
	stream   *duplex
	draining bool
	cached   time.Duration // the clock as it was a while ago
}

type serverLease struct {
	*ServerEnd
	numberedEnd
	id      int
	session int
	over    bool
	node    int // 0: none
	asked   int // the node that is wanted next
	granted bool
	alarms  int
}

func newLeaseServer(w *world) *leaseServer {
	s := &leaseServer{}
	s.proc = w.newProc(s.checkClock)
	s.start()
	return s
}

func (s *leaseServer) start() {
	s.life++
	s.dead, s.frozenUntil, s.draining, s.leases, s.stream = false, 0, false, nil, nil
	s.openSession()
	s.every(s.w.ping, func() { s.bridge.ping() })
	s.every(time.Second, func() { s.cached = s.clock(); s.bridge.flush() })
}

func (s *leaseServer) openSession() {
	s.bridge = &bridgeModel{server: s, session: s.w.nextID()}
	s.bridge.dial()
}

func (s *leaseServer) checkClock() {
	s.bridge.check()
	for _, l := range s.leases {
		s.settle(l)
	}
}

// settle gives on what no client believes in any more.
func (s *leaseServer) settle(l *serverLease) {
	if !l.over && l.Ended(s.clock()) {
		s.w.log("server: lease %d has ended", l.id)
		l.over = true
		s.drop(l)
	}
}

// setAlarm has the server settle the lease when there is something to settle.
func (s *leaseServer) setAlarm(l *serverLease) {
	l.alarms++
	alarms := l.alarms
	s.after(max(l.End()-s.clock(), 0)+time.Millisecond, func() { // its check settles
		if !l.over && l.alarms == alarms {
			s.setAlarm(l)
		}
	})
}

// drop deletes the node of a lease, and makes the next one that is asked for.
func (s *leaseServer) drop(l *serverLease) {
	if l.node != 0 {
		s.w.log("server: deletes node %d", l.node)
		s.bridge.delete(zkNode{l.node, l.session})
	}
	l.node, l.granted = 0, false
	if l.asked != 0 && !l.over && !s.draining {
		l.node, l.asked = l.asked, 0
		s.bridge.create(l.node)
	}
}

func (s *leaseServer) find(id int) *serverLease {
	if i := slices.IndexFunc(s.leases, func(l *serverLease) bool { return l.id == id }); i >= 0 {
		return s.leases[i]
	}
	return nil
}

// knows reports whether the server has granted a node.
func (s *leaseServer) knows(n zkNode) bool {
	return slices.ContainsFunc(s.leases, func(l *serverLease) bool { return l.node == n.id && l.granted })
}

// first handles the news that a node is the first in the queue.
func (s *leaseServer) first(n zkNode) {
	if s.bridge.lost {
		return
	}
	for _, l := range s.leases {
		if l.node == n.id && !l.over {
			if !l.granted {
				l.granted = true
				s.w.log("server: grants node %d", n.id)
				s.sendNumbered(l, granted, n.id)
			}
			return
		}
	}
	if n.session == s.bridge.session || s.w.weak.deletesOldNodes {
		s.bridge.delete(n) // no lease has it
	}
}

// sessionLost ends all leases. Their nodes go with the session.
func (s *leaseServer) sessionLost() {
	for _, l := range s.leases {
		if !l.over {
			l.over = true
			s.send(func(c *leaseClient) { c.ended(l.id) })
		}
	}
	s.after(500*time.Millisecond, func() {
		if s.bridge.lost && !s.draining {
			s.openSession()
		}
	})
}

func (s *leaseServer) send(do func(c *leaseClient)) {
	if s.stream != nil {
		s.stream.toClient(do)
	}
}

func (s *leaseServer) sendNumbered(l *serverLease, k kind, node int) { s.transmit(l, l.next(k, node)) }

func (s *leaseServer) transmit(l *serverLease, m numbered) {
	received := l.received
	s.send(func(c *leaseClient) { c.receive(l.id, received, m) })
}

// Messages of the client.

func (s *leaseServer) hello(d *duplex, id, letGo int) {
	s.stream = d
	if l := s.find(letGo); l != nil {
		l.LetGo()
		s.settle(l)
	}
	if !s.bridge.opened || s.bridge.lost {
		return
	}
	l := s.find(id)
	if l != nil && l.over {
		l = nil
	}
	resumed := l != nil
	if !resumed {
		if s.draining {
			return
		}
		l = &serverLease{ServerEnd: NewServerEnd(s.clock(), s.w.limit), id: s.w.nextID(), session: s.bridge.session}
		s.leases = append(s.leases, l)
		s.setAlarm(l)
	}
	l.Resume()
	s.send(func(c *leaseClient) { c.welcome(l.id, resumed) })
	for _, m := range l.sent {
		s.transmit(l, m)
	}
	if s.draining {
		s.send(func(c *leaseClient) { c.goAway() })
	}
}

func (s *leaseServer) renew(id int, number, got uint64) {
	l := s.find(id)
	if l == nil || l.over {
		s.send(func(c *leaseClient) { c.ended(id) })
		return
	}
	now := s.clock()
	if s.w.weak.oldClock {
		now = s.cached
	}
	v := s.bridge.promise(now, s.w.limit)
	if !l.Renew(now, number, got, v) {
		return
	}
	s.setAlarm(l)
	s.mayFreeze()
	s.do(func() {
		s.w.log("server: answers renewal %d of lease %d with %.3f", number, id, v.Seconds())
		s.send(func(c *leaseClient) { c.renewed(id, number, v) })
		if s.w.loseAnswers > 0 && s.stream != nil {
			s.w.loseAnswers--
			s.stream.breakUp("with an answer")
		}
	})
}

func (s *leaseServer) receive(id int, received uint64, m numbered) {
	l := s.find(id)
	if l == nil || l.over {
		return
	}
	l.acknowledge(received)
	switch {
	case !l.accept(m):
	case m.kind == acquire && l.node == 0:
		l.asked = m.node
		s.drop(l)
	case m.kind == acquire:
		l.asked = m.node
	case m.kind == release && l.node == m.node:
		s.drop(l)
	}
}

func (s *leaseServer) closed(d *duplex) {
	if s.stream != d {
		return
	}
	s.stream = nil
	if s.w.weak.closedIsRelease {
		for _, l := range s.leases {
			l.LetGo()
			s.settle(l)
		}
	}
}

// What operators do.

// drain ends the process.
func (s *leaseServer) drain() {
	if s.draining {
		return
	}
	s.w.log("server: drains")
	s.draining = true
	s.send(func(c *leaseClient) { c.goAway() })
	s.after(s.w.seconds(0, 5), func() {
		for _, l := range s.leases {
			l.Drain()
		}
	})
	s.endWhenFree()
}

// endWhenFree closes the session and ends the process when no client may believe in a grant.
func (s *leaseServer) endWhenFree() {
	now := s.clock()
	if !s.w.weak.drainsAtOnce && slices.ContainsFunc(s.leases, func(l *serverLease) bool { return l.node != 0 && l.Believed(now) }) {
		s.after(200*time.Millisecond, s.endWhenFree)
		return
	}
	s.bridge.close()
	s.kill(3 * time.Second)
}

// kill ends the process. Another one starts after a while.
func (s *leaseServer) kill(pause time.Duration) {
	if s.dead {
		return
	}
	s.dead, s.inbox = true, nil
	s.life++
	s.bridge.hangUp()
	if s.stream != nil {
		s.stream.breakUp("the server has ended")
	}
	s.w.in(pause, s.start)
}
