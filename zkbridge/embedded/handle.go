package embedded

import (
	"slices"
	"strconv"
	"time"
)

func hex(id int64) string { return "0x" + strconv.FormatUint(uint64(id), 16) }

// handle works off one frame. It returns false if a fault wants the frame to
// wait; then the same frame comes again.
func (s *Server) handle(c *conn, frame []byte) bool {
	if c.hole || c.closing && !c.delayed {
		return true
	}
	if c.session == nil {
		c.named = handshakeOf(frame)
		return s.faulty(c, 0, OpConnect, nil, func() { s.connect(c, frame) })
	}
	d := decoder{b: frame}
	xid, op := d.int(), Op(d.int())
	if d.bad {
		c.close()
		return true
	}
	if s.sessions[c.session.id] != c.session {
		return true // it expired while a fault held the request back
	}
	if len(s.faults) == 0 && !c.delayed {
		s.serve(c, xid, op, &d)
		return true
	}
	return s.faulty(c, xid, op, faultPaths(op, d), func() { s.serve(c, xid, op, &d) })
}

// serve executes a request and queues its reply.
func (s *Server) serve(c *conn, xid int32, op Op, d *decoder) {
	if s.release.hangsUpOn(op, *d) {
		c.hangUp()
		return
	}
	if op.writes() {
		s.hurry(c)
	}
	c.received++
	s.received++
	c.lastOp = op
	s.touch(c.session)
	s.body.b = s.body.b[:0]
	if op != OpAuth && !s.isLoggedIn(c) {
		c.reply(xid, 0, codeSessionClosedNoLogin, nil)
		c.close()
		return
	}
	if s.release.takesZxid(op) {
		s.commit(s.begin(c))
	}
	switch op {
	case OpPing:
		c.reply(xidPing, s.view(c).zxid, codeOK, nil)
	case OpAuth:
		s.authenticate(c, xid, d)
	case OpSync:
		s.catchUpAt(c)
		fallthrough
	case OpExists, OpGetData, OpGetACL, OpGetChildren, OpGetChildren2, OpMultiRead, OpGetEphemerals,
		OpGetAllChildrenNumber, OpSetWatches, OpSetWatches2, OpAddWatch, OpCheckWatches, OpRemoveWatches, OpWhoAmI:
		err := s.read(c, op, d, &s.body)
		c.reply(xid, s.view(c).zxid, err, s.body.b)
	default:
		if op.writes() && !(op == OpCheck && s.release.has(checkNeedsMulti)) {
			s.write(c, xid, op, d)
			return
		}
		c.reply(xid, -1, codeUnimplemented, nil)
		c.close()
	}
}

// writes reports whether the request is a transaction.
func (op Op) writes() bool {
	switch op {
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL, OpDelete, OpSetData, OpSetACL, OpCheck,
		OpMulti, OpReconfig, OpCloseSession:
		return true
	}
	return false
}

// hurry executes what a fault holds back of the session's earlier connections. A
// write cannot overtake it: ZooKeeper works off a session's transactions in their
// order, or refuses the late one.
func (s *Server) hurry(c *conn) {
	for earlier := range s.conns {
		if earlier.number < c.number && earlier.session == c.session && earlier.delayed {
			s.goOn(earlier)
		}
	}
}

// view is the state that the connection's session reads.
func (s *Server) view(c *conn) *tree {
	return s.haunted(c, c.replica().state(s))
}

func (s *Server) authenticate(c *conn, xid int32, d *decoder) {
	d.int() // type, unused
	scheme, token := d.string(), string(d.buffer())
	if d.bad {
		c.close()
		return
	}
	if !s.release.accepts(scheme, token) {
		c.reply(xid, s.tree.zxid, codeAuthFailed, nil)
		return
	}
	var id identity
	switch scheme {
	case "digest":
		id = digestID(token)
	case "ip":
		id = identity{"ip", c.ip}
	default:
		c.reply(xid, 0, codeAuthFailed, nil)
		c.close()
		return
	}
	if !slices.Contains(c.auth, id) {
		c.auth = append(c.auth, id)
	}
	c.reply(xid, 0, codeOK, nil)
}

// isLoggedIn reports whether the client has an identity that EnforceAuth asks for.
func (s *Server) isLoggedIn(c *conn) bool {
	return len(s.cfg.EnforceAuth) == 0 ||
		slices.ContainsFunc(c.auth, func(id identity) bool { return slices.Contains(s.cfg.EnforceAuth, id.scheme) })
}

// releaseStalled goes on with connections whose delay is over.
func (s *Server) releaseStalled(now time.Time) {
	for c := range s.conns {
		if !c.heldUntil.IsZero() && !now.Before(c.heldUntil) {
			c.heldUntil = time.Time{}
		}
		if s.paused || c.stalledUntil.IsZero() || now.Before(c.stalledUntil) {
			continue
		}
		s.goOn(c)
	}
}

// goOn works off what a delay has held up.
func (s *Server) goOn(c *conn) {
	c.stalledUntil = time.Time{}
	waiting := c.stalled
	c.stalled = nil
	for _, b := range waiting {
		s.take(b)
	}
}
