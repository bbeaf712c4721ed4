package embedded

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// node is a znode. cversion counts the children ever created; what clients
// see is derived from it in stat.
type node struct {
	path     string
	name     string
	parent   *node
	slot     int // index in parent.children
	children []*node

	data []byte // never modified in place, so that clones can share it
	acl  []acl

	czxid, mzxid, pzxid         int64
	ctime, mtime                int64
	version, cversion, aversion int32

	session   int64 // owner of an ephemeral node, else 0
	container bool
	ttl       int64 // milliseconds, 0 for none
}

func (n *node) stat() stat {
	children := int32(len(n.children))
	return stat{
		czxid: n.czxid, mzxid: n.mzxid, pzxid: n.pzxid, ctime: n.ctime, mtime: n.mtime,
		version: n.version, aversion: n.aversion,
		cversion:       n.cversion*2 - children, // creates plus deletes
		ephemeralOwner: n.session,
		dataLength:     int32(len(n.data)),
		numChildren:    children,
	}
}

func (n *node) addChild(child *node) {
	child.parent, child.slot = n, len(n.children)
	n.children = append(n.children, child)
}

// removeChild fills the gap with the last child. ZooKeeper promises no order
// of children; this one is arbitrary but the same in every run.
func (n *node) removeChild(child *node) {
	last := len(n.children) - 1
	n.children[child.slot] = n.children[last]
	n.children[child.slot].slot = child.slot
	n.children[last] = nil
	n.children = n.children[:last]
}

// tree is the data of the server. It is pure: no I/O and no clock.
type tree struct {
	nodes      map[string]*node // the root is there twice, as "" and as "/"
	ephemerals map[int64]map[*node]struct{}
	reapable   map[*node]struct{} // containers and nodes with a TTL
	zxid       int64              // of the last transaction
}

func newTree() *tree {
	t := &tree{
		nodes:      map[string]*node{},
		ephemerals: map[int64]map[*node]struct{}{},
		reapable:   map[*node]struct{}{},
	}
	root := &node{path: "/", acl: openACL, data: []byte{}}
	t.nodes[""], t.nodes["/"] = root, root
	system := &node{path: "/zookeeper", name: "zookeeper", acl: openACL, data: []byte{}}
	t.link(root, system)
	t.link(system, &node{path: "/zookeeper/quota", name: "quota", acl: openACL, data: []byte{}})
	t.link(system, &node{path: "/zookeeper/config", name: "config", acl: readOnly, aversion: -1, data: []byte{}})
	return t
}

func (t *tree) link(parent, n *node) {
	parent.addChild(n)
	t.nodes[n.path] = n
	switch {
	case n.session != 0:
		owned := t.ephemerals[n.session]
		if owned == nil {
			owned = map[*node]struct{}{}
			t.ephemerals[n.session] = owned
		}
		owned[n] = struct{}{}
	case n.container, n.ttl != 0:
		t.reapable[n] = struct{}{}
	}
}

func (t *tree) unlink(n *node) {
	n.parent.removeChild(n)
	delete(t.nodes, n.path)
	if owned := t.ephemerals[n.session]; owned != nil {
		delete(owned, n)
		if len(owned) == 0 {
			delete(t.ephemerals, n.session)
		}
	}
	delete(t.reapable, n)
}

// owned lists a session's ephemeral nodes in the order of their creation.
func (t *tree) owned(session int64) []*node {
	return slices.SortedFunc(maps.Keys(t.ephemerals[session]), func(a, b *node) int {
		return cmp.Or(cmp.Compare(a.czxid, b.czxid), strings.Compare(a.path, b.path))
	})
}

// reap lists the containers that had children and have none, and the nodes
// whose time to live is over, at the time now in milliseconds.
func (t *tree) reap(now int64) []*node {
	var due []*node
	for n := range t.reapable {
		if len(n.children) > 0 {
			continue
		}
		if n.container && n.cversion > 0 || n.ttl != 0 && now-n.mtime > n.ttl {
			due = append(due, n)
		}
	}
	slices.SortFunc(due, func(a, b *node) int { return strings.Compare(a.path, b.path) })
	return due
}

// descendants counts the nodes below a path.
func (t *tree) descendants(n *node) int {
	count := len(n.children)
	for _, child := range n.children {
		count += t.descendants(child)
	}
	return count
}

// clone makes an independent copy, for reads that lag behind.
func (t *tree) clone() *tree {
	c := &tree{
		nodes:      make(map[string]*node, len(t.nodes)),
		ephemerals: map[int64]map[*node]struct{}{},
		reapable:   map[*node]struct{}{},
		zxid:       t.zxid,
	}
	root := *t.nodes["/"]
	c.nodes[""], c.nodes["/"] = &root, &root
	c.copyChildren(&root)
	return c
}

func (t *tree) copyChildren(parent *node) {
	originals := parent.children
	parent.children = make([]*node, 0, len(originals))
	for _, original := range originals {
		child := *original
		t.link(parent, &child)
		t.copyChildren(&child)
	}
}
