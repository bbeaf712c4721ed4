package zkconn

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
)

// Conn is one connection to a server. Over it go-zookeeper opens the session and closes it. Pings,
// requests, answers and the events of watches pass go-zookeeper by; see requests.go. A Conn reads
// go-zookeeper's messages, too, for what go-zookeeper does not report: the session's id and
// timeout, and when the newest answered message was sent.
type Conn struct {
	net.Conn               // to the server, perhaps through TLS
	raw           net.Conn // below TLS
	session       *SessionConn
	Server        string        // the address that was dialed
	reader        *bufio.Reader // since go-zookeeper reads each answer in two small pieces
	writeMu       sync.Mutex    // held while a message is written: not every net.Conn allows two writes at a time
	deadline      time.Time     // of the handshake
	handshakeDone atomic.Bool

	mu         sync.Mutex
	sent       []sentRecord // messages that are not answered, oldest first
	unanswered int          // bytes of these
	closing    int32        // xid of the message that closes the session; 0 before

	// For requests; mu guards these, too.
	xid           int32    // of the newest request
	hasSendBuffer bool     // see the function
	unwritten     [][]byte // chunks of requests, of sendBuffer bytes at most or of one request
	corked        bool     // more requests follow at once
	flushing      bool     // flushLoop is running
	broken        bool     // no request is sent any more

	// rewatching counts the messages that set watches again and are not answered. Until all are
	// answered, the server has not sent all events since SessionConn.eventsZxid.
	rewatching atomic.Int32
	// callbackMu is held during a callback, so that callbacks come in order. A callback sends a
	// message to the actor or ends a wait: it must neither close the connection nor send a request,
	// which may lock callbackMu, too.
	callbackMu sync.Mutex

	// These belong to the goroutine that reads.
	handshakeReply              []byte        // that go-zookeeper reads first
	frameLeft                   int           // bytes of the present frame that are not read
	body                        []byte        // for re-use
	readTimeout, readTimeoutSet time.Duration // of go-zookeeper for the next answer, and when it was set
}

// sentRecord is a message that was sent, and when.
type sentRecord struct {
	xid      int32
	at       time.Duration
	size     int
	callback Callback[[]byte] // nil for a message of go-zookeeper
}

const (
	// The xids of messages from the server that answer no request.
	xidEvent = -1
	xidPing  = -2
	// xidConnect is the xid in a sentRecord of the connect request, which has none.
	xidConnect = -100

	opPing  = 11
	opClose = -11

	// An answer has at least 16 bytes behind its length: xid, zxid, error. So has the connect
	// response: protocol version, timeout, session id.
	minFrame = 16
	// Longer frames are not ZooKeeper's: the first bytes of a web server's answer would be a
	// gigabyte.
	maxFrame     = 256 << 20
	maxHandshake = 64 << 10
)

// newConn returns a connection before its handshake, which must end by deadline. raw is below TLS.
func newConn(nc, raw net.Conn, session *SessionConn, deadline time.Time) *Conn {
	return &Conn{Conn: nc, raw: raw, session: session, deadline: deadline,
		reader: bufio.NewReaderSize(nc, 16<<10), hasSendBuffer: hasSendBuffer(raw)}
}

// Close closes the connection. It does not block, as closing TLS might. All requests that are not
// answered fail.
func (c *Conn) Close() error {
	err := c.raw.Close()
	c.failRequests(zk.ErrConnectionClosed)
	return err
}

// SetReadDeadline bounds the handshake: go-zookeeper waits six session timeouts for the length of
// the answer, and without limit for the rest. Later go-zookeeper waits for two thirds of the
// session timeout. Half of it suffices, because pings are twice as frequent as its own, and leaves
// more time to reconnect.
func (c *Conn) SetReadDeadline(t time.Time) error {
	if c.handshakeDone.Load() && !t.IsZero() {
		c.readTimeout, c.readTimeoutSet = time.Until(t)*3/4, c.session.now()
		t = time.Now().Add(c.readTimeout)
	}
	return c.Conn.SetReadDeadline(c.bound(t))
}

// SetWriteDeadline bounds the handshake, too.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.Conn.SetWriteDeadline(c.bound(t)) }

func (c *Conn) bound(t time.Time) time.Time {
	if !c.handshakeDone.Load() && (t.IsZero() || t.After(c.deadline)) {
		return c.deadline
	}
	return t
}

