package simulation

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// pipe is one direction of a connection.
type pipe struct {
	conn *connection
	to   string
	rand *rand.Rand

	mu             sync.Mutex
	changed        *sync.Cond
	chunks         []chunk // in flight
	scheduled      bool    // the event loop has an event for the first chunk
	closedByWriter bool    // the writer has closed the pipe; the chunks are still delivered
	buf            []byte  // delivered
	err            error   // returned by reads after buf
	deadline       time.Time
	timer          *time.Timer
}

// chunk is what one call has written, with the earliest time of its delivery.
type chunk struct {
	bytes []byte
	due   time.Duration
	text  string // what the frame of a stream says
}

func (p *pipe) write(b []byte) (int, error) { return p.writeAs(b, "", 0) }

// writeAs writes bytes, and blocks while more than a number of others are in flight. 0 is no limit.
func (p *pipe) writeAs(b []byte, text string, most int) (int, error) {
	p.mu.Lock()
	for most > 0 && p.inFlight() > most && !p.closedByWriter && p.err == nil {
		p.changed.Wait()
	}
	if p.closedByWriter || p.err != nil {
		p.mu.Unlock()
		return 0, &net.OpError{Op: "write", Net: "simulated", Err: syscall.EPIPE}
	}
	b = append([]byte(nil), b...)
	p.chunks = append(p.chunks, chunk{bytes: b, text: text, due: p.conn.host.network.loop.now() + p.conn.delay(p.rand, p.to)})
	p.mu.Unlock()
	p.schedule()
	return len(b), nil
}

// inFlight returns the number of bytes that are not delivered. The caller holds mu.
func (p *pipe) inFlight() (n int) {
	for _, c := range p.chunks {
		n += len(c.bytes)
	}
	return n
}

// schedule has the event loop deliver the next chunk.
func (p *pipe) schedule() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.scheduled || len(p.chunks) == 0 && !p.closedByWriter || p.err != nil || p.conn.isBlocked(p.to) {
		return
	}
	p.scheduled = true
	loop := p.conn.host.network.loop
	due := loop.now() + p.conn.delay(p.rand, p.to)
	if len(p.chunks) > 0 {
		due = max(p.chunks[0].due, loop.now()+time.Duration(1000+p.rand.IntN(9000)))
	}
	loop.at(due, p.deliver)
}

// deliver moves the first chunk, or a piece of it, to its reader.
func (p *pipe) deliver() {
	p.mu.Lock()
	p.scheduled = false
	switch {
	case p.err != nil || p.conn.isBlocked(p.to):
		p.mu.Unlock()
		return
	case len(p.chunks) > 0:
		together := p.conn.stream != nil && p.rand.IntN(3) == 0 // frames may come at one time
		for more := true; more; more = together && len(p.chunks) > 0 {
			p.deliverChunk()
		}
	case p.closedByWriter:
		p.err = io.EOF
		p.conn.host.network.loop.record("%s to %s ends", p.conn.name, p.to)
	}
	p.changed.Broadcast()
	p.mu.Unlock()
	if p.conn.stream != nil && p.to == "server" {
		p.conn.stream.accept()
	}
	p.schedule()
}

// deliverChunk moves the first chunk, or a piece of it. The caller holds mu.
func (p *pipe) deliverChunk() {
	chunk, text := p.chunks[0].bytes, p.chunks[0].text
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
	p.conn.host.network.loop.record("%s to %s %d bytes %016x%s", p.conn.name, p.to, n, p.conn.host.hash(chunk[:n]), cmp.Or(text, p.describe(chunk[:n])))
}

// describe returns the first request in b, or "" if b does not begin with one.
func (p *pipe) describe(b []byte) string {
	if p.conn.stream != nil || p.to != "server" || len(b) < 20 {
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
		// go-zookeeper's read time-out ends at the time of a ping, and timers of the same time fire
		// in a random order.
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

// closeWriter closes the pipe for its writer. The reader still gets what was written before.
func (p *pipe) closeWriter() {
	p.mu.Lock()
	p.closedByWriter = true
	if p.conn.stream != nil {
		p.changed.Broadcast() // a writer may wait
	}
	p.mu.Unlock()
	p.schedule()
}

// fail ends the pipe at once for both sides.
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
	conn    *connection
	in, out *pipe
	local   address // of the server's side
}

func (e *endpoint) Read(b []byte) (int, error)  { return e.in.read(b) }
func (e *endpoint) Write(b []byte) (int, error) { return e.out.write(b) }

func (e *endpoint) Close() error {
	e.in.fail(net.ErrClosed)
	e.out.closeWriter()
	return nil
}

func (e *endpoint) LocalAddr() net.Addr                { return e.local }
func (e *endpoint) RemoteAddr() net.Addr               { return address(e.conn.name) }
func (e *endpoint) SetReadDeadline(t time.Time) error  { e.in.setDeadline(t); return nil }
func (e *endpoint) SetWriteDeadline(t time.Time) error { return nil }
func (e *endpoint) SetDeadline(t time.Time) error      { return e.SetReadDeadline(t) }
