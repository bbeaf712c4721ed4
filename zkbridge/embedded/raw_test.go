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

// raw is a client that shows the protocol as it is.
type raw struct {
	t        testing.TB
	nc       net.Conn
	patience time.Duration // with each answer; 0 for no limit
	r        *bufio.Reader
	xid      int32
	id       int64
	password []byte
	timeout  int32
	zxid     int64
	events   []string
}

type reply struct {
	zxid int64
	err  int32
	body []byte
}

// pack encodes fields as jute does.
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
			b = append(pack2(b, len(f)), f...)
		case []byte:
			if f == nil {
				b = pack2(b, -1)
			} else {
				b = append(pack2(b, len(f)), f...)
			}
		case []string:
			b = pack2(b, len(f))
			for _, s := range f {
				b = append(b, pack(s)...)
			}
		case []zk.ACL:
			b = pack2(b, len(f))
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

func pack2(b []byte, n int) []byte { return binary.BigEndian.AppendUint32(b, uint32(n)) }

func dialRaw(t testing.TB, addr string) *raw {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return rawOn(t, nc)
}

func rawOn(t testing.TB, nc net.Conn) *raw {
	t.Cleanup(func() { nc.Close() })
	c := newRaw(t, nc)
	c.patience = time.Minute
	return c
}

// newRaw is for a connection that the caller closes.
func newRaw(t testing.TB, nc net.Conn) *raw {
	return &raw{t: t, nc: nc, r: bufio.NewReader(nc), password: make([]byte, 16)}
}

// session opens a new session.
func session(t testing.TB, addr string, timeout time.Duration) *raw {
	t.Helper()
	c := dialRaw(t, addr)
	if !c.attach(timeout, 0, make([]byte, 16), 0) {
		t.Fatal("no session")
	}
	return c
}

// attach does the handshake and reports whether there is a session.
func (c *raw) attach(timeout time.Duration, id int64, password []byte, zxid int64) bool {
	c.t.Helper()
	c.send(pack(0, zxid, int32(timeout.Milliseconds()), id, password, false))
	d := unpack{t: c.t, b: c.frame()}
	d.int()
	c.timeout, c.id, c.password = d.int(), d.long(), d.bytes()
	if d.byte() != 0 || len(d.b) != 0 {
		c.t.Error("bad end of connect reply")
	}
	return c.id != 0
}

func (c *raw) send(frame []byte) {
	c.t.Helper()
	if c.patience > 0 {
		c.nc.SetDeadline(time.Now().Add(c.patience))
	}
	if _, err := c.nc.Write(append(pack(len(frame)), frame...)); err != nil {
		c.t.Fatal(err)
	}
}

func (c *raw) frame() []byte {
	c.t.Helper()
	b, err := c.read()
	if err != nil {
		c.t.Fatal(err)
	}
	return b
}

func (c *raw) read() ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(c.r, size[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err := io.ReadFull(c.r, b)
	return b, err
}

// closed reports whether the server ends the connection without another frame.
func (c *raw) closed() bool {
	_, err := c.read()
	var timeout net.Error
	return err != nil && !(errors.As(err, &timeout) && timeout.Timeout())
}

// request sends a request and returns its xid.
func (c *raw) request(op embedded.Op, fields ...any) int32 {
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
func (c *raw) answer(xid int32) reply {
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

func (c *raw) call(op embedded.Op, fields ...any) reply {
	c.t.Helper()
	return c.answer(c.request(op, fields...))
}

func (c *raw) takeEvents() []string {
	events := c.events
	c.events = nil
	return events
}
