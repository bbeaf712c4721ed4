package embedded

// write executes a request as a transaction. The events that it causes are
// queued before its reply. A failed one takes a zxid as well, because
// ZooKeeper logs it as an error; for one that is malformed see malformedTakesNone.
func (s *Server) write(c *conn, xid int32, op Op, d *decoder) {
	if op == OpCloseSession {
		s.endSession(c.session)
		c.reply(xid, s.tree.zxid, codeOK, nil)
		c.close()
		s.cfg.Logger.Info("session closed", "session", hex(c.session.id))
		return
	}
	x := s.begin(c)
	var err code
	if op == OpMulti {
		err = x.runMulti(d, &s.body)
	} else {
		err = x.run(op, d, &s.body)
	}
	if err == codeMarshallingError && op != OpMulti && s.release.has(malformedTakesNone) {
		c.reply(xid, s.tree.zxid, err, nil)
		return
	}
	s.commit(x)
	s.catchUpAt(c)
	c.reply(xid, x.zxid, err, s.body.b)
}

// run executes one operation and writes its reply's body.
func (x *txn) run(op Op, d *decoder, e *encoder) code {
	switch op {
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL:
		r := decodeCreate(op, d)
		if d.bad {
			return codeMarshallingError
		}
		n, err := x.create(r)
		if err == codeOK {
			e.string(n.path)
			if op != OpCreate {
				e.stat(n.stat())
			}
		}
		return err
	case OpSetACL:
		path, list, version := d.string(), d.acls(), d.int()
		if d.bad {
			return codeMarshallingError
		}
		return withStat(e)(x.setACL(path, list, version))
	case OpSetData:
		path, data, version := d.string(), d.buffer(), d.int()
		if d.bad {
			return codeMarshallingError
		}
		return withStat(e)(x.setData(path, data, version))
	case OpReconfig:
		return codeReconfigDisabled
	}
	path, version := d.string(), d.int()
	switch {
	case d.bad:
		return codeMarshallingError
	case op == OpDelete:
		return x.delete(path, version)
	default:
		return x.check(path, version)
	}
}

// withStat writes the stat of the node that an operation returned, if it did.
func withStat(e *encoder) func(*node, code) code {
	return func(n *node, err code) code {
		if err == codeOK {
			e.stat(n.stat())
		}
		return err
	}
}

func decodeCreate(op Op, d *decoder) *createRequest {
	r := &createRequest{op: op, path: d.string(), data: d.buffer(), acl: d.acls(), flags: d.int(), ttl: -1}
	if op == OpCreateTTL {
		r.ttl = d.long()
	}
	return r
}
