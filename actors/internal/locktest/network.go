package locktest

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

// Network is the network between one process and the server. It records the requests, and fails
// where a test has it fail.
type Network struct {
	// dial is net.Dialer's if it is nil.
	dial func(ctx context.Context, network, address string) (net.Conn, error)
	// OnWrite, if not nil, is called with each message but pings in place of the connection's own
	// Write.
	OnWrite func(c *WireConn, op embedded.Op, message []byte) (int, error)
	// OnAnswer, if not nil, is called with each message of the server, and returns what the client gets
	// in its place.
	OnAnswer func(Answer) [][]byte

	network  sync.Mutex // guards refusing and conns
	refusing bool
	conns    []net.Conn

	mu  sync.Mutex
	ops []embedded.Op
}

// Process is what a test has of one process: its network and its Locks.
type Process struct {
	*Network
	Locks *actors.Locks
}

// Process returns Locks on a network of their own.
func (b *Fixture) Process(configure ...func(*actors.Config)) Process {
	b.Helper()
	return b.ProcessOn(&Network{}, configure...)
}

// ProcessOn returns Locks on a network.
func (b *Fixture) ProcessOn(d *Network, configure ...func(*actors.Config)) Process {
	b.Helper()
	return Process{d, b.Locks(append(configure, d.To(b).Config)...)}
}

// To has the network lead to the server of a Fixture.
func (d *Network) To(b *Fixture) *Network {
	d.dial = b.Dial
	return d
}

// Outage has the server or the network fail for a random time.
func (p Process) Outage(v *Virtual) {
	length := rand.N(2 * SessionTimeout)
	switch rand.N(3) {
	case 0:
		v.Halt()
		<-time.After(length)
		v.Restart()
	case 1:
		p.Disconnect()
		<-time.After(length)
		p.Refuse(false)
	default: // no request is answered, and none is lost
		p.Refuse(true)
		hole := v.Inject(embedded.Fault{Op: embedded.OpAll, Session: p.Locks.Session().ID, Times: -1, Action: embedded.BlackHole})
		<-time.After(length)
		hole.Remove()
		if rand.N(2) == 0 {
			p.cut()
		}
		p.Refuse(false)
	}
}

// Config has Locks connect through the network.
func (d *Network) Config(cfg *actors.Config) { cfg.Dial = d.Dial }

// Dial connects to the server, unless the network refuses that.
func (d *Network) Dial(ctx context.Context, network, address string) (net.Conn, error) {
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
	c := &WireConn{Conn: conn, d: d, limit: -1}
	if d.OnAnswer != nil {
		c.tamper = &tamper{change: d.OnAnswer}
	}
	return c, nil
}

// Refuse has the network refuse new connections, or accept them again.
func (d *Network) Refuse(refuse bool) {
	d.network.Lock()
	defer d.network.Unlock()
	d.refusing = refuse
}

// cut closes all connections.
func (d *Network) cut() {
	d.network.Lock()
	defer d.network.Unlock()
	for _, conn := range d.conns {
		conn.Close()
	}
	d.conns = nil
}

// Disconnect closes all connections and has the network refuse new ones.
func (d *Network) Disconnect() {
	d.Refuse(true)
	d.cut()
}

// During counts the requests, without pings, that are sent while f runs.
func (d *Network) During(f func()) (total int, ops map[embedded.Op]int) {
	ops = map[embedded.Op]int{}
	for _, op := range d.Record(f) {
		ops[op]++
		total++
	}
	return total, ops
}

// WithoutTickReads returns how many of the requests that During has returned are not reads of the
// holder's nodes by a tick, and takes those out of ops. A tick reads each node once, a second or
// more after the grant, so that none is taken out if less has passed since.
func WithoutTickReads(ops map[embedded.Op]int, since time.Time, nodes int) (total int) {
	if time.Since(since) >= time.Second {
		ops[embedded.OpGetData] -= min(ops[embedded.OpGetData], nodes)
	}
	for _, n := range ops {
		total += n
	}
	return total
}

