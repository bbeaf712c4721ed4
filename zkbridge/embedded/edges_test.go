package embedded_test

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// edges are unusual uses of the protocol. Each returns what the client receives, which is the same
// from both servers.
var edges = map[string]edge{
	"unknown opcode": {"{-1 -6 []} true", func(t testing.TB, addr string) string {
		c := openSession(t, addr, 10*time.Second)
		return fmt.Sprint(c.call(77), c.closed())
	}},
	"reconfig": {"-123", func(t testing.TB, addr string) string {
		c := openSession(t, addr, 10*time.Second)
		return fmt.Sprint(c.call(embedded.OpReconfig, []byte(nil), []byte(nil), []byte(nil), int64(-1)).err)
	}},
	"truncated header": {"true", func(t testing.TB, addr string) string {
		c := openSession(t, addr, 10*time.Second)
		c.send(pack(1))
		return fmt.Sprint(c.closed())
	}},
	"negative length": {"true", func(t testing.TB, addr string) string {
		c := openSession(t, addr, 10*time.Second)
		c.nc.Write(pack(-5))
		return fmt.Sprint(c.closed())
	}},
	"frame too large": {"true", func(t testing.TB, addr string) string {
		c := openSession(t, addr, 10*time.Second)
		c.nc.Write(pack(0x100000))
		return fmt.Sprint(c.closed())
	}},
	"largest frame": {"0\x00\x00\x00\x04/big1048596", func(t testing.TB, addr string) string {
		c := openSession(t, addr, 10*time.Second)
		rest := len(pack(1, 1, "/big", []byte{}, open, 1))
		r := c.call(embedded.OpCreate, "/big", make([]byte, 0xfffff-rest), open, 1)
		return fmt.Sprint(r.err, string(r.body), len(c.call(embedded.OpGetData, "/big", false).body))
	}},
	"garbage for a handshake": {"true", func(t testing.TB, addr string) string {
		c := dialRaw(t, addr)
		c.send(pack(1, 2))
		return fmt.Sprint(c.closed())
	}},
	"request before the handshake": {"true", func(t testing.TB, addr string) string {
		c := dialRaw(t, addr)
		c.send(pack(1, embedded.OpPing))
		return fmt.Sprint(c.closed())
	}},
	"handshake of an old client": {"36", func(t testing.TB, addr string) string {
		c := dialRaw(t, addr)
		c.send(pack(0, int64(0), 10000, int64(0), make([]byte, 16)))
		return fmt.Sprint(len(c.frame()))
	}},
	"handshake of a read-only client": {"37", func(t testing.TB, addr string) string {
		c := dialRaw(t, addr)
		c.send(pack(0, int64(0), 10000, int64(0), []byte(nil), true))
		return fmt.Sprint(len(c.frame()))
	}},
	"client with a later zxid": {"true", func(t testing.TB, addr string) string {
		c := dialRaw(t, addr)
		c.send(pack(0, int64(1)<<40, 10000, int64(0), make([]byte, 16), false))
		return fmt.Sprint(c.closed())
	}},
	"unknown session": {"false 0 0 [0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0] true", func(t testing.TB, addr string) string {
		c := dialRaw(t, addr)
		ok := c.connect(10*time.Second, 0x1234, make([]byte, 16), 0)
		return fmt.Sprint(ok, c.id, c.timeout, c.password, c.closed())
	}},
	"wrong password": {"false 0 0 [0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0] true true", func(t testing.TB, addr string) string {
		old := openSession(t, addr, 10*time.Second)
		c := dialRaw(t, addr)
		ok := c.connect(10*time.Second, old.id, make([]byte, 16), 0)
		return fmt.Sprint(ok, c.id, c.timeout, c.password, c.closed(), old.closed())
	}},
	"session taken over": {"true true 6000 true true []", func(t testing.TB, addr string) string {
		old := openSession(t, addr, 10*time.Second)
		old.call(embedded.OpExists, "/taken", true)
		c := dialRaw(t, addr)
		ok := c.connect(6*time.Second, old.id, old.password, 0)
		c.call(embedded.OpCreate, "/taken", []byte(nil), open, 1)
		return fmt.Sprint(ok, c.id == old.id, c.timeout, string(c.password) == string(old.password), old.closed(), c.events)
	}},
	"timeouts": {"4000 5000 40000", func(t testing.TB, addr string) string {
		return fmt.Sprint(openSession(t, addr, time.Millisecond).timeout, openSession(t, addr, 5*time.Second).timeout,
			openSession(t, addr, time.Hour).timeout)
	}},
	"unknown scheme": {"{0 -115 []} true", func(t testing.TB, addr string) string {
		c := openSession(t, addr, 10*time.Second)
		return fmt.Sprint(c.call(embedded.OpAuth, 0, "kerberos", []byte("x")), c.closed())
	}},
	"closing session receives events of its own nodes": {"0 [2 3 /own] true", func(t testing.TB, addr string) string {
		c := openSession(t, addr, 10*time.Second)
		c.call(embedded.OpCreate, "/own", []byte(nil), open, 1)
		c.call(embedded.OpExists, "/own", true)
		c.call(embedded.OpGetChildren, "/own", true)
		r := c.call(embedded.OpCloseSession)
		return fmt.Sprint(r.err, c.events, c.closed())
	}},
	"close": {"0 true", func(t testing.TB, addr string) string {
		c := openSession(t, addr, 10*time.Second)
		closing := c.request(embedded.OpCloseSession)
		return fmt.Sprint(c.answer(closing).err, c.closed())
	}},
	"data watch and child watch on one node": {"[2 3 /both]", func(t testing.TB, addr string) string {
		c := openSession(t, addr, 10*time.Second)
		c.call(embedded.OpCreate, "/both", []byte(nil), open, 1)
		c.call(embedded.OpGetData, "/both", true)
		c.call(embedded.OpGetChildren, "/both", true)
		c.call(embedded.OpDelete, "/both", -1)
		return fmt.Sprint(c.events)
	}},
	"null path": {"-5 -5", func(t testing.TB, addr string) string {
		c := openSession(t, addr, 10*time.Second)
		return fmt.Sprint(c.call(embedded.OpGetData, -1, false).err, c.call(embedded.OpCreate, -1, []byte{}, open, 0).err)
	}},
	"null vector of watches": {"-5", func(t testing.TB, addr string) string {
		c := openSession(t, addr, 10*time.Second)
		return fmt.Sprint(c.call(embedded.OpSetWatches, int64(0), -1, -1, -1).err)
	}},
	"vector longer than the frame": {"-5 -5 -5", func(t testing.TB, addr string) string {
		c := openSession(t, addr, 10*time.Second)
		return fmt.Sprint(c.call(embedded.OpCreate, "/v", []byte(nil), 1<<30, 0).err,
			c.call(embedded.OpSetWatches, int64(0), 1<<30).err, c.call(embedded.OpMulti).err)
	}},
	"check alone": {checkAlone, func(t testing.TB, addr string) string {
		c := openSession(t, addr, 10*time.Second)
		failed := c.call(embedded.OpCheck, "/none", -1)
		return fmt.Sprint(failed.err, len(failed.body))
	}},
	"empty frame": {"true", func(t testing.TB, addr string) string {
		c := openSession(t, addr, 10*time.Second)
		c.send(nil)
		return fmt.Sprint(c.closed())
	}},
	"empty frame for a handshake": {"true", func(t testing.TB, addr string) string {
		c := dialRaw(t, addr)
		c.send(nil)
		return fmt.Sprint(c.closed())
	}},
	"unknown four-letter word": {"true", func(t testing.TB, addr string) string {
		c := dialRaw(t, addr)
		c.nc.Write([]byte("abcd"))
		return fmt.Sprint(c.closed())
	}},
	"frame that never ends": {"true", func(t testing.TB, addr string) string {
		c := openSession(t, addr, 10*time.Second)
		c.nc.Write(pack(100, 1, embedded.OpCreate))
		c.nc.(*net.TCPConn).CloseWrite()
		return fmt.Sprint(c.closed())
	}},
	"negative timeout": {"4000", func(t testing.TB, addr string) string {
		return fmt.Sprint(openSession(t, addr, -time.Second).timeout)
	}},
	"other protocol version": {"0 10000", func(t testing.TB, addr string) string {
		c := dialRaw(t, addr)
		c.send(pack(7, int64(0), 10000, int64(0), make([]byte, 16), false))
		d := unpack{t: t, b: c.frame()}
		return fmt.Sprint(d.int(), d.int())
	}},
	"short password": {"false", func(t testing.TB, addr string) string {
		old, c := openSession(t, addr, 10*time.Second), dialRaw(t, addr)
		return fmt.Sprint(c.connect(10*time.Second, old.id, old.password[:3], 0))
	}},
	"second handshake": {"[0 0 0 0 255 255 255 255 255 255 255 255 255 255 255 250] <nil> true", func(t testing.TB, addr string) string {
		c := openSession(t, addr, 10*time.Second)
		c.send(pack(0, int64(0), 10000, int64(0), make([]byte, 16), false))
		f, err := c.read()
		return fmt.Sprint(f, err, c.closed())
	}},
	"multi without an end": {"-5", func(t testing.TB, addr string) string {
		c := openSession(t, addr, 10*time.Second)
		return fmt.Sprint(c.call(embedded.OpMulti, embedded.OpCheck, false, -1, "/", -1).err)
	}},
	"unknown operation in a multi": {"-5", func(t testing.TB, addr string) string {
		c := openSession(t, addr, 10*time.Second)
		return fmt.Sprint(c.call(embedded.OpMulti, 99, false, -1, "/", -1, -1, true, -1).err)
	}},
	"negative number of ACLs": {"-114", func(t testing.TB, addr string) string {
		c := openSession(t, addr, 10*time.Second)
		return fmt.Sprint(c.call(embedded.OpCreate, "/acls", []byte(nil), -1, 0).err)
	}},
	"negative length of data": {"-5", func(t testing.TB, addr string) string {
		c := openSession(t, addr, 10*time.Second)
		return fmt.Sprint(c.call(embedded.OpCreate, "/data", -7, open, 0).err)
	}},
	"bytes after the request": {"-101", func(t testing.TB, addr string) string {
		c := openSession(t, addr, 10*time.Second)
		return fmt.Sprint(c.call(embedded.OpExists, "/none", false, "and more").err)
	}},
	"truncated authentication": {"true", func(t testing.TB, addr string) string {
		c := openSession(t, addr, 10*time.Second)
		c.request(embedded.OpAuth, 0, "digest")
		return fmt.Sprint(c.closed())
	}},
	"ping with another number": {"0", func(t testing.TB, addr string) string {
		c := openSession(t, addr, 10*time.Second)
		c.send(pack(5, embedded.OpPing))
		return fmt.Sprint(c.answer(-2).err)
	}},
	"closed in a pipeline": {"-101 0", func(t testing.TB, addr string) string {
		c := openSession(t, addr, 10*time.Second)
		first, closing := c.request(embedded.OpExists, "/none", false), c.request(embedded.OpCloseSession)
		c.request(embedded.OpExists, "/none", false)
		return fmt.Sprint(c.answer(first).err, c.answer(closing).err) // ZooKeeper may answer the last one or not
	}},
	"characters outside the basic plane": {"-8", func(t testing.TB, addr string) string {
		c := openSession(t, addr, 10*time.Second)
		return fmt.Sprint(c.call(embedded.OpCreate, "/\U0001f600", []byte(nil), open, 1).err)
	}},
}

// edge is one of the edges. Where versions of ZooKeeper differ, want is a key of byVersion.
type edge struct {
	want string
	run  func(t testing.TB, addr string) string
}

const checkAlone = "check alone"

// byVersion has what versions from 3.8.5 and 3.9.3 on answer, and those before.
var byVersion = map[string]struct{ now, before string }{checkAlone: {"-6 0", "-101 0"}}

func TestEdges(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"3.8.0", "3.9.3"} {
		t.Run("embedded "+version, func(t *testing.T) {
			testEdges(t, embedded.Run(t, embedded.ServerConfig{Version: version}).Addr(), version)
		})
	}
	t.Run("zookeeper", func(t *testing.T) {
		s := zktest.Own(t, zktest.TickTime(2*time.Second), zktest.Setting("maxSessionTimeout", "40000"))
		testEdges(t, s.Addr(), s.Version(t))
	})
}

func testEdges(t *testing.T, addr, version string) {
	for name, edge := range edges {
		expected := edge.want
		if v, differs := byVersion[expected]; differs {
			expected = v.now
			if before385.MatchString(version) {
				expected = v.before
			}
		}
		t.Run(name, func(t *testing.T) { want(t, "received", edge.run(t, addr), expected) })
	}
}
