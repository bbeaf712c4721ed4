package lease

import (
	"slices"
	"time"
)

// bridgeModel is what a server's bridge does for one session. The times are of the server's clock.
type bridgeModel struct {
	server    *leaseServer
	session   int
	conn      *zkConn // nil: none
	dialing   *zkConn
	opened    bool // the session
	lost      bool
	read      time.Duration // when the last answer came
	hearing   hearingModel
	promised  time.Duration // the latest end of what the bridge has promised
	creations []zkNode      // that are not answered
	deletions []zkNode
}

// hearingModel is what the bridge knows of the leader's hearing of its session, as in package
// zkbridge/internal/zkconn.
type hearingModel struct {
	newest, proven time.Duration
	recent         []answeredFrame
}

type answeredFrame struct{ sent, answered time.Duration }

func (h *hearingModel) onHandshake(f answeredFrame) {
	h.newest, h.proven = f.sent, max(h.proven, f.sent)
	h.recent = append(h.recent[:0], f)
}

func (h *hearingModel) onAnswered(f answeredFrame, margin time.Duration) {
	h.newest = max(h.newest, f.sent)
	inTouch := h.newest - margin - margin/clockError
	for len(h.recent) > 0 && h.recent[0].answered <= inTouch {
		h.proven = max(h.proven, h.recent[0].sent)
		h.recent = h.recent[1:]
	}
	h.recent = append(h.recent, f)
}

// deadline returns when the session must be taken for lost.
func (b *bridgeModel) deadline() time.Duration {
	w := b.server.w
	if w.weak.promiseByNewest {
		return w.timeout + b.hearing.newest - w.margin
	}
	return w.timeout + min(b.hearing.proven-w.timeout/clockError, b.hearing.newest-w.margin)
}

// promise returns for how long the session will live, whatever happens, at most the limit. The
// bridge does not close it before.
func (b *bridgeModel) promise(now, limit time.Duration) time.Duration {
	if !b.opened || b.lost {
		return 0
	}
	v := min(limit, b.deadline()-now)
	b.promised = max(b.promised, now+v+v/clockError)
	return v
}

func (b *bridgeModel) check() {
	now := b.server.clock()
	if b.opened && !b.lost && now >= b.deadline() {
		b.lose("the deadline has passed")
	}
	if b.conn != nil && now-b.read > 2*b.server.w.timeout/3 {
		b.disconnected(b.conn)
	}
}

// frame sends a frame on a connection, and notes the answer.
func (b *bridgeModel) frame(c *zkConn, operation func() bool, then func(ok bool)) {
	s := b.server
	sent := s.clock()
	c.request(operation, func(ok bool) {
		s.do(func() {
			if s.bridge != b || c != b.conn && c != b.dialing {
				return
			}
			b.read = s.clock()
			if c == b.conn {
				b.hearing.onAnswered(answeredFrame{sent, b.read}, s.w.margin)
			}
			then(ok)
		})
	})
}

func (b *bridgeModel) ping() {
	if b.conn != nil {
		b.frame(b.conn, nil, func(bool) {})
	}
}

func (b *bridgeModel) dial() {
	s := b.server
	f := s.w.leader.followers[s.w.random.IntN(2)]
	c := &zkConn{follower: f, session: b.session, open: !f.crashed()}
	f.conns = append(f.conns, c)
	b.dialing = c
	begun, create := s.clock(), !b.opened
	b.frame(c, func() bool { return s.w.leader.open(b.session, create) }, func(ok bool) {
		b.dialing = nil
		if !ok {
			b.lose("it has expired")
			return
		}
		b.conn, b.opened = c, true
		b.hearing.onHandshake(answeredFrame{begun, s.clock()})
		b.flush()
	})
	s.after(1500*time.Millisecond, func() {
		if s.bridge == b && b.dialing == c {
			c.open = false
			b.dial()
		}
	})
}

func (b *bridgeModel) disconnected(c *zkConn) {
	if b.conn == c {
		b.server.w.log("server: disconnected")
		c.open, b.conn = false, nil
		b.dial()
	}
}

// lose gives up the session, and closes it when the work under it must have ended.
func (b *bridgeModel) lose(why string) {
	if b.lost {
		return
	}
	s := b.server
	s.w.log("server: session %d is lost: %s", b.session, why)
	b.lost = true
	b.hangUp()
	wait := s.w.margin
	if !s.w.weak.closesLostAfterMargin {
		wait = max(wait, b.promised-s.clock())
	}
	s.after(wait, b.close)
	s.sessionLost()
}

// close closes the session at once.
func (b *bridgeModel) close() {
	b.server.w.in(b.server.w.seconds(0, 0.1), func() { b.server.w.leader.end(b.session, "been closed") })
}

func (b *bridgeModel) hangUp() {
	if b.conn != nil {
		b.conn.open = false
	}
	b.conn, b.dialing = nil, nil
}

func (b *bridgeModel) create(id int) {
	b.creations = append(b.creations, zkNode{id, b.session})
	b.flush()
}

func (b *bridgeModel) delete(n zkNode) {
	b.creations = slices.DeleteFunc(b.creations, func(other zkNode) bool { return other == n })
	b.deletions = append(b.deletions, n)
	b.flush()
}

// flush sends what is not answered, perhaps again.
func (b *bridgeModel) flush() {
	if b.conn == nil {
		return
	}
	leader := b.server.w.leader
	for _, n := range b.deletions {
		b.frame(b.conn, func() bool { leader.delete(n); return true }, func(bool) {
			b.deletions = slices.DeleteFunc(b.deletions, func(other zkNode) bool { return other == n })
		})
	}
	for _, n := range b.creations {
		b.frame(b.conn, func() bool { leader.create(n); return true }, func(bool) {
			b.creations = slices.DeleteFunc(b.creations, func(other zkNode) bool { return other == n })
		})
	}
}
