package embedded

// replica is an old state of the tree, which one session reads, or what is connected at one
// address.
type replica struct {
	old    *tree
	missed []change // since old
}

// state returns what is read there. A nil replica is the server itself.
func (r *replica) state(s *Server) *tree {
	if r == nil {
		return s.tree
	}
	return r.old
}

// replicaOf returns the replica that a session reads at an address, or nil if it reads what is.
// sess may be nil.
func (s *Server) replicaOf(sess *session, address string) *replica {
	if sess != nil && sess.replica != nil {
		return sess.replica
	}
	return s.replicas[address]
}

// replica returns the replica that the connection reads, or nil.
func (c *conn) replica() *replica {
	if c.session == nil {
		return nil
	}
	return c.server.replicaOf(c.session, c.address)
}

// lag lets the session read from the given state, the present one, until it catches up.
func (s *Server) lag(sess *session, old *tree) {
	if sess.conn != nil {
		s.catchUp(s.replicas[sess.conn.address])
	}
	sess.replica = &replica{old: old}
	s.lagging[sess.replica] = struct{}{}
}

// catchUp sends the events of all that a replica has missed, as a follower does before it answers a
// write or a sync. The replica goes on to lag from here.
func (s *Server) catchUp(r *replica) {
	if r == nil {
		return
	}
	missed := r.missed
	r.old, r.missed = s.tree.clone(), nil
	for _, ch := range missed {
		s.notify(ch, r)
	}
}

// catchUpAt has all replicas catch up that a connection depends on, so that a session never reads
// an older state at its address than it has read by a replica of its own.
func (s *Server) catchUpAt(c *conn) {
	s.catchUp(c.session.replica)
	s.catchUp(s.replicas[c.address])
}

// FreezeAddress makes what is dialed at one address a follower that lags behind, as [Server.Freeze]
// does one session: all that is connected there reads the state of this moment, and hears of no
// change. The follower catches up before it answers a write or a sync of any session there, and
// before it opens a session; then it lags again from there. A session that comes there from
// elsewhere and has seen a later state is refused. The address is as [Server.Dial] is given it; for
// a connection of the listener it is the local address of the connection.
func (s *Server) FreezeAddress(address string) {
	s.call(func() {
		s.cfg.Logger.Info("reads frozen", "address", address)
		if s.replicas[address] == nil {
			r := &replica{old: s.tree.clone()}
			s.replicas[address] = r
			s.lagging[r] = struct{}{}
		}
	})
}

// ThawAddress ends FreezeAddress: the follower catches up.
func (s *Server) ThawAddress(address string) {
	s.call(func() {
		s.cfg.Logger.Info("reads thawed", "address", address)
		if r := s.replicas[address]; r != nil {
			s.catchUp(r)
			delete(s.replicas, address)
			delete(s.lagging, r)
		}
	})
}
