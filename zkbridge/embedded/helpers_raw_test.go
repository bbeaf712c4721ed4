package embedded_test

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// rawClient is a client without a library: a test sees each message. openSession opens one with a
// session, and memorySession one in memory.
type rawClient struct {
	t         testing.TB
	nc        net.Conn
	timeLimit time.Duration // of each answer; 0 for none
	r         *bufio.Reader
	xid       int32
	id        int64 // of the session
	password  []byte
	timeout   int32
	short     bool // the server's answer to the handshake has no byte for read-only mode
	zxid      int64
	events    []string
}

type reply struct {
	zxid int64
	err  int32
	body []byte
}

// pack encodes fields in ZooKeeper's serialization, jute.
func pack(fields ...any) []byte {
	var b []byte
	for _, f := range fields {
		switch f := f.(type) {
		case int:
			b = binary.BigEndian.AppendUint32(b, uint32(f))
		case int32:
			b = binary.BigEndian.AppendUint32(b, uint32(f))
		case int64:
			b = binary.BigEndian.AppendUint64(b, uint64(f))
		case embedded.Op:
			b = binary.BigEndian.AppendUint32(b, uint32(f))
		case bool:
			if f {
				b = append(b, 1)
			} else {
				b = append(b, 0)
			}
		case string:
			b = append(appendLength(b, len(f)), f...)
		case []byte:
			if f == nil {
				b = appendLength(b, -1)
			} else {
				b = append(appendLength(b, len(f)), f...)
			}
		case []string:
			b = appendLength(b, len(f))
			for _, s := range f {
				b = append(b, pack(s)...)
			}
		case []zk.ACL:
			b = appendLength(b, len(f))
			for _, a := range f {
				b = append(b, pack(a.Perms, a.Scheme, a.ID)...)
			}
		case packed:
			b = append(b, f...)
		default:
			panic(fmt.Sprintf("cannot pack %T", f))
		}
	}
	return b
}

type packed []byte

func appendLength(b []byte, n int) []byte { return binary.BigEndian.AppendUint32(b, uint32(n)) }

func dialRaw(t testing.TB, addr string) *rawClient {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return rawOver(t, nc)
}

// dialMemory connects to a server in memory. The address matters to Haunt and FreezeAddress.
func dialMemory(t testing.TB, s *embedded.Server, address string) *rawClient {
	t.Helper()
	nc, err := s.Dial(t.Context(), "", address)
	if err != nil {
		t.Fatal(err)
	}
	return rawOver(t, nc)
}

func rawOver(t testing.TB, nc net.Conn) *rawClient {
	t.Cleanup(func() { nc.Close() })
	c := newRaw(t, nc)
	c.timeLimit = timeLimit
	return c
}

// newRaw returns a client without a time limit. The caller closes the connection.
func newRaw(t testing.TB, nc net.Conn) *rawClient {
	return &rawClient{t: t, nc: nc, r: bufio.NewReader(nc), password: make([]byte, 16)}
}

// openSession opens a new session.
func openSession(t testing.TB, addr string, timeout time.Duration) *rawClient {
	t.Helper()
	c := dialRaw(t, addr)
	if !c.connect(timeout, 0, make([]byte, 16), 0) {
		t.Fatal("no session")
	}
	return c
}

// memorySession opens a new session in memory.
func memorySession(t testing.TB, s *embedded.Server, timeout time.Duration) *rawClient {
	t.Helper()
	c := dialMemory(t, s, "")
	if !c.connect(timeout, 0, make([]byte, 16), 0) {
		t.Fatal("no session")
	}
	return c
}

// sendCreate sends the create of an ephemeral node, and returns its xid.
func sendCreate(c *rawClient, path string) int32 {
	return c.request(embedded.OpCreate, path, []byte(nil), open, 1)
}

// connect does the handshake and reports whether there is a session.
func (c *rawClient) connect(timeout time.Duration, id int64, password []byte, zxid int64) bool {
	c.t.Helper()
	c.send(pack(0, zxid, int32(timeout.Milliseconds()), id, password, false))
	d := unpack{t: c.t, b: c.frame()}
	d.int()
	c.timeout, c.id, c.password = d.int(), d.long(), d.bytes()
	c.short = len(d.b) == 0
	if !c.short && (d.byte() != 0 || len(d.b) != 0) {
		c.t.Error("bad end of connect reply")
	}
	return c.id != 0
}

func (c *rawClient) send(frame []byte) {
	c.t.Helper()
	if c.timeLimit > 0 {
		c.nc.SetDeadline(time.Now().Add(c.timeLimit))
	}
	if _, err := c.nc.Write(append(pack(len(frame)), frame...)); err != nil {
		c.t.Fatal(err)
	}
}

func (c *rawClient) frame() []byte {
	c.t.Helper()
	b, err := c.read()
	if err != nil {
		c.t.Fatal(err)
	}
	return b
}

func (c *rawClient) read() ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(c.r, size[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err := io.ReadFull(c.r, b)
	return b, err
}

// closed reports whether the server ends the connection without another frame.
func (c *rawClient) closed() bool {
	_, err := c.read()
	var timeout net.Error
	return err != nil && !(errors.As(err, &timeout) && timeout.Timeout())
}

// request sends a request and returns its xid.
func (c *rawClient) request(op embedded.Op, fields ...any) int32 {
	c.t.Helper()
	xid := c.xid + 1
	switch op {
	case embedded.OpPing:
		xid = -2
	case embedded.OpAuth:
		xid = -4
	case embedded.OpSetWatches, embedded.OpSetWatches2:
		xid = -8
	default:
		c.xid = xid
	}
	c.send(append(pack(xid, op), pack(fields...)...))
	return xid
}

// answer reads up to the reply to xid and collects the events before it.
func (c *rawClient) answer(xid int32) reply {
	c.t.Helper()
	for {
		d := unpack{t: c.t, b: c.frame()}
		got, r := d.int(), reply{}
		r.zxid, r.err, r.body = d.long(), d.int(), d.b
		if got == -1 {
			c.events = append(c.events, fmt.Sprintf("%d %d %s", d.int(), d.int(), d.string()))
			continue
		}
		if got != xid {
			c.t.Fatalf("reply to %d, want %d", got, xid)
		}
		if r.zxid > 0 {
			c.zxid = max(c.zxid, r.zxid)
		}
		return r
	}
}

func (c *rawClient) call(op embedded.Op, fields ...any) reply {
	c.t.Helper()
	return c.answer(c.request(op, fields...))
}

func (c *rawClient) takeEvents() []string {
	events := c.events
	c.events = nil
	return events
}
