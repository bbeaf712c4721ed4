package simulation

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// network connects clients with the embedded server. What is written to a connection waits
// in a queue until the driver delivers it: in order, after a delay of the seed's.
type network struct {
	d        *driver
	hosts    []*host       // of all clients
	accepted chan net.Conn // what the server's listener returns
	closed   chan struct{}
	refusing atomic.Bool // all servers are away
	servers  []*member
}

func newNetwork(d *driver, servers int) *network {
	n := &network{d: d, accepted: make(chan net.Conn, 64), closed: make(chan struct{})}
	for i := range servers {
		n.servers = append(n.servers, &member{address: address(fmt.Sprint("server", i))})
	}
	return n
}

// Accept, Close and Addr implement net.Listener, for the server.

func (n *network) Accept() (net.Conn, error) {
	select {
	case c := <-n.accepted:
		return c, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

func (n *network) Close() error   { close(n.closed); return nil }
func (n *network) Addr() net.Addr { return address("server") }

type address string

func (address) Network() string  { return "simulated" }
func (a address) String() string { return string(a) }

// host is a client's side of the network.
type host struct {
	name string
	net  *network
	seed uint64

	plain bool          // go-zookeeper's client alone, which dials the first server only
	far   time.Duration // the greatest delay, beside what faults add

	mu      sync.Mutex
	dialed  uint64
	links   []*connection // that are open
	slow    time.Duration // added to each delay
	late    time.Duration // added to the delay of what the server sends
	mute    bool          // nothing is delivered to the server
	dead    bool          // it dials no more, and hears nothing
	holding bool          // nothing is delivered, in either direction
}

// newHost makes a client's side.
func (n *network) newHost(name string, seed uint64) *host {
	h := &host{name: name, net: n, seed: seed, far: near}
	n.hosts = append(n.hosts, h)
	return h
}

// near is the greatest delay of a client that is near the server.
const near = time.Millisecond

// dial has the type of actors.Config.Dial.
func (h *host) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	h.mu.Lock()
	h.dialed++
	n := h.dialed
	dead := h.dead
	h.mu.Unlock()
	to := h.server(n)
	if dead || h.net.refusing.Load() || to.away.Load() {
		h.net.d.line("%s.%d is refused", h.name, n)
		return nil, &net.OpError{Op: "dial", Net: "simulated", Err: syscall.ECONNREFUSED}
	}
	c := &connection{host: h, number: n, to: to}
	c.name = fmt.Sprintf("%s.%d", h.name, n)
	for i, to := range []string{"server", "client"} {
		p := &c.pipes[i]
		p.c, p.to = c, to
		p.rand = rand.New(rand.NewPCG(h.seed, n<<1|uint64(i)))
		p.changed = sync.NewCond(&p.mu)
	}
	client := &endpoint{c: c, in: &c.pipes[1], out: &c.pipes[0]}
	server := &endpoint{c: c, in: &c.pipes[0], out: &c.pipes[1], local: to.address}
	h.mu.Lock()
	h.links = append(h.links, c)
	h.mu.Unlock()
	h.net.accepted <- server
	return client, nil
}

// hash returns the hash of the sent bytes. It returns 0 for a plain client: go-zookeeper lists the
// watches that it sets again in the order of a map.
func (h *host) hash(b []byte) uint64 {
	if h.plain {
		return 0
	}
	return hash(b)
}

// cut breaks all connections of the host: what is on its way is lost.
func (h *host) cut() {
	for _, c := range h.take() {
		c.cut()
	}
}

func (h *host) take() []*connection {
	h.mu.Lock()
	defer h.mu.Unlock()
	links := h.links
	h.links = nil
	return links
}

// slowDown adds to each delay.
func (h *host) slowDown(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.slow = d
}

// answerLate adds to the delay of what the server sends.
func (h *host) answerLate(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.late = d
}

// silence stops what is sent to the server; what the server has sent before still comes.
func (h *host) silence() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mute = true
}

// die has the host dial no more.
func (h *host) die() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dead = true
}

// hold stops all deliveries, or lets them go on.
func (h *host) hold(holding bool) {
	h.mu.Lock()
	h.holding, h.mute = holding, false
	links := append([]*connection(nil), h.links...)
	h.mu.Unlock()
	if holding {
		return
	}
	for _, c := range links {
		for i := range c.pipes {
			c.pipes[i].schedule()
		}
	}
}

func (h *host) delay(r *rand.Rand, to string) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	more := h.slow
	if to == "client" {
		more += h.late
	}
	return more + h.soonest() + time.Duration(r.Int64N(int64(h.far)*9/10))
}

// soonest is the shortest delay.
func (h *host) soonest() time.Duration { return h.far / 10 }

func (h *host) isHolding(to string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.holding || h.mute && to == "server"
}

// connection is two pipes: to the server and to the client.
type connection struct {
	host   *host
	to     *member
	number uint64
	name   string
	pipes  [2]pipe
}

func (c *connection) cut() {
	for i := range c.pipes {
		c.pipes[i].fail(syscall.ECONNRESET)
	}
}

