package embedded_test

import (
	"math/rand/v2"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// randomScript generates random steps in a subtree of its own.
type randomScript struct {
	r    *rand.Rand
	root string
	zxid func() int64
}

func (g *randomScript) pick(list ...string) string { return list[g.r.IntN(len(list))] }

func (g *randomScript) path() string {
	if g.r.IntN(40) == 0 {
		return g.pick("", "/", "x", "/zookeeper", "/zookeeper/config", "/zookeeper/quota", g.root+"/", g.root+"//a",
			g.root+"/./a", g.root+"/../a", g.root+"/\x01", g.root+"/\xff", g.root+"/\u00e9\u4e16")
	}
	return g.root + g.pick("", "/a", "/a", "/b", "/a/x", "/a/y", "/b/x", "/b/x/deep", "/c", "/c/n0000000000", "/c/n0000000001")
}

func (g *randomScript) version() int32 {
	return []int32{-1, -1, -1, 0, 1, 2, -2}[g.r.IntN(7)]
}

func (g *randomScript) data() []byte {
	return [][]byte{nil, {}, []byte("x"), []byte("hello")}[g.r.IntN(4)]
}

func (g *randomScript) acl() []zk.ACL {
	digest := zk.DigestACL(zk.PermAll, "u", "p")
	switch g.r.IntN(30) {
	case 0:
		return nil
	case 1:
		return zk.WorldACL(zk.PermRead)
	case 2:
		return zk.AuthACL(zk.PermAll)
	case 3:
		return digest
	case 4:
		return append(zk.WorldACL(zk.PermRead|zk.PermDelete|zk.PermCreate), digest...)
	case 5:
		return []zk.ACL{{Perms: 31, Scheme: "ip", ID: g.pick("127.0.0.0/8", "127.0.0.1", "10.0.0.1", "x", "1.2.3.4/33")}}
	case 6:
		return []zk.ACL{{Perms: 31, Scheme: g.pick("world", "sasl", "none", "digest"), ID: g.pick("me", "a:b:c", "")}}
	case 7:
		return append(open, open...)
	default:
		return open
	}
}

func (g *randomScript) create(op embedded.Op) []any {
	path, flags := g.path(), g.r.IntN(4)
	if flags >= 2 {
		path = g.root + g.pick("/a/", "/c/n", "/b/s-", "/c/n")
	}
	if g.r.IntN(30) == 0 {
		flags = g.r.IntN(9) - 1
	}
	switch op {
	case embedded.OpCreateContainer:
		return []any{path, g.data(), g.acl(), []int{4, 4, 4, 0, 2}[g.r.IntN(5)]}
	case embedded.OpCreateTTL:
		// An unset ttl with plain flags kills the real server.
		return []any{path, g.data(), g.acl(), []int{5, 5, 6, 0}[g.r.IntN(4)], []int64{100000, 1 << 39, 0, 1 << 41}[g.r.IntN(4)]}
	}
	return []any{path, g.data(), g.acl(), flags}
}

func (g *randomScript) multi() packed {
	var b []byte
	for range g.r.IntN(5) {
		op := []embedded.Op{embedded.OpCreate, embedded.OpCreate, embedded.OpDelete, embedded.OpSetData, embedded.OpCheck,
			embedded.OpCreate2, embedded.OpCreateContainer, embedded.OpCreateTTL}[g.r.IntN(8)]
		if g.r.IntN(50) == 0 {
			op = []embedded.Op{embedded.OpGetData, embedded.OpSetACL, embedded.OpSync}[g.r.IntN(3)]
		}
		b = append(b, pack(op, false, -1)...)
		switch op {
		case embedded.OpDelete, embedded.OpCheck:
			b = append(b, pack(g.path(), g.version())...)
		case embedded.OpSetData:
			b = append(b, pack(g.path(), g.data(), g.version())...)
		case embedded.OpGetData:
			b = append(b, pack(g.path(), false)...)
		case embedded.OpSetACL, embedded.OpSync:
			b = append(b, pack(g.path())...)
		default:
			fields := g.create(op)
			if op == embedded.OpCreateContainer {
				fields[3] = 4 // with other flags ZooKeeper 3.9 reads its transaction as a garbled one
			}
			b = append(b, pack(fields...)...)
		}
	}
	return append(b, pack(-1, true, -1)...)
}

func (g *randomScript) multiRead() packed {
	var b []byte
	for range g.r.IntN(4) {
		op := []embedded.Op{embedded.OpGetData, embedded.OpGetChildren}[g.r.IntN(2)]
		b = append(b, pack(op, false, -1, g.path(), false)...)
	}
	return append(b, pack(-1, true, -1)...)
}

func (g *randomScript) paths() []string {
	list := make([]string, g.r.IntN(3))
	for i := range list {
		list[i] = g.path()
	}
	return list
}

func (g *randomScript) setWatches(op embedded.Op) []any {
	fields := []any{g.zxid() - int64(g.r.IntN(20)), g.paths(), g.paths(), g.paths()}
	if op == embedded.OpSetWatches2 {
		fields = append(fields, g.paths(), g.paths())
	}
	return fields
}

func (g *randomScript) next(sessions int) step {
	s := step{session: g.r.IntN(sessions)}
	if g.r.IntN(8) == 0 {
		s.special = "pipeline"
		for range 1 + g.r.IntN(6) {
			if next := g.request(); next.special == "" && next.op != embedded.OpAuth { // ZooKeeper answers that out of order
				s.more = append(s.more, next)
			}
		}
		return s
	}
	next := g.request()
	next.session = s.session
	return next
}

func (g *randomScript) request() step {
	var s step
	watch := g.r.IntN(2) == 0
	switch n := g.r.IntN(100); {
	case n < 22:
		s.op = []embedded.Op{embedded.OpCreate, embedded.OpCreate, embedded.OpCreate2, embedded.OpCreateContainer,
			embedded.OpCreateTTL}[g.r.IntN(5)]
		s.fields = g.create(s.op)
	case n < 36:
		s.op, s.fields = embedded.OpDelete, []any{g.path(), g.version()}
	case n < 44:
		s.op, s.fields = embedded.OpSetData, []any{g.path(), g.data(), g.version()}
	case n < 56:
		s.op, s.fields = embedded.OpMulti, []any{g.multi()}
	case n < 76:
		s.op = []embedded.Op{embedded.OpExists, embedded.OpGetData, embedded.OpGetChildren, embedded.OpGetChildren2}[g.r.IntN(4)]
		s.fields = []any{g.path(), watch}
	case n < 78:
		s.op, s.fields = embedded.OpGetACL, []any{g.path()}
	case n < 80:
		s.op, s.fields = embedded.OpSetACL, []any{g.path(), g.acl(), g.version()}
	case n < 82:
		s.op, s.fields = embedded.OpAuth, []any{0, g.pick("digest", "digest", "ip"), []byte(g.pick("u:p", "v:q"))}
	case n < 84:
		s.op = []embedded.Op{embedded.OpSync, embedded.OpGetEphemerals, embedded.OpGetAllChildrenNumber}[g.r.IntN(3)]
		s.fields = []any{g.path()}
		if s.op == embedded.OpGetAllChildrenNumber && s.fields[0] == "/" {
			s.fields[0] = g.root
		}
	case n < 85:
		s.op = embedded.OpWhoAmI
	case n < 87:
		s.op, s.fields = embedded.OpMultiRead, []any{g.multiRead()}
	case n < 90:
		s.op, s.fields = embedded.OpAddWatch, []any{g.path(), g.r.IntN(3)}
	case n < 93:
		s.op = []embedded.Op{embedded.OpCheckWatches, embedded.OpRemoveWatches}[g.r.IntN(2)]
		path := g.path()
		if !strings.HasPrefix(path, "/") {
			path = g.root // the real server fails at its own parser
		}
		s.fields = []any{path, g.r.IntN(6)}
	case n < 96:
		s.special, s.op = "reattach", []embedded.Op{embedded.OpSetWatches, embedded.OpSetWatches2}[g.r.IntN(2)]
		s.fields = g.setWatches(s.op)
	case n < 98:
		s.special, s.op = "close", embedded.OpCloseSession
	default:
		s.op, s.fields = embedded.OpCreate, g.create(embedded.OpCreate)[:g.r.IntN(3)] // truncated
	}
	return s
}
