package embedded

import "fmt"

// change is what a transaction did to a node, for the watches. Events go only
// to clients that may read the node, or its parent for an event about children.
type change struct {
	kind      eventType
	path      string
	acl       []acl
	parentACL []acl
	zxid      int64
}

// txn applies write operations to the tree under one zxid. Each operation
// checks everything before it changes anything; only a multi needs the undo
// log.
type txn struct {
	tree    *tree
	release release
	zxid    int64
	now     int64 // milliseconds since the epoch
	session int64
	auth    []identity

	multi   bool
	undo    []func()
	changes []change
	wrapped map[*node]int32 // see nextCversion
}

// createRequest is any of the four kinds of create.
type createRequest struct {
	op    Op
	path  string
	data  []byte
	acl   []acl
	flags int32
	ttl   int64 // -1 unless op is OpCreateTTL
}

const maxTTL = 1<<40 - 1

func (r *createRequest) ephemeral() bool  { return r.flags == 1 || r.flags == 3 }
func (r *createRequest) sequential() bool { return r.flags == 2 || r.flags == 3 || r.flags == 6 }
func (r *createRequest) timed() bool      { return r.flags == 5 || r.flags == 6 }

func (r *createRequest) valid() bool {
	switch {
	case r.flags < 0 || r.flags > 6:
		return false
	case r.timed():
		return r.ttl > 0 && r.ttl <= maxTTL
	default:
		return r.ttl < 0 && r.op != OpCreateTTL
	}
}

func (x *txn) create(r *createRequest) (*node, code) {
	if !r.valid() {
		return nil, codeBadArguments
	}
	parentPath, ok := parentOf(r.path)
	if !ok || r.op == OpCreateContainer && x.release.refusesContainers() {
		return nil, codeBadArguments
	}
	list, err := fixACL(r.acl, x.auth)
	if err != codeOK {
		return nil, err
	}
	parent := x.tree.nodes[parentPath]
	if parent == nil {
		return nil, codeNoNode
	}
	if !allowed(parent.acl, permCreate, x.auth) {
		return nil, codeNoAuth
	}
	counter := x.cversion(parent)
	path := r.path
	if r.sequential() {
		path = fmt.Sprintf("%s%010d", path, counter)
	}
	if !validPath(path) {
		return nil, codeBadArguments
	}
	if x.tree.nodes[path] != nil {
		return nil, codeNodeExists
	}
	if parent.session != 0 {
		return nil, codeNoChildrenForEphemerals
	}
	n := &node{
		path: path, name: path[len(parentPath)+1:], data: r.data, acl: list,
		czxid: x.zxid, mzxid: x.zxid, pzxid: x.zxid, ctime: x.now, mtime: x.now,
	}
	switch {
	case r.op == OpCreateContainer:
		n.container = true
	case r.op == OpCreateTTL:
		n.ttl = r.ttl
	case r.ephemeral():
		n.session = x.session
	}
	x.insert(parent, n, counter+1)
	return n, codeOK
}

// cversion is the parent's counter as this transaction sees it. It differs
// from the stored one only after an overflow inside a multi.
func (x *txn) cversion(parent *node) int32 {
	if wrapped, ok := x.wrapped[parent]; ok {
		return wrapped
	}
	return parent.cversion
}

// insert links the node and raises the parent's counter. Like ZooKeeper since
// 3.6 it never lowers the counter: at 2^31-1 it stays there, the sequence
// number repeats, and the parent's pzxid no longer follows creates.
func (x *txn) insert(parent, n *node, cversion int32) {
	cversionWas, pzxidWas := parent.cversion, parent.pzxid
	x.tree.link(parent, n)
	if cversion > parent.cversion {
		parent.cversion, parent.pzxid = cversion, x.zxid
	} else if x.multi {
		if x.wrapped == nil {
			x.wrapped = map[*node]int32{}
		}
		x.wrapped[parent] = cversion
	}
	x.changes = append(x.changes, change{nodeCreated, n.path, n.acl, parent.acl, x.zxid})
	x.onUndo(func() {
		x.tree.unlink(n)
		parent.cversion, parent.pzxid = cversionWas, pzxidWas
	})
}

func (x *txn) delete(path string, version int32) code {
	parentPath, ok := parentOf(path)
	if !ok || isSpecial(path) {
		return codeBadArguments
	}
	parent := x.tree.nodes[parentPath]
	if parent == nil {
		return codeNoNode
	}
	if !allowed(parent.acl, permDelete, x.auth) {
		return codeNoAuth
	}
	n := x.tree.nodes[path]
	switch {
	case n == nil:
		return codeNoNode
	case version != -1 && version != n.version:
		return codeBadVersion
	case len(n.children) > 0:
		return codeNotEmpty
	}
	x.remove(n)
	return codeOK
}

func (x *txn) remove(n *node) {
	parent, pzxidWas := n.parent, n.parent.pzxid
	x.tree.unlink(n)
	parent.pzxid = max(parent.pzxid, x.zxid)
	x.changes = append(x.changes, change{nodeDeleted, n.path, n.acl, parent.acl, x.zxid})
	x.onUndo(func() {
		x.tree.link(parent, n)
		parent.pzxid = pzxidWas
	})
}

func (x *txn) setData(path string, data []byte, version int32) (*node, code) {
	n, err := x.target(path, permWrite)
	if err != codeOK {
		return nil, err
	}
	if version != -1 && version != n.version {
		return nil, codeBadVersion
	}
	dataWas, versionWas, mzxidWas, mtimeWas := n.data, n.version, n.mzxid, n.mtime
	n.data, n.version, n.mzxid, n.mtime = data, n.version+1, x.zxid, x.now
	x.changes = append(x.changes, change{nodeDataChanged, path, n.acl, nil, x.zxid})
	x.onUndo(func() { n.data, n.version, n.mzxid, n.mtime = dataWas, versionWas, mzxidWas, mtimeWas })
	return n, codeOK
}

func (x *txn) check(path string, version int32) code {
	n, err := x.target(path, permRead)
	if err != codeOK {
		return err
	}
	if version != -1 && version != n.version {
		return codeBadVersion
	}
	return codeOK
}

func (x *txn) setACL(path string, list []acl, version int32) (*node, code) {
	if !validPath(path) {
		return nil, codeBadArguments
	}
	list, err := fixACL(list, x.auth)
	if err != codeOK {
		return nil, err
	}
	n, err := x.target(path, permAdmin)
	if err != codeOK {
		return nil, err
	}
	if version != -1 && version != n.aversion {
		return nil, codeBadVersion
	}
	n.acl, n.aversion = list, n.aversion+1
	return n, codeOK
}

// target finds the node that an operation is about and checks the permission.
func (x *txn) target(path string, perm int32) (*node, code) {
	if !validPath(path) {
		return nil, codeBadArguments
	}
	n := x.tree.nodes[path]
	if n == nil {
		return nil, codeNoNode
	}
	if !allowed(n.acl, perm, x.auth) {
		return nil, codeNoAuth
	}
	return n, codeOK
}

// endSession deletes what the session owns.
func (x *txn) endSession() {
	for _, n := range x.tree.owned(x.session) {
		x.remove(n)
	}
}

func (x *txn) onUndo(f func()) {
	if x.multi {
		x.undo = append(x.undo, f)
	}
}

// rollback undoes everything, last first.
func (x *txn) rollback() {
	for i := len(x.undo) - 1; i >= 0; i-- {
		x.undo[i]()
	}
	x.undo, x.changes = nil, nil
}
