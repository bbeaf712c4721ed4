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

// Conn is one connection to a server. Over it go-zookeeper opens the session, keeps it
// alive and closes it; the bridge's requests, their answers and the events pass it by, see
// exchange. The wire looks at what passes to learn what go-zookeeper does not tell: the
// session's id and timeout, and when the newest message was sent that has been answered.
type Conn struct {
	net.Conn               // to the server, perhaps through TLS
	raw           net.Conn // below TLS
	session       *SessionConn
	Server        string        // the address that was dialed
	reader        *bufio.Reader // go-zookeeper reads each reply in two small pieces
	writeMu       sync.Mutex    // held while something is written: not every net.Conn bears two at a time
	deadline      time.Time     // of the handshake
	handshakeDone atomic.Bool   // the handshake is over

	mu         sync.Mutex
	sent       []sentRecord // on their way and not answered, oldest first
	unanswered int          // bytes of them
	closing    int32        // xid of the message that closes the session
	requestWriter

	// For the one who reads.
	handshakeReply              []byte        // to be read before anything else
	frameLeft                   int           // bytes of the present frame that are still to come
	body                        []byte        // for re-use
	readTimeout, readTimeoutSet time.Duration // of go-zookeeper for the next reply, and from when
}

// sentRecord is when a message was sent, from the start of the link.
type sentRecord struct {
	xid      int32
	at       time.Duration
	size     int
	callback Callback[[]byte] // of a request of the bridge
}

const (
	// Messages from the server that belong to no request.
	xidEvent = -1
	xidPing  = -2
	// xidConnect stands for the first message, which has no xid.
	xidConnect = -100

	opClose = -11

	// What follows the length of a reply is at least 16 bytes: xid, zxid, error.
	// Of the reply to the greeting, too: protocol version, timeout, session id.
	minFrame = 16
	// Longer frames are no ZooKeeper's: a web server's first bytes would be a
	// gigabyte.
	maxFrame    = 256 << 20
	maxGreeting = 64 << 10
)

func newConn(nc, raw net.Conn, l *SessionConn, deadline time.Time) *Conn {
	w := &Conn{Conn: nc, raw: raw, session: l, deadline: deadline, reader: bufio.NewReaderSize(nc, 16<<10)}
	w.requestWriter.hasSendBuffer = hasSendBuffer(raw)
	return w
}

// Close cuts the connection. It does not block, as a farewell through TLS might.
// What was not answered on it never will be.
func (c *Conn) Close() error {
	err := c.raw.Close()
	c.failRequests(zk.ErrConnectionClosed)
	return err
}

// SetReadDeadline keeps the handshake bounded: go-zookeeper waits for six session
// timeouts for the length of the reply and without limit for the rest.
func (c *Conn) SetReadDeadline(t time.Time) error {
	if !t.IsZero() {
		c.readTimeout, c.readTimeoutSet = time.Until(t), c.session.now()
	}
	return c.Conn.SetReadDeadline(c.bound(t))
}

// SetWriteDeadline is like SetReadDeadline.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.Conn.SetWriteDeadline(c.bound(t)) }

func (c *Conn) bound(t time.Time) time.Time {
	if !c.handshakeDone.Load() && (t.IsZero() || t.After(c.deadline)) {
		return c.deadline
	}
	return t
}

// Write sends one message of go-zookeeper, which writes each in one piece. The time is
// taken before: what counts is a moment when the server cannot have had it.
func (c *Conn) Write(b []byte) (int, error) {
	c.mu.Lock()
	switch {
	case len(b) < headerSize:
	case !c.handshakeDone.Load():
		c.record(sentRecord{xid: xidConnect, size: len(b)})
		b = c.session.setLastZxid(b)
	default:
		xid := int32(binary.BigEndian.Uint32(b[lengthSize:]))
		c.record(sentRecord{xid: xid, size: len(b)})
		if op := int32(binary.BigEndian.Uint32(b[lengthSize+xidSize:])); op == opClose {
			c.closing = xid
		}
	}
	c.mu.Unlock()
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	return c.Conn.Write(b)
}

// record needs w.mu.
func (c *Conn) record(s sentRecord) {
	s.at = c.session.now()
	c.sent = append(c.sent, s)
	c.unanswered += s.size
}

// Read gives go-zookeeper what the server sends for it.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.read(p)
	if err != nil {
		if isHangUp(err) {
			c.failRequests(errHungUp)
		}
		c.Close() // so that nobody waits any longer for what cannot come
	}
	return n, err
}

func (c *Conn) read(p []byte) (int, error) {
	if !c.handshakeDone.Load() {
		if err := c.handshake(); err != nil {
			err = &handshakeError{c.RemoteAddr().String(), err}
			c.session.noteError(err)
			return 0, err
		}
		c.handshakeDone.Store(true)
		c.Conn.SetWriteDeadline(time.Time{}) // that of the handshake is over; go-zookeeper sets its own
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

// nextFrame takes in what is the bridge's, up to the next reply for go-zookeeper.
func (c *Conn) nextFrame() error {
	for {
		head, size, err := c.nextHead()
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

// nextHead waits for the head of the next message, and gives the number of bytes behind
// its length.
func (c *Conn) nextHead() (head []byte, size int, err error) {
	if head, err = c.reader.Peek(lengthSize); err != nil {
		return nil, 0, err
	}
	n := binary.BigEndian.Uint32(head)
	if n < minFrame || n > maxFrame {
		return nil, 0, fmt.Errorf("a message of %d bytes is not ZooKeeper's", n)
	}
	head, err = c.reader.Peek(lengthSize + minFrame)
	return head, int(n), err
}

// checkSize refuses a message that is too large, and that no request has asked for.
func (c *Conn) checkSize(size int) error {
	if c.isTooLarge(size) {
		return fmt.Errorf("a message of %d bytes, which no request has asked for, is larger than MaxReply", size)
	}
	return nil
}

func (c *Conn) isTooLarge(size int) bool {
	limit := c.session.cfg.MaxReply
	if limit == 0 || size <= limit {
		return false
	}
	c.session.cfg.Log.Error("ZooKeeper's answer is larger than Config.MaxReply and is not read",
		"server", c.RemoteAddr().String(), "bytes", size, "limit", limit)
	return true
}

// onAnswered notes that the server has had the message xid.
func (c *Conn) onAnswered(xid int32) (s sentRecord) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.sent, func(s sentRecord) bool { return s.xid == xid })
	if i < 0 {
		return s
	}
	s = c.sent[i]
	c.sent = slices.Delete(c.sent, i, i+1)
	c.unanswered -= s.size
	c.session.onAnswered(s.at)
	switch {
	case xid == xidConnect:
		c.session.lastHandshake.Store(int64(s.at))
	case c.closing != 0 && xid == c.closing:
		c.session.sessionEnded.Store(true)
	}
	return s
}

// extendReadDeadline puts off the end of go-zookeeper's patience, as each reply does that it sees.
func (c *Conn) extendReadDeadline() {
	if now := c.session.now(); c.readTimeout > 0 && now-c.readTimeoutSet > c.readTimeout/8 { // often enough
		c.readTimeoutSet = now
		c.Conn.SetReadDeadline(time.Now().Add(c.readTimeout))
	}
}
