package embedded

import (
	"slices"
	"strings"
)

// read executes a request that changes no node, and writes the reply's body.
func (s *Server) read(c *conn, op Op, d *decoder, e *encoder) code {
	switch op {
	case OpSetWatches, OpSetWatches2:
		return s.setWatches(c, op, d)
	case OpMultiRead:
		return s.multiRead(c, d, e)
	case OpWhoAmI:
		c.whoAmI(e)
		return codeOK
	case OpGetEphemerals:
		return s.getEphemerals(c, d, e)
	case OpAddWatch, OpCheckWatches, OpRemoveWatches:
		return s.changeWatch(c, op, d, e)
	}
	path := d.string()
	watch := false
	switch op {
	case OpExists, OpGetData, OpGetChildren, OpGetChildren2:
		watch = d.bool()
	}
	if d.bad {
		return codeMarshallingError
	}
	if op == OpSync {
		e.string(path)
		return codeOK
	}
	return s.readNode(c, op, path, watch, e)
}

func (s *Server) readNode(c *conn, op Op, path string, watch bool, e *encoder) code {
	n := s.view(c).nodes[path]
	if op == OpExists {
		switch {
		case strings.IndexByte(path, 0) >= 0:
			return codeBadArguments
		case n != nil && s.release.has(existsNeedsRead) && !allowed(n.acl, permRead, c.auth):
			return codeNoAuth
		}
		if watch { // also on a node that is not there
			s.dataWatches.add(path, c, watchOnce)
		}
		if n == nil {
			return codeNoNode
		}
		e.stat(n.stat())
		return codeOK
	}
	if n == nil {
		return codeNoNode
	}
	perm := int32(permRead)
	if op == OpGetACL {
		perm |= permAdmin
	}
	if !allowed(n.acl, perm, c.auth) {
		return codeNoAuth
	}
	switch op {
	case OpGetData:
		if watch {
			s.dataWatches.add(path, c, watchOnce)
		}
		e.buffer(n.data)
		e.stat(n.stat())
	case OpGetChildren, OpGetChildren2:
		if watch {
			s.childWatches.add(path, c, watchOnce)
		}
		e.int(int32(len(n.children)))
		for _, child := range n.children {
			e.string(child.name)
		}
		if op == OpGetChildren2 {
			e.stat(n.stat())
		}
	case OpGetACL:
		list := n.acl
		if !allowed(n.acl, permAdmin, c.auth) {
			list = hidden(list)
		}
		e.acls(list)
		e.stat(n.stat())
	case OpGetAllChildrenNumber:
		e.int(int32(s.view(c).descendants(n)))
	}
	return codeOK
}

// multiRead answers several getData and getChildren, each with its own error.
func (s *Server) multiRead(c *conn, d *decoder, e *encoder) code {
	ops, ok := decodeMulti(d)
	if !ok {
		return codeMarshallingError
	}
	for _, o := range ops {
		if o.op != OpGetData && o.op != OpGetChildren {
			return codeMarshallingError
		}
		mark := len(e.b)
		e.multiHeader(int32(o.op), codeOK)
		if err := s.readNode(c, o.op, o.path, false, e); err != codeOK {
			e.b = e.b[:mark]
			e.multiError(err)
		}
	}
	e.multiEnd()
	return codeOK
}

func (c *conn) whoAmI(e *encoder) {
	e.int(int32(len(c.auth)))
	for _, id := range c.auth {
		user := id.id
		if id.scheme == "digest" {
			user, _, _ = strings.Cut(user, ":")
		}
		e.string(id.scheme)
		e.string(user)
	}
}

func (s *Server) getEphemerals(c *conn, d *decoder, e *encoder) code {
	prefix := d.nullableString()
	if d.bad {
		return codeMarshallingError
	}
	if trimmed := strings.TrimSpace(prefix); trimmed == "" || trimmed == "/" {
		prefix = ""
	}
	var paths []string
	for n := range s.view(c).ephemerals[c.session.id] {
		if strings.HasPrefix(n.path, prefix) {
			paths = append(paths, n.path)
		}
	}
	slices.Sort(paths)
	e.strings(paths)
	return codeOK
}

// setWatches sets the watches of a client that reconnects. What happened
// since it saw relativeZxid is told at once.
func (s *Server) setWatches(c *conn, op Op, d *decoder) code {
	since := d.long()
	data, exist, child := d.strings(), d.strings(), d.strings()
	var persistent, recursive []string
	if op == OpSetWatches2 {
		persistent, recursive = d.strings(), d.strings()
	}
	if d.bad {
		return codeMarshallingError
	}
	t := s.view(c)
	for _, path := range data {
		switch n := t.nodes[path]; {
		case n == nil:
			c.sendEvent(nodeDeleted, path, noZxid)
		case n.mzxid > since:
			c.sendEvent(nodeDataChanged, path, noZxid)
		default:
			s.dataWatches.add(path, c, watchOnce)
		}
	}
	for _, path := range exist {
		if t.nodes[path] != nil {
			c.sendEvent(nodeCreated, path, noZxid)
		} else {
			s.dataWatches.add(path, c, watchOnce)
		}
	}
	for _, path := range child {
		switch n := t.nodes[path]; {
		case n == nil:
			c.sendEvent(nodeDeleted, path, noZxid)
		case n.pzxid > since:
			c.sendEvent(nodeChildrenChanged, path, noZxid)
		default:
			s.childWatches.add(path, c, watchOnce)
		}
	}
	for _, path := range persistent {
		s.watchBoth(path, c, watchPersistent)
	}
	for _, path := range recursive {
		s.watchBoth(path, c, watchRecursive)
	}
	return codeOK
}

// watchBoth adds a persistent watch. No event of children goes to a recursive one, so that it is
// one of data only where a connection can have several.
func (s *Server) watchBoth(path string, c *conn, mode watchMode) {
	if mode != watchRecursive || !s.release.has(watchModesAddUp) {
		s.childWatches.add(path, c, mode)
	}
	s.dataWatches.add(path, c, mode)
}

// changeWatch serves addWatch, checkWatches and removeWatches.
func (s *Server) changeWatch(c *conn, op Op, d *decoder, e *encoder) code {
	path, kind := d.string(), d.int()
	if d.bad {
		return codeMarshallingError
	}
	if op == OpAddWatch {
		if kind != 0 && kind != 1 {
			return codeMarshallingError
		}
		s.watchBoth(path, c, watchPersistent<<kind)
		e.int(0)
		return codeOK
	}
	tables, modes := []*watchTable{s.childWatches, s.dataWatches}, watchAny
	addUp := s.release.has(watchModesAddUp)
	switch {
	case kind == 1:
		tables = tables[:1]
	case kind == 2:
		tables = tables[1:]
	case kind == 3:
	case kind == 4 && addUp:
		modes = watchPersistent
	case kind == 5 && addUp:
		modes = watchRecursive
	default:
		return codeMarshallingError
	}
	if kind < 3 && addUp {
		modes = watchOnce
	}
	found := false
	for _, table := range tables {
		if op == OpRemoveWatches {
			found = table.remove(path, c, modes) || found
		} else {
			found = table.has(path, c, modes) || found
		}
	}
	if !found {
		return codeNoWatcher
	}
	return codeOK
}
