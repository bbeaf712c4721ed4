package zkconn

import (
	"encoding/binary"
	"io"
	"math"
	"net"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/go-zookeeper/zk"
)

// requestWriter is the part of a wire for the bridge's requests. They are written as they
// come, and their answers are handed on by who reads the connection: that spares the
// goroutines that wait for each, and reflection.
type requestWriter struct {
	xid           int32    // of the newest request; guarded by wire.mu as the rest is
	hasSendBuffer bool     // the connection has a buffer
	unwritten     [][]byte // requests to be written, in pieces that a socket takes, or of one request
	corked        bool     // the bridge is about to send more
	flushing      bool     // drain is at it
	spare         []byte   // for the next piece, or nil
	broken        bool     // nothing is sent any more
	// rewatching counts the messages that set watches again and are not answered. Until all
	// are, this connection has not reported what has happened since link.since.
	rewatching atomic.Int32
	// callbackMu is held while a request is told its answer, so that all are told in order. That is
	// a message to the bridge or the end of a wait: no taker closes the connection, which
	// takes turn, too.
	callbackMu sync.Mutex
}

// Callback is told an answer, or why there is none, on any goroutine. It must not block, nor
// keep memory that is not its own.
type Callback[T any] func(T, error)

// firstXid is that of the first request. go-zookeeper, which counts from 1, sends one
// message with a number of its own, the last.
const firstXid = 1000

// sendBuffer is how many bytes a socket takes at any rate without waiting for the other
// side.
const sendBuffer = 16 << 10

// hasSendBuffer reports whether the connection is known to have a buffer for sendBuffer bytes, as
// a socket has.
func hasSendBuffer(conn net.Conn) bool {
	_, is := conn.(interface{ SetWriteBuffer(bytes int) error })
	return is
}

// send sends a request and does not block. What one goroutine sends is sent, and
// answered, in order. It does not keep the request.
func (c *Conn) send(request []byte, then Callback[[]byte]) {
	binary.BigEndian.PutUint32(request, uint32(len(request)-lengthSize))
	c.mu.Lock()
	if c.broken {
		c.mu.Unlock()
		then(nil, zk.ErrNoServer)
		return
	}
	if c.xid < firstXid || c.xid == math.MaxInt32 {
		c.xid = firstXid - 1
	}
	c.xid++
	binary.BigEndian.PutUint32(request[lengthSize:], uint32(c.xid))
	c.record(sentRecord{xid: c.xid, size: len(request), callback: then})
	c.enqueue(request)
	c.flush()
}

// enqueue needs w.mu.
func (c *Conn) enqueue(request []byte) {
	if n := len(c.unwritten); n > 0 && len(c.unwritten[n-1])+len(request) <= sendBuffer {
		c.unwritten[n-1] = append(c.unwritten[n-1], request...)
		return
	}
	c.unwritten = append(c.unwritten, append(c.spare, request...))
	c.spare = nil
}

// Cork has requests wait for letGo. Those of others than the bridge do, too: it does not
// take long.
func (c *Conn) Cork() {
	c.mu.Lock()
	c.corked = true
	c.mu.Unlock()
}

// Uncork sends what has come since hold.
func (c *Conn) Uncork() {
	c.mu.Lock()
	c.corked = false
	c.flush()
}

// flush writes the queue, one piece then; or drain does, if the socket might have to be waited
// for. It is called with w.mu, and unlocks that.
func (c *Conn) flush() {
	switch {
	case c.corked || c.flushing || len(c.unwritten) == 0:
		c.mu.Unlock()
	case c.hasSendBuffer && len(c.unwritten) == 1 && c.unanswered <= sendBuffer && c.writeMu.TryLock():
		c.writeChunk()
	default:
		c.flushing = true
		c.mu.Unlock()
		go c.flushLoop()
	}
}

// flushLoop writes what could not be written without waiting, perhaps. Between two pieces
// go-zookeeper finds its turn, whose pings have a deadline.
func (c *Conn) flushLoop() {
	for {
		c.writeMu.Lock()
		c.mu.Lock()
		if len(c.unwritten) == 0 || c.broken {
			c.flushing, c.unwritten = false, nil
			c.mu.Unlock()
			c.writeMu.Unlock()
			return
		}
		c.writeChunk()
	}
}

// writeChunk writes the first piece of the queue. It is called with w.out and w.mu, and
// unlocks them. It ends the connection if writing fails, as go-zookeeper does. There is no
// deadline: where the other side takes nothing it answers nothing, and reading has one.
func (c *Conn) writeChunk() {
	piece := c.unwritten[0]
	c.unwritten = slices.Delete(c.unwritten, 0, 1)
	c.mu.Unlock()
	_, err := c.Conn.Write(piece)
	c.writeMu.Unlock()
	if cap(piece) <= maxBody {
		c.mu.Lock()
		c.spare = piece[:0]
		c.mu.Unlock()
	}
	if err != nil {
		c.Close()
	}
}

// onReply takes in the answer to a request.
func (c *Conn) onReply(head []byte, xid int32, size int) (err error) {
	c.onZxid(int64(binary.BigEndian.Uint64(head[lengthSize+xidSize:])))
	refusal := errorOf(int32(binary.BigEndian.Uint32(head[lengthSize+xidSize+8:])))
	var answer []byte
	if c.isTooLarge(size) {
		refusal = errTooLarge
		_, err = c.reader.Discard(lengthSize + size)
	} else {
		answer, err = c.readBody(size)
	}
	if err != nil {
		return err
	}
	c.callbackMu.Lock()
	defer c.callbackMu.Unlock()
	if s := c.onAnswered(xid); s.callback != nil { // else it was told that the connection is lost
		s.callback(answer, refusal)
	}
	return nil
}

// onWatchEvent takes in the event of a watch. It proves nothing about the session: it answers
// no message.
func (c *Conn) onWatchEvent(size int) error {
	if err := c.checkSize(size); err != nil {
		return err
	}
	body, err := c.readBody(size)
	if err != nil {
		return err
	}
	r := reader{rest: body}
	kind, _, path := zk.EventType(r.int()), r.int(), r.text()
	if r.bad {
		return errGarbled
	}
	c.session.onWatchEvent(kind, path)
	return nil
}

// maxBody is the size of messages for which memory is kept.
const maxBody = 64 << 10

// readBody reads a message of size bytes, and gives what is behind its head. That is good
// until the next is read.
func (c *Conn) readBody(size int) ([]byte, error) {
	if _, err := c.reader.Discard(lengthSize + minFrame); err != nil {
		return nil, err
	}
	size -= minFrame
	if size > maxBody {
		c.body = nil
	}
	body := slices.Grow(c.body[:0], size)[:size]
	if size <= maxBody {
		c.body = body
	}
	_, err := io.ReadFull(c.reader, body)
	return body, err
}

// failRequests has all requests fail that will not be answered any more; why is told to the one that
// was to be answered next.
func (c *Conn) failRequests(why error) {
	c.callbackMu.Lock()
	defer c.callbackMu.Unlock()
	c.mu.Lock()
	left := c.sent
	c.broken, c.sent, c.unanswered = true, nil, 0
	c.mu.Unlock()
	for _, s := range left {
		if s.callback != nil {
			s.callback(nil, why)
			why = zk.ErrConnectionClosed
		}
	}
}
