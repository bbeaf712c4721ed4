package zktest

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"
)

// TCPProxy stands between a client and a server and breaks their connections. Its methods may be called from several
// goroutines and do not block.
type TCPProxy struct {
	target   string
	listener net.Listener
	work     sync.WaitGroup

	mu     sync.Mutex
	links  map[*link]bool
	refuse bool
	delay  time.Duration
	gate   chan struct{} // closed while bytes may pass
	closed bool
}

// Proxy starts a proxy on a loopback port to target, one host:port. It forwards until told otherwise. When the test
// ends it closes its port and all connections, and leaves no goroutine.
func Proxy(t testing.TB, target string) *TCPProxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("zktest: start a proxy: %v", err)
	}
	p := &TCPProxy{target: target, listener: l, links: map[*link]bool{}, gate: make(chan struct{})}
	close(p.gate)
	p.work.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// Addr returns the proxy's own host:port, for the client to connect to.
func (p *TCPProxy) Addr() string { return p.listener.Addr().String() }

// Cut closes all connections now; bytes on their way are lost. New connections are accepted.
func (p *TCPProxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.cut()
	}
}

// Refuse decides what becomes of new connections: refused ones are closed as soon as they are accepted. Those that
// exist already go on; see [TCPProxy.Cut].
func (p *TCPProxy) Refuse(refuse bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = refuse
}

// BlackHole(true) forwards nothing any more, either way, and tells neither side: connections stay open even when one
// side closes its end, and new ones are accepted but reach no server. BlackHole(false) delivers what was held back,
// as a network that has healed does.
func (p *TCPProxy) BlackHole(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.gate:
		if on {
			p.gate = make(chan struct{})
		}
	default:
		if !on {
			close(p.gate)
		}
	}
}

// Delay makes every byte that arrives from now on take this much longer, each way: a round trip takes twice the
// delay. It does not limit how many bytes are on their way.
func (p *TCPProxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// Connections returns how many connections are open at the proxy.
func (p *TCPProxy) Connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.links)
}

func (p *TCPProxy) close() {
	p.listener.Close()
	p.mu.Lock()
	p.closed = true
	for l := range p.links {
		l.cut()
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
		if l := p.admit(conn); l != nil {
			p.work.Go(func() { p.serve(l) })
		}
	}
}

func (p *TCPProxy) admit(client net.Conn) *link {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuse || p.closed {
		client.Close()
		return nil
	}
	l := &link{client: client}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	p.links[l] = true
	return l
}

// serve connects the link to the server and forwards until either side closes or the link is cut.
func (p *TCPProxy) serve(l *link) {
	defer func() {
		l.cut()
		p.mu.Lock()
		delete(p.links, l)
		p.mu.Unlock()
	}()
	if !p.pass(l) {
		return
	}
	var d net.Dialer
	server, err := d.DialContext(l.ctx, "tcp", p.target)
	if err != nil || !l.attach(server) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { p.forward(l, l.client, server) })
	both.Go(func() { p.forward(l, server, l.client) })
	both.Wait()
}

// pass waits while bytes are held back; it returns false when the link is cut.
func (p *TCPProxy) pass(l *link) bool {
	p.mu.Lock()
	gate := p.gate
	p.mu.Unlock()
	select {
	case <-gate:
		return true
	case <-l.ctx.Done():
		return false
	}
}

// chunk is what one read brought, and when it is to be written; the last one, without bytes, stands for the close.
type chunk struct {
	bytes []byte
	due   time.Time
}

// forward copies one direction. Reading goes on while chunks wait to be written, or the delay would add up.
func (p *TCPProxy) forward(l *link, from, to net.Conn) {
	chunks := make(chan chunk, 1024)
	var reader sync.WaitGroup
	reader.Go(func() { p.read(l, from, chunks) })
	for c := range chunks {
		if !l.sleep(time.Until(c.due)) || !p.pass(l) || len(c.bytes) == 0 {
			break
		}
		if _, err := to.Write(c.bytes); err != nil {
			break
		}
	}
	l.cut()
	reader.Wait()
}

func (p *TCPProxy) read(l *link, from net.Conn, chunks chan<- chunk) {
	defer close(chunks)
	for {
		b := make([]byte, 16<<10)
		n, err := from.Read(b)
		p.mu.Lock()
		due := time.Now().Add(p.delay)
		p.mu.Unlock()
		if n > 0 && !l.send(chunks, chunk{b[:n], due}) {
			return
		}
		if err != nil {
			l.send(chunks, chunk{nil, due})
			return
		}
	}
}

// link is one connection through the proxy.
type link struct {
	ctx    context.Context // ended by cut
	cancel context.CancelFunc
	client net.Conn

	mu     sync.Mutex
	server net.Conn // nil until connected
}

// cut closes both ends. It may be called more than once.
func (l *link) cut() {
	l.cancel()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.client.Close()
	if l.server != nil {
		l.server.Close()
	}
}

// attach sets the server's end, and closes it if the link was cut before.
func (l *link) attach(server net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.server = server
	if l.ctx.Err() != nil {
		server.Close()
		return false
	}
	return true
}

func (l *link) send(chunks chan<- chunk, c chunk) bool {
	select {
	case chunks <- c:
		return true
	case <-l.ctx.Done():
		return false
	}
}

// sleep waits and returns false when the link is cut.
func (l *link) sleep(d time.Duration) bool {
	if d <= 0 {
		return l.ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-l.ctx.Done():
		return false
	}
}