// Write sends one message of go-zookeeper, which writes each in one piece. The send time is taken
// before: the server cannot have had the message then.
func (c *Conn) Write(b []byte) (int, error) {
	c.mu.Lock()
	switch {
	case len(b) < headerSize:
	case !c.handshakeDone.Load():
		c.record(sentRecord{xid: xidConnect, size: len(b)})
		b = c.session.connectRequest(b)
	default:
		xid := int32(binary.BigEndian.Uint32(b[lengthSize:]))
		if xid == xidPing { // the bridge sends its own: BeatsPerTimeout
			c.mu.Unlock()
			return len(b), nil
		}
		c.record(sentRecord{xid: xid, size: len(b)})
		if op := int32(binary.BigEndian.Uint32(b[lengthSize+xidSize:])); op == opClose {
			c.closing = xid
		}
	}
	c.mu.Unlock()
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	n, err := c.Conn.Write(b)
	if err != nil && !c.handshakeDone.Load() { // the server hung up before: nothing will be read
		c.session.noteError(&handshakeError{"handshake", c.RemoteAddr().String(), explainNoAnswer(err, nil)})
	}
	return n, err
}

// record needs c.mu.
func (c *Conn) record(s sentRecord) {
	s.at = c.session.now()
	c.sent = append(c.sent, s)
	c.unanswered += s.size
}

// Read reads the server's messages for go-zookeeper.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.read(p)
	if err != nil {
		if isHangUp(err) {
			c.failRequests(errHungUp)
		}
		c.Close() // so that all requests fail
	}
	return n, err
}

func (c *Conn) read(p []byte) (int, error) {
	if !c.handshakeDone.Load() {
		if err := c.handshake(); err != nil {
			err = &handshakeError{"handshake", c.RemoteAddr().String(), err}
			c.session.noteError(err)
			return 0, err
		}
		c.handshakeDone.Store(true)
		c.Conn.SetWriteDeadline(time.Time{}) // the handshake's is over; go-zookeeper sets its own
	}
	if len(c.handshakeReply) == 0 && c.frameLeft == 0 {
		if err := c.nextFrame(); err != nil {
			return 0, err
		}
	}
	if len(c.handshakeReply) > 0 {
		n := copy(p, c.handshakeReply)
		c.handshakeReply = c.handshakeReply[n:]
		return n, nil
	}
	n, err := c.reader.Read(p[:min(len(p), c.frameLeft)])
	c.frameLeft -= n
	return n, err
}

// nextFrame handles answers to requests and events, up to the next message for go-zookeeper.
func (c *Conn) nextFrame() error {
	for {
		head, size, err := c.nextHead(maxFrame)
		if err != nil {
			return err
		}
		switch xid := int32(binary.BigEndian.Uint32(head[lengthSize:])); {
		case xid >= firstXid:
			err = c.onReply(head, xid, size)
		case xid == xidEvent:
			err = c.onWatchEvent(size)
		default:
			c.onAnswered(xid)
			c.frameLeft = lengthSize + size
			return c.checkSize(size)
		}
		if err != nil {
			return err
		}
		c.extendReadDeadline()
	}
}

// nextHead waits for the head of the next message, and returns it with the number of bytes behind
// the length, which is limit at most.
func (c *Conn) nextHead(limit uint32) (head []byte, size int, err error) {
	if head, err = c.reader.Peek(lengthSize); err != nil {
		return nil, 0, err
	}
	n := binary.BigEndian.Uint32(head)
	if n < minFrame || n > limit {
		return nil, 0, fmt.Errorf("a message of %d bytes is not ZooKeeper's", n)
	}
	head, err = c.reader.Peek(lengthSize + minFrame)
	return head, int(n), err
}

// checkSize returns an error for a message that is too large and answers no request.
func (c *Conn) checkSize(size int) error {
	if c.isTooLarge(size) {
		return fmt.Errorf("a message of %d bytes, which no request has asked for, is larger than MaxReply", size)
	}
	return nil
}

func (c *Conn) isTooLarge(size int) bool {
	limit := c.session.cfg.MaxReply
	return limit != 0 && size > limit
}

// onAnswered notes that the server has answered the message xid, and returns its record.
func (c *Conn) onAnswered(xid int32) (s sentRecord) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.sent, func(s sentRecord) bool { return s.xid == xid })
	if i < 0 {
		return s
	}
	s = c.sent[i]
	if i == 0 { // mostly
		c.sent = shift(c.sent)
	} else {
		c.sent = slices.Delete(c.sent, i, i+1)
	}
	c.unanswered -= s.size
	c.session.onAnswered(s)
	if c.closing != 0 && xid == c.closing {
		c.session.sessionEnded.Store(true)
	}
	return s
}

// shift drops the first element of a list. It moves the others only if they are few: then the list
// keeps its memory.
func shift[T any](list []T) []T {
	if len(list) <= 32 {
		return slices.Delete(list, 0, 1)
	}
	clear(list[:1])
	return list[1:]
}

// extendReadDeadline extends go-zookeeper's read deadline, as each answer to go-zookeeper does.
func (c *Conn) extendReadDeadline() {
	if now := c.session.now(); c.readTimeout > 0 && now-c.readTimeoutSet > c.readTimeout/8 { // often enough
		c.readTimeoutSet = now
		c.Conn.SetReadDeadline(time.Now().Add(c.readTimeout))
	}
}