// pipe is one direction of a connection.
type pipe struct {
	c    *connection
	to   string
	rand *rand.Rand

	mu        sync.Mutex
	changed   *sync.Cond
	chunks    []chunk // on their way
	scheduled bool    // the driver has an event for the first chunk
	ending    bool    // the writer has closed it behind the chunks
	buf       []byte  // delivered
	err       error   // what reading returns behind buf
	deadline  time.Time
	timer     *time.Timer
}

// chunk is what one call has written, and when it is to be delivered at the earliest.
type chunk struct {
	bytes []byte
	due   time.Duration
}

func (p *pipe) write(b []byte) (int, error) {
	p.mu.Lock()
	if p.ending || p.err != nil {
		p.mu.Unlock()
		return 0, &net.OpError{Op: "write", Net: "simulated", Err: syscall.EPIPE}
	}
	b = append([]byte(nil), b...)
	p.chunks = append(p.chunks, chunk{b, p.c.host.net.d.now() + p.c.host.delay(p.rand, p.to)})
	p.mu.Unlock()
	p.schedule()
	return len(b), nil
}

// schedule has the driver deliver the next chunk.
func (p *pipe) schedule() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.scheduled || len(p.chunks) == 0 && !p.ending || p.err != nil || p.c.host.isHolding(p.to) {
		return
	}
	p.scheduled = true
	d := p.c.host.net.d
	due := d.now() + p.c.host.delay(p.rand, p.to)
	if len(p.chunks) > 0 {
		due = max(p.chunks[0].due, d.now()+time.Duration(1000+p.rand.IntN(9000)))
	}
	d.at(due, p.deliver)
}

// deliver moves the first chunk to its reader: all of it, or a piece.
func (p *pipe) deliver() {
	p.mu.Lock()
	p.scheduled = false
	switch {
	case p.err != nil || p.c.host.isHolding(p.to):
		p.mu.Unlock()
		return
	case len(p.chunks) > 0:
		chunk := p.chunks[0].bytes
		n := len(chunk)
		if n > 1 && p.rand.IntN(20) == 0 {
			n = 1 + p.rand.IntN(n-1)
		}
		p.buf = append(p.buf, chunk[:n]...)
		if n < len(chunk) {
			p.chunks[0].bytes = chunk[n:]
		} else {
			p.chunks = p.chunks[1:]
		}
		p.c.host.net.d.line("%s to %s %d bytes %016x%s", p.c.name, p.to, n, p.c.host.hash(chunk[:n]), p.describe(chunk[:n]))
	case p.ending:
		p.err = io.EOF
		p.c.host.net.d.line("%s to %s ends", p.c.name, p.to)
	}
	p.changed.Broadcast()
	p.mu.Unlock()
	p.schedule()
}

// describe says what the first request in b is, if b begins with one.
func (p *pipe) describe(b []byte) string {
	if p.to != "server" || len(b) < 20 {
		return ""
	}
	op, n := int32(binary.BigEndian.Uint32(b[8:])), int(binary.BigEndian.Uint32(b[12:]))
	if op <= 0 || op > 200 || n <= 0 || 16+n > len(b) {
		return ""
	}
	return fmt.Sprintf(" op %d %q", op, b[16:16+n])
}

func (p *pipe) read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case len(p.buf) > 0:
			n := copy(b, p.buf)
			p.buf = p.buf[n:]
			return n, nil
		case p.err != nil:
			return 0, p.err
		case !p.deadline.IsZero() && !time.Now().Before(p.deadline):
			return 0, &net.OpError{Op: "read", Net: "simulated", Err: os.ErrDeadlineExceeded}
		}
		p.changed.Wait()
	}
}

func (p *pipe) setDeadline(t time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deadline = t
	if p.timer != nil {
		p.timer.Stop()
	}
	if !t.IsZero() {
		// go-zookeeper's patience ends at the time of a ping, and timers of one time fire in
		// a random order.
		t = t.Add(time.Duration(1 + p.rand.IntN(1000)))
		p.deadline = t
		p.timer = time.AfterFunc(time.Until(t), func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.changed.Broadcast()
		})
	}
	p.changed.Broadcast()
}

// end is what the writer's Close does to a pipe: the reader gets what was written before.
func (p *pipe) end() {
	p.mu.Lock()
	p.ending = true
	p.mu.Unlock()
	p.schedule()
}

// fail ends the pipe at once, for both.
func (p *pipe) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
		p.chunks = nil
	}
	if p.timer != nil {
		p.timer.Stop()
	}
	p.changed.Broadcast()
}

// endpoint is a net.Conn.
type endpoint struct {
	c       *connection
	in, out *pipe
	local   address // of the server's side
}

func (e *endpoint) Read(b []byte) (int, error)  { return e.in.read(b) }
func (e *endpoint) Write(b []byte) (int, error) { return e.out.write(b) }

func (e *endpoint) Close() error {
	e.in.fail(net.ErrClosed)
	e.out.end()
	return nil
}

func (e *endpoint) LocalAddr() net.Addr                { return e.local }
func (e *endpoint) RemoteAddr() net.Addr               { return address(e.c.name) }
func (e *endpoint) SetReadDeadline(t time.Time) error  { e.in.setDeadline(t); return nil }
func (e *endpoint) SetWriteDeadline(t time.Time) error { return nil }
func (e *endpoint) SetDeadline(t time.Time) error      { return e.SetReadDeadline(t) }
