package embedded

import (
	"encoding/binary"
	"net"
	"sync"
	"time"
)

const (
	readSize   = 4 << 10
	keepBuffer = 64 << 10 // larger buffers are not kept for reuse
	maxQueue   = 64 << 20 // output of a client that does not read
	lingerTime = time.Second
)

// batch is a run of whole frames, length fields included, as one connection
// sent them; or its end.
type batch struct {
	conn *conn
	buf  []byte
	done int    // how much of buf has been handled
	word string // a four-letter word
	eof  bool
}

var batchPool = sync.Pool{New: func() any { return &batch{buf: make([]byte, 0, readSize)} }}

func (b *batch) free() {
	if cap(b.buf) <= keepBuffer {
		*b = batch{buf: b.buf[:0]}
		batchPool.Put(b)
	}
}

// conn is a client's connection. It has a reader and a writer goroutine; all
// else happens in the loop.
type conn struct {
	server  *Server
	number  uint64 // of all connections, in their order
	nc      net.Conn
	ip      string
	address string // that was dialed, in memory
	since   time.Time

	// For the loop only.
	session      *session // nil before the handshake is done
	named        int64    // the session's id, from the handshake on; 0 if that names none
	oldClient    bool     // knows nothing of read-only mode
	auth         []identity
	out          encoder
	dirty        bool // is in server.dirty
	closing      bool // takes no more requests, closes when out is written
	hole         bool // a fault: nothing is ever answered
	misreport    code // a fault: the code of the reply, whatever has come out
	stalled      []*batch
	stalledUntil time.Time
	delayed      bool      // the first of stalled has had its delay
	heldUntil    time.Time // output stays here until then
	fired        uint64
	received     int64
	sent         int64
	lastOp       Op
	lastXid      int32
	lastZxid     int64

	mu     sync.Mutex
	queue  []byte // for the writer
	finish bool   // close when queue is written
	wake   chan struct{}
}

func newConn(s *Server, nc net.Conn) *conn {
	c := &conn{server: s, nc: nc, ip: "127.0.0.1", since: s.now(), wake: make(chan struct{}, 1)}
	if addr, ok := nc.RemoteAddr().(*net.TCPAddr); ok {
		c.ip = addr.AddrPort().Addr().Unmap().String()
	}
	c.auth = []identity{{"ip", c.ip}}
	return c
}

// read cuts the stream into frames and passes on as many as have arrived.
func (c *conn) read() {
	b := batchPool.Get().(*batch)
	first := true
	for {
		n, err := c.nc.Read(b.buf[len(b.buf):cap(b.buf)])
		b.buf = b.buf[:len(b.buf)+n]
		if first && len(b.buf) >= 4 {
			first = false
			if word := string(b.buf[:4]); isWord(word) {
				b.buf, b.word = b.buf[:0], word
				c.pass(b)
				return
			}
		}
		whole, need, bad := scan(b.buf)
		rest := b.buf[whole:]
		if err != nil || bad {
			b.buf, b.eof = b.buf[:whole], true
			c.pass(b)
			return
		}
		if whole == 0 && len(b.buf) < cap(b.buf) {
			continue
		}
		// Grow by what has arrived, not by what the client announces.
		next := batchPool.Get().(*batch)
		if size := min(need, max(2*len(rest), readSize)); cap(next.buf) < size {
			next.buf = make([]byte, 0, size)
		}
		next.buf = append(next.buf, rest...)
		b.buf = b.buf[:whole]
		if whole == 0 {
			b.free()
		} else if !c.pass(b) {
			return
		}
		b = next
	}
}

// scan finds how many bytes are whole frames and how many the next one needs.
func scan(buf []byte) (whole, need int, bad bool) {
	for len(buf)-whole >= 4 {
		n := int32(binary.BigEndian.Uint32(buf[whole:]))
		if n < 0 || n > maxFrame {
			return whole, 0, true
		}
		need = 4 + int(n)
		if len(buf)-whole < need {
			return whole, need, false
		}
		whole += need
	}
	return whole, readSize, false
}

func (c *conn) pass(b *batch) bool {
	b.conn = c
	select {
	case c.server.incoming <- b:
		return true
	case <-c.server.done:
		return false
	}
}

// write sends what the loop hands over, all that there is at a time.
func (c *conn) write() {
	defer c.nc.Close()
	var buf []byte
	for {
		select {
		case <-c.wake:
		case <-c.server.done:
			return
		}
		c.mu.Lock()
		buf, c.queue = c.queue, buf[:0]
		finish := c.finish
		c.mu.Unlock()
		if finish {
			c.nc.SetWriteDeadline(time.Now().Add(lingerTime))
		}
		if len(buf) > 0 {
			if _, err := c.nc.Write(buf); err != nil {
				return
			}
		}
		if finish {
			return
		}
		if cap(buf) > keepBuffer {
			buf = nil
		}
	}
}

// handOver hands the output over to the writer.
func (c *conn) handOver() {
	c.mu.Lock()
	if len(c.queue) == 0 {
		c.queue, c.out.b = c.out.b, c.queue[:0]
	} else {
		c.queue = append(c.queue, c.out.b...)
		c.out.b = c.out.b[:0]
	}
	c.finish = c.closing
	tooMuch := len(c.queue) > maxQueue
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
	if tooMuch || c.closing {
		// The writer may be stuck in a write to a client that does not read.
		c.nc.SetWriteDeadline(time.Now().Add(lingerTime))
	}
}

func (c *conn) touchOutput() {
	if !c.dirty {
		c.dirty = true
		c.server.dirty = append(c.server.dirty, c)
	}
}

// close ends the connection once its output is written. The client of a black
// hole is not told.
func (c *conn) close() {
	c.closing = true
	if !c.hole {
		c.touchOutput()
	}
}

func (c *conn) sendEvent(kind eventType, path string, zxid int64) {
	if c.closing || c.hole {
		return
	}
	start := c.out.begin()
	c.out.int(xidWatchEvent)
	c.out.long(zxid)
	c.out.int(0)
	c.out.int(int32(kind))
	c.out.int(stateConnected)
	c.out.string(path)
	c.out.end(start)
	c.countSent()
}

func (c *conn) reply(xid int32, zxid int64, err code, body []byte) {
	if c.closing || c.hole {
		return
	}
	if c.misreport != codeOK {
		err = c.misreport
	}
	start := c.out.begin()
	c.out.int(xid)
	c.out.long(zxid)
	c.out.int(int32(err))
	if err == codeOK {
		c.out.b = append(c.out.b, body...)
	}
	c.out.end(start)
	c.lastXid, c.lastZxid = xid, zxid
	c.countSent()
}

func (c *conn) countSent() {
	c.sent++
	c.server.sent++
	c.touchOutput()
}

// drop forgets a connection whose stream has ended. Its session lives on.
func (s *Server) drop(c *conn) {
	s.dataWatches.removeConn(c)
	s.childWatches.removeConn(c)
	if c.session != nil && c.session.conn == c {
		c.session.conn = nil
	}
	delete(s.conns, c)
	c.hole, c.heldUntil = false, time.Time{} // no request waits any more
	c.close()
}
