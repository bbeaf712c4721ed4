package zktest

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"
)

// TCPProxy forwards the connections from a client to a server, and breaks them. Several goroutines
// may call its methods, which do not block.
type TCPProxy struct {
	target   string
	listener net.Listener
	work     sync.WaitGroup

	mu     sync.Mutex
	conns  map[*proxiedConn]bool
	refuse bool
	delay  time.Duration
	open   chan struct{} // closed while the proxy forwards bytes
	closed bool
}

// Proxy starts a proxy on a loopback port to target, one host:port. When the test
// ends the proxy closes its port and all connections, and leaves no goroutine.
func Proxy(t testing.TB, target string) *TCPProxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("zktest: start a proxy: %v", err)
	}
	p := &TCPProxy{target: target, listener: l, conns: map[*proxiedConn]bool{}, open: make(chan struct{})}
	close(p.open)
	p.work.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// Addr returns the host:port of the proxy, to which clients connect.
func (p *TCPProxy) Addr() string { return p.listener.Addr().String() }

// Cut closes all connections. Bytes that are not delivered yet are lost. New connections are
// accepted.
func (p *TCPProxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.cut()
	}
}

// Refuse(true) closes new connections as soon as they are accepted, until Refuse(false). Existing
// connections go on; see [TCPProxy.Cut].
func (p *TCPProxy) Refuse(refuse bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = refuse
}

// BlackHole(true) stops forwarding in both directions, and neither side notices: connections stay
// open even if one side closes its end, and new ones are accepted but reach no server.
// BlackHole(false) delivers the bytes that were held back, as a repaired network does.
func (p *TCPProxy) BlackHole(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.open:
		if on {
			p.open = make(chan struct{})
		}
	default:
		if !on {
			close(p.open)
		}
	}
}

// Delay delays every byte that arrives from now on, in each direction: a round trip takes twice the
// delay longer. It does not limit the number of bytes that are delayed.
func (p *TCPProxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// Connections returns the number of open connections at the proxy.
func (p *TCPProxy) Connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}

func (p *TCPProxy) close() {
	p.listener.Close()
	p.mu.Lock()
	p.closed = true
	for c := range p.conns {
		c.cut()
	}
	p.mu.Unlock()
	p.work.Wait()
}

func (p *TCPProxy) accept() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return
		}
		if c := p.register(conn); c != nil {
			p.work.Go(func() { p.serve(c) })
		}
	}
}

// register returns the connection of a client, or nil if the proxy refuses it.
func (p *TCPProxy) register(client net.Conn) *proxiedConn {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuse || p.closed {
		client.Close()
		return nil
	}
	c := &proxiedConn{client: client}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	p.conns[c] = true
	return c
}

// serve connects to the server, and forwards until either side closes or the connection is cut.
func (p *TCPProxy) serve(c *proxiedConn) {
	defer func() {
		c.cut()
		p.mu.Lock()
		delete(p.conns, c)
		p.mu.Unlock()
	}()
	if !p.waitOpen(c) {
		return
	}
	var d net.Dialer
	server, err := d.DialContext(c.ctx, "tcp", p.target)
	if err != nil || !c.setServer(server) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { p.forward(c, c.client, server) })
	both.Go(func() { p.forward(c, server, c.client) })
	both.Wait()
}

// waitOpen waits while bytes are held back. It reports whether the connection was not cut.
func (p *TCPProxy) waitOpen(c *proxiedConn) bool {
	p.mu.Lock()
	open := p.open
	p.mu.Unlock()
	select {
	case <-open:
		return true
	case <-c.ctx.Done():
		return false
	}
}

// chunk has the bytes of one read, and the instant at which to write them. The last chunk has no
// bytes, and stands for the close.
type chunk struct {
	bytes []byte
	due   time.Time
}

// forward copies one direction. It goes on reading while chunks wait to be written, because
// otherwise the delays would add up.
func (p *TCPProxy) forward(c *proxiedConn, from, to net.Conn) {
	chunks := make(chan chunk, 1024)
	var reader sync.WaitGroup
	reader.Go(func() { p.read(c, from, chunks) })
	for next := range chunks {
		if !c.sleep(time.Until(next.due)) || !p.waitOpen(c) || len(next.bytes) == 0 {
			break
		}
		if _, err := to.Write(next.bytes); err != nil {
			break
		}
	}
	c.cut()
	reader.Wait()
}

func (p *TCPProxy) read(c *proxiedConn, from net.Conn, chunks chan<- chunk) {
	defer close(chunks)
	for {
		b := make([]byte, 16<<10)
		n, err := from.Read(b)
		p.mu.Lock()
		due := time.Now().Add(p.delay)
		p.mu.Unlock()
		if n > 0 && !c.send(chunks, chunk{b[:n], due}) {
			return
		}
		if err != nil {
			c.send(chunks, chunk{nil, due})
			return
		}
	}
}

// proxiedConn is one connection through the proxy.
type proxiedConn struct {
	ctx    context.Context // ended by cut
	cancel context.CancelFunc
	client net.Conn

	mu     sync.Mutex
	server net.Conn // nil until connected
}

// cut closes both ends. It may be called more than once.
func (c *proxiedConn) cut() {
	c.cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.client.Close()
	if c.server != nil {
		c.server.Close()
	}
}

// setServer sets the server's end. It closes that end, and returns false, if the connection was cut
// before.
func (c *proxiedConn) setServer(server net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server = server
	if c.ctx.Err() != nil {
		server.Close()
		return false
	}
	return true
}

func (c *proxiedConn) send(chunks chan<- chunk, next chunk) bool {
	select {
	case chunks <- next:
		return true
	case <-c.ctx.Done():
		return false
	}
}

// sleep waits. It reports whether the connection was not cut.
func (c *proxiedConn) sleep(d time.Duration) bool {
	if d <= 0 {
		return c.ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.ctx.Done():
		return false
	}
}