// Record returns the requests that are sent while f runs, in their order, without pings.
func (d *Network) Record(f func()) []embedded.Op {
	d.TakeRequests()
	f()
	return d.Requests()
}

// Requests returns the requests since the last call of TakeRequests.
func (d *Network) Requests() []embedded.Op {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.ops)
}

// TakeRequests returns the recorded requests, and forgets them.
func (d *Network) TakeRequests() []embedded.Op {
	d.mu.Lock()
	defer d.mu.Unlock()
	ops := d.ops
	d.ops = nil
	return ops
}

// requestsIn returns the requests that one write has, without pings.
func requestsIn(written []byte) (ops []embedded.Op) {
	for len(written) >= 12 {
		if op := embedded.Op(binary.BigEndian.Uint32(written[8:])); op != embedded.OpPing {
			ops = append(ops, op)
		}
		written = written[min(len(written), 4+int(binary.BigEndian.Uint32(written))):]
	}
	return ops
}

// WaitIdle waits until no request has been sent for a while, as all watches are set.
func (d *Network) WaitIdle(t testing.TB) {
	t.Helper()
	zktest.Eventually(t, zktest.TimeLimit, func() bool {
		n, _ := d.During(func() { <-time.After(50 * time.Millisecond) })
		return n == 0
	}, "no request is sent")
}

// WireConn is a connection of a Network.
type WireConn struct {
	net.Conn
	d      *Network
	Writes int
	tamper *tamper // nil without OnAnswer

	mu    sync.Mutex
	limit int // of bytes that may still be read; -1 for no limit
}

// Write writes messages: the client passes whole ones.
func (c *WireConn) Write(message []byte) (int, error) {
	if c.tamper != nil {
		c.tamper.note(message)
	}
	op := embedded.OpConnect
	if c.Writes++; c.Writes > 1 && len(message) >= 12 {
		op = embedded.Op(binary.BigEndian.Uint32(message[8:]))
	}
	if op == embedded.OpPing {
		return c.Conn.Write(message)
	}
	if op != embedded.OpConnect {
		c.d.mu.Lock()
		c.d.ops = append(c.d.ops, requestsIn(message)...)
		c.d.mu.Unlock()
	}
	if c.d.OnWrite == nil {
		return c.Conn.Write(message)
	}
	return c.d.OnWrite(c, op, message)
}

var errCut = errors.New("the connection is cut")

// Cut closes the connection before the message is sent.
func (c *WireConn) Cut() (int, error) {
	c.Conn.Close()
	return 0, errCut
}

// Unanswered sends the message, reads no answer, and closes the connection a little later.
func (c *WireConn) Unanswered(message []byte) (int, error) {
	c.SetLimit(0)
	n, err := c.Conn.Write(message)
	time.AfterFunc(30*time.Millisecond, func() { c.Conn.Close() })
	return n, err
}

// SetLimit sets how many bytes may still be read before the connection is closed; -1 is for no
// limit. With 0 the connection stays open, and the client gets nothing.
func (c *WireConn) SetLimit(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limit = n
}

// Read reads as many bytes as the limit allows.
func (c *WireConn) Read(b []byte) (int, error) {
	n, err := 0, error(nil)
	if c.tamper != nil {
		n, err = c.tamper.read(c.Conn.Read, b)
	} else {
		n, err = c.Conn.Read(b)
	}
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

// ClosingFaults keep a session from being closed, or delay that.
var ClosingFaults = []embedded.Fault{
	{Op: embedded.OpCloseSession, Action: embedded.CutBefore},
	{Op: embedded.OpCloseSession, Action: embedded.DropReply},
	{Op: embedded.OpCloseSession, Action: embedded.BlackHole},
	{Op: embedded.OpCloseSession, Action: embedded.DelayRequest, Delay: time.Second},
	{Op: embedded.OpConnect, Nth: 2, Action: embedded.DropReply},
	{Op: embedded.OpConnect, Nth: 2, Action: embedded.BlackHoleAfter},
	{Op: embedded.OpMulti, Action: embedded.DelayRequest, Delay: SessionTimeout},
}
