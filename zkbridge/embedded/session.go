package embedded

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"time"
)

// session outlives its connections until it is closed or its time runs out.
type session struct {
	id      int64
	timeout time.Duration
	expires time.Time
	conn    *conn // nil while no connection is attached

	replica *replica // what a lagging session reads; nil if it is up to date
}

// touch puts off the session's end. As in ZooKeeper it is rounded up to the
// end of a tick.
func (s *Server) touch(sess *session) {
	tick := s.cfg.TickTime
	ticks := (s.now().Sub(s.started)+sess.timeout)/tick + 1
	sess.expires = s.started.Add(ticks * tick)
}

func (s *Server) password(id int64) []byte {
	if s.release.isKeeper() {
		return make([]byte, 16)
	}
	mac := hmac.New(sha256.New, s.secret[:])
	binary.Write(mac, binary.BigEndian, id)
	return mac.Sum(nil)[:16]
}

// handshakeOf returns the id of the session that a handshake wants to go on with, or 0.
func handshakeOf(frame []byte) int64 {
	d := decoder{b: frame}
	d.int()
	d.long()
	d.int()
	return d.long()
}

// connect answers the handshake, the first frame of a connection.
func (s *Server) connect(c *conn, frame []byte) {
	d := decoder{b: frame}
	d.int() // protocol version, always 0
	lastZxid, timeout, id, password := d.long(), d.int(), d.long(), d.buffer()
	if d.bad {
		c.close()
		return
	}
	c.oldClient = len(d.b) == 0
	if s.release.isKeeper() {
		id, lastZxid, c.oldClient = 0, 0, true // it resumes no session, and its answer has no byte for read-only mode
	}
	sess := s.sessions[id]
	if lastZxid > s.replicaOf(sess, c.address).state(s).zxid {
		s.cfg.Logger.Info("refused a client that has seen a later state", "session", hex(id))
		c.close()
		return
	}
	granted := min(max(time.Duration(timeout)*time.Millisecond, s.cfg.MinSessionTimeout), s.cfg.MaxSessionTimeout)
	if id == 0 {
		sess = s.newSession()
		s.catchUp(s.replicas[c.address])
	} else if sess != nil {
		if sess.conn != nil {
			sess.conn.close() // even before the password is looked at, as ZooKeeper does
		}
		if !hmac.Equal(password, s.password(id)) {
			sess = nil
		}
	}
	if sess == nil {
		s.cfg.Logger.Info("session unknown or expired", "session", hex(id))
		c.welcome(0, 0, make([]byte, 16))
		c.close()
		return
	}
	sess.timeout, sess.conn, c.session, c.named = granted, c, sess, sess.id
	s.touch(sess)
	s.wakeAt(sess.expires)
	c.welcome(granted, sess.id, s.password(sess.id))
	s.cfg.Logger.Info("session connected", "session", hex(sess.id), "timeout", granted)
}

func (c *conn) welcome(timeout time.Duration, id int64, password []byte) {
	if c.hole || c.closing {
		return
	}
	start := c.out.begin()
	c.out.int(0)
	c.out.int(int32(timeout.Milliseconds()))
	c.out.long(id)
	c.out.buffer(password)
	if !c.oldClient {
		c.out.bool(false) // not a read-only server
	}
	c.out.end(start)
	c.countSent()
}

func (s *Server) newSession() *session {
	s.lastSession++
	sess := &session{id: s.lastSession}
	s.sessions[sess.id] = sess
	if !s.release.isKeeper() {
		s.commit(s.begin(nil)) // opening a session is a transaction
	}
	if s.lagAll {
		s.lag(sess, s.tree.clone())
	}
	return sess
}

// endSession deletes the session and what it owns. The watch events come
// first, so that also the session's own connection gets them.
func (s *Server) endSession(sess *session) {
	x := s.begin(nil)
	x.session = sess.id
	x.endSession()
	s.commit(x)
	delete(s.sessions, sess.id)
	delete(s.lagging, sess.replica)
}

func (s *Server) expireSessions(now time.Time) {
	var due []*session
	for _, sess := range s.sessions {
		if !now.Before(sess.expires) {
			due = append(due, sess)
		}
	}
	slices.SortFunc(due, func(a, b *session) int { return cmp.Compare(a.id, b.id) })
	for _, sess := range due {
		s.expire(sess)
	}
}

func (s *Server) expire(sess *session) {
	s.cfg.Logger.Info("session expired", "session", hex(sess.id))
	s.endSession(sess)
	if sess.conn != nil {
		sess.conn.close()
	}
}
