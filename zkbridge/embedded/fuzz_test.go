package embedded

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
)

// newTestConn makes a server without a loop and a connection without
// goroutines, so that handle can be called as a function.
func newTestConn(t testing.TB) (*Server, *conn) {
	s := newServer(ServerConfig{}.withDefaults(zooKeeper(3, 9, 3)), zooKeeper(3, 9, 3))
	here, there := net.Pipe()
	t.Cleanup(func() { here.Close(); there.Close() })
	c := newConn(s, there)
	s.conns[c] = struct{}{}
	return s, c
}

func attached(t testing.TB) (*Server, *conn) {
	s, c := newTestConn(t)
	e := encoder{}
	e.int(0)
	e.long(0)
	e.int(10000)
	e.long(0)
	e.buffer(make([]byte, 16))
	s.handle(c, e.b)
	if c.session == nil {
		t.Fatal("no session")
	}
	return s, c
}

// checkTree fails the test if the tree contradicts itself.
func checkTree(t testing.TB, tr *tree) {
	t.Helper()
	reachable := 1 // the root's second name
	var walk func(n *node)
	walk = func(n *node) {
		reachable++
		if n.path != "/" && tr.nodes[n.path] != n {
			t.Fatalf("%s is not in the index", n.path)
		}
		if _, ok := tr.ephemerals[n.session][n]; n.session != 0 && !ok {
			t.Fatalf("%s is not among its session's nodes", n.path)
		}
		for i, child := range n.children {
			if child.parent != n || child.slot != i || child.path != strings.TrimSuffix(n.path, "/")+"/"+child.name {
				t.Fatalf("%s is not a good child of %s", child.path, n.path)
			}
			walk(child)
		}
	}
	walk(tr.nodes["/"])
	if reachable != len(tr.nodes) {
		t.Fatalf("%d nodes reachable, %d in the index", reachable, len(tr.nodes))
	}
}

