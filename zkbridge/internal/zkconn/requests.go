package zkconn

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"slices"

	"github.com/go-zookeeper/zk"
)

// The requests of a Conn. It writes them as they come, and the goroutine that reads the connection
// calls back with their answers: no goroutine waits for a request.

// Callback receives an answer, or the error of the request, on any goroutine. It must not block,
// nor keep memory of the answer.
type Callback[T any] func(T, error)

// firstXid is the xid of the first request.
const firstXid = 1

// sendBuffer is how many bytes a socket takes without waiting for the other side.
const sendBuffer = 16 << 10

// hasSendBuffer reports whether the connection is known to have a buffer for sendBuffer bytes, as
// a socket has.
func hasSendBuffer(conn net.Conn) bool {
	_, is := conn.(interface{ SetWriteBuffer(bytes int) error })
	return is
}

// send sends a request and does not block. The requests of one goroutine are sent, and answered, in
// order. The request is the connection's from then on.
func (c *Conn) send(request []byte, then Callback[[]byte]) {
	binary.BigEndian.PutUint32(request, uint32(len(request)-lengthSize))
	c.mu.Lock()
	if c.broken {
		c.mu.Unlock()
		c.callbackMu.Lock() // behind the callbacks of earlier requests
		defer c.callbackMu.Unlock()
		then(nil, zk.ErrNoServer)
		return
	}
	if c.xid == math.MaxInt32 {
		c.xid = firstXid - 1
	}
	c.xid++
	binary.BigEndian.PutUint32(request[lengthSize:], uint32(c.xid))
	c.enqueue(request, sentRecord{xid: c.xid, callback: then})
	c.flush()
}

// Ping sends a ping and does not block.
func (c *Conn) Ping() {
	c.mu.Lock()
	if !c.broken {
		c.enqueue(slices.Clone(pingMessage), sentRecord{xid: xidPing})
	}
	c.flush()
}

var pingMessage = []byte{0, 0, 0, 8, 0xff, 0xff, 0xff, 0xfe, 0, 0, 0, opPing} // length, xid, type

// endSession sends the message that closes the session, and does not block.
func (c *Conn) endSession() {
	c.send(newMessage(opClose, 0), func(_ []byte, err error) {
		if err == nil || errors.Is(err, zk.ErrSessionExpired) {
			c.session.sessionEnded.Store(true)
		}
	})
}

// enqueue adds a request to those that flush is to write, and notes when: the server cannot have had
// it before. Nothing follows the message that closes the session: the server hangs up behind its
// answer, and a write that failed would close the connection before the answer is read. enqueue
// needs c.mu.
func (c *Conn) enqueue(request []byte, s sentRecord) {
	s.at, s.size, s.kind = c.session.now(), len(request), kindOf(request)
	c.sent = append(c.sent, s)
	c.unanswered += s.size
	if c.closing {
		return
	}
	c.closing = int32(binary.BigEndian.Uint32(request[lengthSize+xidSize:])) == opClose
	if n := len(c.unwritten); n > 0 && len(c.unwritten[n-1])+len(request) <= sendBuffer {
		c.unwritten[n-1] = append(c.unwritten[n-1], request...)
		recycle(request)
	} else {
		c.unwritten = append(c.unwritten, request)
	}
}

// Cork makes the requests of all goroutines wait for Uncork, which comes soon.
func (c *Conn) Cork() {
	c.mu.Lock()
	c.corked = true
	c.mu.Unlock()
}

// Uncork sends the requests that have come since Cork.
func (c *Conn) Uncork() {
	c.mu.Lock()
	c.corked = false
	c.flush()
}

// flush writes one chunk if the send buffer has room for it; otherwise it starts flushLoop. flush is
// called with c.mu, and unlocks c.mu.
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

// flushLoop writes chunks and may wait for the socket.
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

// writeChunk writes the first chunk. It is called with c.writeMu and c.mu, and unlocks both. It
// closes the connection if writing fails, unless the server has hung up: reading ends soon, behind the
// last answers, and shows which request was the next one. There is no write deadline: a server that takes
// nothing answers nothing, and reading has a deadline.
func (c *Conn) writeChunk() {
	piece := c.unwritten[0]
	c.unwritten = shift(c.unwritten)
	c.mu.Unlock()
	_, err := c.Conn.Write(piece)
	c.writeMu.Unlock()
	recycle(piece)
	if err != nil && !isHangUp(err) {
		c.Close()
	}
}

// onReply reads the answer to a request, and calls back.
func (c *Conn) onReply(head []byte, xid int32, size int) (err error) {
	if err := c.checkOrder(xid); err != nil {
		return err
	}
	if err := c.onZxid(int64(binary.BigEndian.Uint64(head[lengthSize+xidSize:]))); err != nil {
		return err
	}
	refusal := errorOf(int32(binary.BigEndian.Uint32(head[lengthSize+xidSize+8:])))
	if refusal == ServerError(codeLoginWanted) { // the server hangs up
		c.session.onAuthRefused(c.session.cfg.explainLoginWanted(refusal))
		return refusal
	}
	var answer []byte
	if c.isTooLarge(size) {
		refusal = fmt.Errorf("%w: it has %d bytes", errTooLarge, size)
		_, err = c.reader.Discard(lengthSize + size)
	} else {
		answer, err = c.readBody(size)
	}
	if err != nil {
		return err
	}
	c.callbackMu.Lock()
	defer c.callbackMu.Unlock()
	if s := c.onAnswered(xid); s.callback != nil { // otherwise the request has failed
		s.callback(answer, refusal)
	}
	return nil
}

// onPong reads the answer to a ping.
func (c *Conn) onPong(size int) error {
	if err := c.checkOrder(xidPing); err != nil {
		return err
	}
	c.onAnswered(xidPing)
	_, err := c.reader.Discard(lengthSize + size)
	return err
}

// onWatchEvent reads the event of a watch. It proves nothing about the session, since it answers no
// message.
func (c *Conn) onWatchEvent(size int) error {
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

// maxBody is the size of messages whose memory is kept.
const maxBody = 64 << 10

// readBody reads a message of size bytes, and returns the part behind its head. The result is valid
// until the next message is read.
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

// failRequests fails all requests that are not answered. Those that the server may have ended the
// connection for fail with why, the others with zk.ErrConnectionClosed.
func (c *Conn) failRequests(why error) {
	c.callbackMu.Lock()
	defer c.callbackMu.Unlock()
	c.mu.Lock()
	left := c.sent
	c.broken, c.sent, c.unanswered = true, nil, 0
	c.mu.Unlock()
	next, largest := suspects(left)
	for i, s := range left {
		switch {
		case s.callback == nil:
		case i == next || i == largest:
			s.callback(nil, why)
		default:
			s.callback(nil, zk.ErrConnectionClosed)
		}
	}
}

// largeRequest is the size from which a request may be larger than the server's jute.maxbuffer.
const largeRequest = 32 << 10

// suspects returns which of the unanswered messages a server may have ended the connection for, -1 for none:
// the request that it had to answer next, and the largest one, if that is large. A server that finds a
// message too large does not answer those before it either.
func suspects(sent []sentRecord) (next, largest int) {
	next = slices.IndexFunc(sent, func(s sentRecord) bool { return s.callback != nil })
	largest, size := -1, largeRequest
	for i, s := range sent {
		if s.size > size {
			largest, size = i, s.size
		}
	}
	return next, largest
}
