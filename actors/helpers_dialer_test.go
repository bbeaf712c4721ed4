package actors_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// dialer is the network between one process and the server. It records the requests, and fails
// where a test has it fail.
type dialer struct {
	// dial is net.Dialer's if it is nil.
	dial func(ctx context.Context, network, address string) (net.Conn, error)
	// write, if not nil, is called with each message but pings in place of the connection's own
	// Write.
	write func(c *wireConn, op embedded.Op, message []byte) (int, error)

	network  sync.Mutex // guards refusing and conns
	refusing bool
	conns    []net.Conn

	mu  sync.Mutex
	ops []embedded.Op
}

// dialingProcess is what a test has of one process: its network and its Locks.
type dialingProcess struct {
	*dialer
	locks *actors.Locks
}

// process returns Locks on a network of their own.
func (b *testLock) process(configure ...func(*actors.Config)) dialingProcess {
	b.Helper()
	d := &dialer{dial: b.Dial}
	return dialingProcess{d, b.locks(append(configure, d.config)...)}
}

// outage has the server or the network fail for a random time.
func (p dialingProcess) outage(v *virtual) {
	length := rand.N(2 * session)
	switch rand.N(3) {
	case 0:
		v.Halt()
		<-time.After(length)
		v.Restart()
	case 1:
		p.disconnect()
		<-time.After(length)
		p.refuse(false)
	default: // no request is answered, and none is lost
		p.refuse(true)
		hole := v.Inject(embedded.Fault{Op: embedded.OpAll, Session: p.locks.Session().ID, Times: -1, Action: embedded.BlackHole})
		<-time.After(length)
		hole.Remove()
		if rand.N(2) == 0 {
			p.cut()
		}
		p.refuse(false)
	}
}

func (d *dialer) config(cfg *actors.Config) { cfg.Dial = d.Dial }

func (d *dialer) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	d.network.Lock()
	defer d.network.Unlock()
	if d.refusing {
		return nil, syscall.ECONNREFUSED
	}
	dial := d.dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	conn, err := dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	d.conns = append(d.conns, conn)
	return &wireConn{Conn: conn, d: d, limit: -1}, nil
}

// refuse has the network refuse new connections, or accept them again.
func (d *dialer) refuse(refuse bool) {
	d.network.Lock()
	defer d.network.Unlock()
	d.refusing = refuse
}

// cut closes all connections.
func (d *dialer) cut() {
	d.network.Lock()
	defer d.network.Unlock()
	for _, conn := range d.conns {
		conn.Close()
	}
	d.conns = nil
}

// disconnect closes all connections and has the network refuse new ones.
func (d *dialer) disconnect() {
	d.refuse(true)
	d.cut()
}

// during counts the requests, without pings, that are sent while f runs.
func (d *dialer) during(f func()) (total int, ops map[embedded.Op]int) {
	ops = map[embedded.Op]int{}
	for _, op := range d.record(f) {
		ops[op]++
		total++
	}
	return total, ops
}

// record returns the requests that are sent while f runs, in their order, without pings.
func (d *dialer) record(f func()) []embedded.Op {
	d.takeRequests()
	f()
	return d.requests()
}

// requests returns the requests since the last call of takeRequests.
func (d *dialer) requests() []embedded.Op {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.ops)
}

// takeRequests returns the recorded requests, and forgets them.
func (d *dialer) takeRequests() []embedded.Op {
	d.mu.Lock()
	defer d.mu.Unlock()
	ops := d.ops
	d.ops = nil
	return ops
}

// waitIdle waits until no request has been sent for a while, as all watches are set.
func (d *dialer) waitIdle(t testing.TB) {
	t.Helper()
	zktest.Eventually(t, timeLimit, func() bool {
		n, _ := d.during(func() { <-time.After(50 * time.Millisecond) })
		return n == 0
	}, "no request is sent")
}

// wireConn is a connection of a dialer.
type wireConn struct {
	net.Conn
	d      *dialer
	writes int

	mu    sync.Mutex
	limit int // of bytes that may still be read; -1 for no limit
}

// Write writes one message: the client passes one at a time.
func (c *wireConn) Write(message []byte) (int, error) {
	op := embedded.OpConnect
	if c.writes++; c.writes > 1 && len(message) >= 12 {
		op = embedded.Op(binary.BigEndian.Uint32(message[8:]))
	}
	if op == embedded.OpPing {
		return c.Conn.Write(message)
	}
	if op != embedded.OpConnect {
		c.d.mu.Lock()
		c.d.ops = append(c.d.ops, op)
		c.d.mu.Unlock()
	}
	if c.d.write == nil {
		return c.Conn.Write(message)
	}
	return c.d.write(c, op, message)
}

var errCut = errors.New("the connection is cut")

// cut closes the connection before the message is sent.
func (c *wireConn) cut() (int, error) {
	c.Conn.Close()
	return 0, errCut
}

// unanswered sends the message, reads no answer, and closes the connection a little later.
func (c *wireConn) unanswered(message []byte) (int, error) {
	c.setLimit(0)
	n, err := c.Conn.Write(message)
	time.AfterFunc(30*time.Millisecond, func() { c.Conn.Close() })
	return n, err
}

func (c *wireConn) setLimit(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limit = n
}

func (c *wireConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.mu.Lock()
	limit := c.limit
	c.mu.Unlock()
	switch {
	case err != nil || limit < 0:
		return n, err
	case limit > 0:
		c.Conn.Close()
		return min(n, limit), nil
	}
	for err == nil { // read and drop all bytes until the client closes the connection
		_, err = c.Conn.Read(b)
	}
	return 0, err
}
