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

// dialer is the network between one process and the server. It records the requests, and fails as a test wants.
type dialer struct {
	// dial is net.Dialer's if it is nil.
	dial func(ctx context.Context, network, address string) (net.Conn, error)
	// write, if not nil, is called with each message but pings in place of the connection's own Write.
	write func(c *wireConn, op embedded.Op, message []byte) (int, error)

	network sync.Mutex // of away and conns
	away    bool
	conns   []net.Conn

	mu  sync.Mutex
	ops []embedded.Op
}

// dialingProcess stands for one process: its network and its Locks.
type dialingProcess struct {
	*dialer
	locks *actors.Locks
}

// process connects by a network of its own.
func (b *testLock) process(configure ...func(*actors.Config)) dialingProcess {
	b.Helper()
	d := &dialer{dial: b.Dial}
	return dialingProcess{d, b.locks(append(configure, d.config)...)}
}

// outage befalls the process, or the server.
func (p dialingProcess) outage(v *virtual) {
	length := rand.N(2 * session)
	switch rand.N(3) {
	case 0:
		v.Halt()
		<-time.After(length)
		v.Restart()
	case 1:
		p.fail(true, true)
		<-time.After(length)
		p.fail(false, false)
	default: // nothing is answered, and what is sent is not lost
		p.fail(true, false)
		hole := v.Inject(embedded.Fault{Op: embedded.OpAll, Session: p.locks.Session().ID, Times: -1, Action: embedded.BlackHole})
		<-time.After(length)
		hole.Remove()
		p.fail(false, rand.N(2) == 0)
	}
}

func (d *dialer) config(cfg *actors.Config) { cfg.Dial = d.Dial }

func (d *dialer) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	d.network.Lock()
	defer d.network.Unlock()
	if d.away {
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

// fail has the network refuse connections, or take them again. With cut it closes those that
// there are.
func (d *dialer) fail(away, cut bool) {
	d.network.Lock()
	defer d.network.Unlock()
	d.away = away
	if cut {
		for _, conn := range d.conns {
			conn.Close()
		}
		d.conns = nil
	}
}

// during counts the requests, pings left out, while f runs.
func (d *dialer) during(f func()) (total int, ops map[embedded.Op]int) {
	ops = map[embedded.Op]int{}
	for _, op := range d.record(f) {
		ops[op]++
		total++
	}
	return total, ops
}

// record returns the requests that were sent while f ran, in their order, without pings.
func (d *dialer) record(f func()) []embedded.Op {
	d.take()
	f()
	return d.seen()
}

// seen returns the requests since the last call of take.
func (d *dialer) seen() []embedded.Op {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.ops)
}

func (d *dialer) take() []embedded.Op {
	d.mu.Lock()
	defer d.mu.Unlock()
	ops := d.ops
	d.ops = nil
	return ops
}

// settle waits until nothing has been asked for a while: a directory is being watched.
func (d *dialer) settle(t testing.TB) {
	t.Helper()
	zktest.Eventually(t, patience, func() bool {
		n, _ := d.during(func() { <-time.After(50 * time.Millisecond) })
		return n == 0
	}, "nothing is asked for")
}

// wireConn is a connection of a dialer.
type wireConn struct {
	net.Conn
	d      *dialer
	writes int

	mu    sync.Mutex
	limit int // of bytes that may still be read; -1 for no limit
}

// Write is given one message at a time.
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

var errWire = errors.New("the wire has failed")

func (c *wireConn) cut() (int, error) {
	c.Conn.Close()
	return 0, errWire
}

// unanswered sends the message and cuts the connection once the server has answered,
// or after a while.
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
	case limit > 0: // and then the end
		c.Conn.Close()
		return min(n, limit), nil
	}
	for err == nil { // read and drop all bytes until the client closes the connection
		_, err = c.Conn.Read(b)
	}
	return 0, err
}