// describe renders all of a tree.
func describe(tr *tree) string {
	var lines []string
	for path, n := range tr.nodes {
		lines = append(lines, fmt.Sprintf("%s %+v %q %v %d", path, n.stat(), n.data, n.acl, n.cversion))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// checkFrames fails the test if the output is not made of whole frames.
func checkFrames(t testing.TB, out []byte) {
	t.Helper()
	for len(out) > 0 {
		if len(out) < 4 {
			t.Fatalf("%d bytes are left over", len(out))
		}
		n := int(binary.BigEndian.Uint32(out))
		if n < 16 || len(out) < 4+n {
			t.Fatalf("frame of %d bytes in %d", n, len(out))
		}
		out = out[4+n:]
	}
}

func seeds() [][]byte {
	frame := func(op Op, write func(*encoder)) []byte {
		e := encoder{}
		e.int(1)
		e.int(int32(op))
		write(&e)
		return e.b
	}
	create := func(e *encoder, path string, flags int32) {
		e.string(path)
		e.buffer([]byte("x"))
		e.acls(openACL)
		e.int(flags)
	}
	list := [][]byte{
		frame(OpCreate, func(e *encoder) { create(e, "/a", 0) }),
		frame(OpCreate2, func(e *encoder) { create(e, "/a/n-", 3) }),
		frame(OpCreateContainer, func(e *encoder) { create(e, "/c", 4) }),
		frame(OpCreateTTL, func(e *encoder) { create(e, "/t", 5); e.long(1000) }),
		frame(OpDelete, func(e *encoder) { e.string("/a"); e.int(-1) }),
		frame(OpSetData, func(e *encoder) { e.string("/a"); e.buffer(nil); e.int(0) }),
		frame(OpSetACL, func(e *encoder) { e.string("/a"); e.acls([]acl{{31, identity{"auth", ""}}}); e.int(-1) }),
		frame(OpGetData, func(e *encoder) { e.string("/zookeeper"); e.bool(true) }),
		frame(OpGetChildren2, func(e *encoder) { e.string("/"); e.bool(true) }),
		frame(OpGetACL, func(e *encoder) { e.string("/") }),
		frame(OpAuth, func(e *encoder) { e.int(0); e.string("digest"); e.buffer([]byte("a:b")) }),
		frame(OpSetWatches, func(e *encoder) { e.long(0); e.strings([]string{"/"}); e.strings(nil); e.strings(nil) }),
		frame(OpAddWatch, func(e *encoder) { e.string("/a"); e.int(1) }),
		frame(OpRemoveWatches, func(e *encoder) { e.string("/a"); e.int(3) }),
		frame(OpMulti, func(e *encoder) {
			e.multiHeader(int32(OpCreate), 0)
			create(e, "/a", 0)
			e.multiHeader(int32(OpCreate), 0)
			create(e, "/a/b", 2)
			e.multiHeader(int32(OpDelete), 0)
			e.string("/none")
			e.int(-1)
			e.multiEnd()
		}),
		frame(OpMultiRead, func(e *encoder) {
			e.multiHeader(int32(OpGetData), 0)
			e.string("/")
			e.bool(false)
			e.multiEnd()
		}),
		frame(OpWhoAmI, func(*encoder) {}),
		frame(OpCloseSession, func(*encoder) {}),
		frame(77, func(*encoder) {}),
		{},
		{0, 0, 0},
	}
	return list
}

// FuzzRequest sends a session one request after another, cut from the input.
func FuzzRequest(f *testing.F) {
	var all []byte
	for _, seed := range seeds() {
		one := append(binary.BigEndian.AppendUint32(nil, uint32(len(seed))), seed...)
		f.Add(one)
		all = append(all, one...)
	}
	f.Add(all)
	f.Add(bytes.Repeat([]byte{0xff}, 64))
	f.Fuzz(func(t *testing.T, input []byte) {
		s, c := attached(t)
		c.out.b = nil
		for {
			whole, _, bad := scan(input)
			if bad || whole == 0 {
				break
			}
			n := 4 + int(binary.BigEndian.Uint32(input))
			before, zxid := describe(s.tree), s.tree.zxid
			mark := len(c.out.b)
			s.handle(c, input[4:n])
			out := c.out.b[mark:]
			checkFrames(t, out)
			checkTree(t, s.tree)
			failed := len(out) >= 20 && binary.BigEndian.Uint32(out[16:]) != 0
			if failed && describe(s.tree) != before {
				t.Fatalf("a failed request changed the tree:\n%s\n%s", before, describe(s.tree))
			}
			if s.tree.zxid < zxid || s.tree.zxid > zxid+1 {
				t.Fatalf("zxid went from %d to %d", zxid, s.tree.zxid)
			}
			input = input[n:]
		}
	})
}

func FuzzHandshake(f *testing.F) {
	f.Add([]byte{})
	f.Add(make([]byte, 28))
	f.Add(make([]byte, 45))
	f.Fuzz(func(t *testing.T, frame []byte) {
		s, c := newTestConn(t)
		s.handle(c, frame)
		checkFrames(t, c.out.b)
		if c.session == nil && !c.closing {
			t.Error("neither a session nor closed")
		}
	})
}

// A multi that fails undoes all that its first operations did.
func TestMultiRollsBack(t *testing.T) {
	s, c := attached(t)
	run := func(op Op, write func(*encoder)) code {
		e := encoder{}
		e.int(1)
		e.int(int32(op))
		write(&e)
		c.out.b = nil
		s.handle(c, e.b)
		d := decoder{b: c.out.b}
		d.int()
		d.int()
		d.long()
		return code(d.int())
	}
	create := func(e *encoder, path string, flags int32) {
		e.string(path)
		e.buffer([]byte("x"))
		e.acls(openACL)
		e.int(flags)
	}
	for _, path := range []string{"/a", "/a/old", "/b"} {
		if err := run(OpCreate, func(e *encoder) { create(e, path, 0) }); err != codeOK {
			t.Fatal(err)
		}
	}
	before := describe(s.tree)
	run(OpMulti, func(e *encoder) {
		e.multiHeader(int32(OpSetData), 0)
		e.string("/a")
		e.buffer([]byte("new"))
		e.int(0)
		e.multiHeader(int32(OpDelete), 0)
		e.string("/a/old")
		e.int(-1)
		e.multiHeader(int32(OpDelete), 0)
		e.string("/a")
		e.int(1)
		e.multiHeader(int32(OpCreate), 0)
		create(e, "/a", 1)
		e.multiHeader(int32(OpCreate), 0)
		create(e, "/b/s-", 3)
		e.multiHeader(int32(OpCreate), 0)
		create(e, "/a/x", 0)
		e.multiEnd()
	})
	checkTree(t, s.tree)
	if after := describe(s.tree); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}
