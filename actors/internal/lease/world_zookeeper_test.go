package lease

import "time"

// zkNode is a node in the queue of the lock.
type zkNode struct{ id, session int }

// zkLeader is ZooKeeper's leader, with the sessions and the queue.
type zkLeader struct {
	proc
	sessions   map[int]*zkSession
	queue      []zkNode // without the rival
	seen       map[int]bool
	rivalHolds bool // or may hold: it stands for all other contenders
	yields     int  // counts the times at which the rival is about to release
	followers  [2]*zkFollower
}

type zkSession struct {
	alive bool
	heard int // counts the times that the leader heard of it
}

func newLeader(w *world) *zkLeader {
	l := &zkLeader{sessions: map[int]*zkSession{}, seen: map[int]bool{}, rivalHolds: true}
	l.proc = w.newProc(func() {})
	for i := range l.followers {
		wire := func() *oneWay { return &oneWay{w: w, typical: 10 * time.Millisecond, large: zkDelay} }
		l.followers[i] = &zkFollower{w: w, id: i, toLeader: wire(), in: wire(), out: wire(), phase: w.seconds(0, w.tick.Seconds()/2)}
	}
	return l
}

// open makes a session, or resumes it. It reports whether there is one.
func (l *zkLeader) open(id int, create bool) bool {
	if create && l.sessions[id] == nil {
		l.sessions[id] = &zkSession{alive: true}
	}
	l.hear(id)
	s := l.sessions[id]
	return s != nil && s.alive
}

// hear counts the timeout of a session anew.
func (l *zkLeader) hear(id int) {
	s := l.sessions[id]
	if s == nil || !s.alive {
		return
	}
	s.heard++
	heard := s.heard
	l.after(l.w.timeout, func() {
		if s.heard == heard {
			l.end(id, "expired")
		}
	})
}

func (l *zkLeader) end(id int, why string) {
	if s := l.sessions[id]; s != nil && s.alive {
		s.alive = false
		l.w.log("leader: session %d has %s", id, why)
		l.remove(func(n zkNode) bool { return n.session == id })
	}
}

// create makes a node, unless it was made or deleted before.
func (l *zkLeader) create(n zkNode) {
	if s := l.sessions[n.session]; !l.seen[n.id] && s != nil && s.alive {
		l.queue = append(l.queue, n)
		l.rivalYields()
	}
	l.seen[n.id] = true
}

func (l *zkLeader) delete(n zkNode) {
	l.seen[n.id] = true
	l.remove(func(other zkNode) bool { return other == n })
}

func (l *zkLeader) remove(which func(zkNode) bool) {
	var rest []zkNode
	for i, n := range l.queue {
		if !which(n) {
			rest = append(rest, n)
			continue
		}
		if i == 0 && !l.rivalHolds {
			l.rivalHolds = true
			l.w.log("leader: node %d is gone, the rival holds", n.id)
			l.w.checkExclusion()
		}
	}
	l.queue = rest
	l.rivalYields()
}

// rivalYields has the rival release after a while, if the client waits.
func (l *zkLeader) rivalYields() {
	l.yields++
	yields := l.yields
	l.w.in(l.w.seconds(0.1, 3), func() {
		if l.rivalHolds && l.yields == yields && len(l.queue) > 0 {
			l.rivalHolds = false
			l.notify(l.queue[0])
		}
	})
}

// notify has the server learn that a node is the first, sooner or later.
func (l *zkLeader) notify(n zkNode) {
	l.w.in(l.w.seconds(0, 1), func() {
		if l.rivalHolds || len(l.queue) == 0 || l.queue[0] != n || l.w.server.knows(n) {
			return
		}
		if s := l.w.server; s.bridge.conn != nil && s.bridge.conn.follower.inTouch() {
			s.do(func() { s.first(n) })
		}
		l.notify(n)
	})
}

// zkFollower is a server of ZooKeeper to which the bridge connects.
type zkFollower struct {
	w            *world
	id           int
	toLeader     *oneWay // and from the leader
	in, out      *oneWay // from and to the bridge
	cuts         int     // from the leader
	breaks       int     // connections to the leader that were lost
	crashedUntil time.Duration
	phase        time.Duration // of its reports to the leader
	conns        []*zkConn
}

// zkConn is a connection of the bridge.
type zkConn struct {
	follower *zkFollower
	session  int
	open     bool
}

func (f *zkFollower) crashed() bool { return f.w.now < f.crashedUntil }
func (f *zkFollower) inTouch() bool { return !f.toLeader.isCut() && !f.crashed() }

// askLeader sends a message to the leader. It is lost if the connection to the leader breaks.
func (f *zkFollower) askLeader(arrive func()) {
	breaks := f.breaks
	f.toLeader.send(func() {
		if f.breaks == breaks {
			arrive()
		}
	})
}

// report has the leader hear of a session with the next report, each half tick.
func (f *zkFollower) report(session int) {
	half := f.w.tick / 2
	breaks := f.breaks
	f.w.at(f.phase+(f.w.now-f.phase+half)/half*half, func() {
		if f.breaks == breaks {
			f.askLeader(func() { f.w.leader.hear(session) })
		}
	})
}

// request carries a frame to the follower, and its answer back. A frame with an operation goes to
// the leader. The follower answers others itself.
func (c *zkConn) request(operation func() bool, answered func(ok bool)) {
	f := c.follower
	f.in.send(func() {
		answer := func(ok bool) {
			if c.open {
				f.out.send(func() { answered(ok) })
			}
		}
		switch {
		case !c.open || f.crashed():
		case operation == nil:
			f.report(c.session)
			answer(true)
		default:
			f.askLeader(func() {
				f.w.leader.hear(c.session)
				ok := operation()
				f.askLeader(func() { answer(ok) })
			})
		}
	})
}

// cut separates the follower from the leader. It hangs up if that lasts.
func (f *zkFollower) cut(pause time.Duration) {
	if f.toLeader.isCut() {
		f.toLeader.cut(pause)
		return
	}
	f.toLeader.cut(pause)
	f.cuts++
	cuts := f.cuts
	f.w.in(f.w.syncLimit*f.w.tick, func() {
		if f.toLeader.isCut() && f.cuts == cuts {
			f.hangUp("cut off from the leader")
		}
	})
}

func (f *zkFollower) crash(pause time.Duration) {
	f.crashedUntil = max(f.crashedUntil, f.w.now+pause)
	f.hangUp("crashed")
}

func (f *zkFollower) hangUp(why string) {
	f.breaks++
	for _, c := range f.conns {
		if c.open {
			c.open = false
			f.w.log("follower %d hangs up: %s", f.id, why)
			s := f.w.server
			f.out.send(func() { s.do(func() { s.bridge.disconnected(c) }) })
		}
	}
	f.conns = nil
}
