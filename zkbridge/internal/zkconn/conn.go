package zkconn

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
)

// Conn is one connection to a server: its handshake (handshake.go), the requests on it (requests.go),
// and what the server sends.
type Conn struct {
	net.Conn               // to the server, perhaps through TLS
	raw      net.Conn      // below TLS
	session  *SessionConn  // nil for a connection that serves no session of a bridge
	Server   string        // the address that was dialed
	reader   *bufio.Reader // since most messages are small
	writeMu  sync.Mutex    // held while a message is written: not every net.Conn allows two writes at a time
	deadline time.Time     // of the handshake

	// mu guards these.
	mu            sync.Mutex
	sent          []sentRecord // messages that are not answered, oldest first
	unanswered    int          // bytes of these
	xid           int32        // of the newest request
	hasSendBuffer bool         // see the function
	unwritten     [][]byte     // chunks of requests, of sendBuffer bytes at most or of one request
	corked        bool         // more requests follow at once
	flushing      bool         // flushLoop is running
	broken        bool         // no request is sent any more
	closing       bool         // the message that closes the session is the last one

	// rewatching counts the messages that set watches again and are not answered. Until all are
	// answered, the server has not sent all events since SessionConn.eventsZxid.
	rewatching atomic.Int32
	// callbackMu is held during a callback, so that callbacks come in order. A callback sends a
	// message to the actor or ends a wait: it must neither close the connection nor send a request,
	// which may lock callbackMu, too.
	callbackMu sync.Mutex

	// These belong to the goroutine that reads.
	body     []byte        // for re-use
	heardAt  time.Duration // when the read deadline was set
	answered kindSet       // kinds of requests that the server has answered
}

// sentRecord is a message that was sent, and when.
type sentRecord struct {
	xid      int32
	kind     optionalKind
	at       time.Duration
	size     int
	callback Callback[[]byte] // nil for a ping
}

const (
	// The xids of messages from the server that answer no request.
	xidEvent = -1
	xidPing  = -2

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

// serve reads the server's messages until the connection ends, and returns why. Then it closes the
// connection.
func (c *Conn) serve() (err error) {
	for err == nil {
		err = c.readMessage()
	}
	if isHangUp(err) || errors.Is(err, errLeftOut) {
		c.session.cfg.found.suspect(c.unansweredKinds() &^ c.answered)
	}
	if isHangUp(err) {
		c.failRequests(errHungUp)
	}
	c.Close()
	return err
}

func (c *Conn) unansweredKinds() (kinds kindSet) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.sent {
		kinds = kinds.with(s.kind)
	}
	return kinds.without(notOptional)
}

// readMessage reads and handles one message.
func (c *Conn) readMessage() error {
	c.extendReadDeadline()
	head, size, err := c.nextHead(maxFrame)
	if err != nil {
		return err
	}
	switch xid := int32(binary.BigEndian.Uint32(head[lengthSize:])); {
	case xid > 0:
		return c.onReply(head, xid, size)
	case c.isTooLarge(size):
		return fmt.Errorf("a message of %d bytes, which no request has asked for, is larger than MaxReply", size)
	case xid == xidEvent:
		return c.onWatchEvent(size)
	case xid == xidPing:
		return c.onPong(size)
	default:
		return fmt.Errorf("the server answers message %d, which it was not sent", xid)
	}
}

// extendReadDeadline has the connection end if the server says nothing for half of the session
// timeout from now on. Pings are a sixth of it apart: that leaves time to reconnect.
func (c *Conn) extendReadDeadline() {
	limit := c.session.Timeout() / 2
	if now := c.session.now(); c.heardAt == 0 || now-c.heardAt > limit/8 { // often enough
		c.heardAt = now
		c.Conn.SetReadDeadline(time.Now().Add(limit))
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

func (c *Conn) isTooLarge(size int) bool {
	limit := c.session.cfg.MaxReply
	return limit != 0 && size > limit
}

// checkOrder returns an error unless an answer to the message xid is due. ZooKeeper answers in order:
// the answer to a message that another one has overtaken does not come any more.
func (c *Conn) checkOrder(xid int32) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := c.indexSent(xid)
	if i < 0 {
		return fmt.Errorf("the server answers message %d, which does not wait for an answer", xid)
	}
	if slices.ContainsFunc(c.sent[:i], func(earlier sentRecord) bool { return c.mustPrecede(earlier, c.sent[i]) }) {
		return fmt.Errorf("%w: it answers message %d before message %d", errLeftOut, xid, c.sent[0].xid)
	}
	return nil
}

// indexSent returns where a message is in c.sent, or -1. It needs c.mu.
func (c *Conn) indexSent(xid int32) int {
	return slices.IndexFunc(c.sent, func(s sentRecord) bool { return s.xid == xid })
}

// onAnswered notes that the server has answered the message xid, and returns its record.
func (c *Conn) onAnswered(xid int32) (s sentRecord) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := c.indexSent(xid)
	if i < 0 {
		return s // the connection was closed meanwhile
	}
	s = c.sent[i]
	if i == 0 { // mostly
		c.sent = shift(c.sent)
	} else {
		c.sent = slices.Delete(c.sent, i, i+1)
	}
	c.unanswered -= s.size
	c.answered = c.answered.with(s.kind)
	c.session.onAnswered(s.at)
	return s
}

// mustPrecede reports whether the answer to a message must come before the answer to a later one. Some
// servers that are not ZooKeeper answer pings out of order: a ping has the time between two pings.
func (c *Conn) mustPrecede(earlier, later sentRecord) bool {
	return earlier.xid != xidPing && later.xid != xidPing || later.at-earlier.at > c.session.Timeout()/BeatsPerTimeout
}

// errLeftOut is the error of a connection on which the server has not answered a message.
var errLeftOut = errors.New("the server has left out an answer")

// shift drops the first element of a list. It moves the others only if they are few: then the list
// keeps its memory.
func shift[T any](list []T) []T {
	if len(list) <= 32 {
		return slices.Delete(list, 0, 1)
	}
	clear(list[:1])
	return list[1:]
}
