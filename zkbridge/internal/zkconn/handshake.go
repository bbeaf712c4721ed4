package zkconn

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/go-zookeeper/zk"
)

// handshake reads the server's part of the handshake, and authenticates, before
// go-zookeeper sees any of it: so credentials are with the server before any
// request is. go-zookeeper's own AddAuth can block for ever when it sends them
// again on a connection that fails.
func (c *Conn) handshake() error {
	hello, err := c.readConnectResponse()
	if err != nil {
		return explainNoAnswer(err)
	}
	if hello.session != 0 && hello.timeout <= 0 { // go-zookeeper's timers would panic
		return fmt.Errorf("the server grants a session timeout of %d ms", hello.timeout)
	}
	if err := c.session.onConnectResponse(hello.session, hello.password); err != nil {
		return err
	}
	c.handshakeReply = hello.frame
	if hello.session == 0 {
		return nil // the session is over, as go-zookeeper will see
	}
	c.session.granted.Store(int64(time.Duration(hello.timeout) * time.Millisecond))
	c.onAnswered(xidConnect)
	for _, a := range c.session.cfg.Auth {
		if err := c.authenticate(a); err != nil {
			if errors.Is(err, zk.ErrAuthFailed) {
				c.session.onAuthRefused(err)
			}
			return err
		}
	}
	return nil
}

// explainNoAnswer explains why a greeting has no answer.
func explainNoAnswer(err error) error {
	if isHangUp(err) {
		return fmt.Errorf("it accepts connections and hangs up, as a ZooKeeper server without a quorum does: %w", err)
	}
	return fmt.Errorf("%w: %w", errNoZooKeeper, err)
}

var errNoZooKeeper = errors.New("it accepts connections but does not answer as ZooKeeper")

// handshakeError is why a server that was connected has given no session.
type handshakeError struct {
	server string // its address
	err    error
}

func (e *handshakeError) Error() string { return fmt.Sprintf("handshake with %s: %v", e.server, e.err) }

func (e *handshakeError) Unwrap() error { return e.err }

// connectResponse is a server's answer to the greeting.
type connectResponse struct {
	timeout  int32 // ms
	session  int64 // 0 where the session that was asked for is over
	password []byte
	frame    []byte // the whole message
}

// readConnectResponse refuses an answer to the greeting whose parts do not fill it. go-zookeeper
// would allocate as much memory as the password's length says.
func (c *Conn) readConnectResponse() (h connectResponse, err error) {
	if h.frame, err = c.readFrame(maxGreeting); err != nil {
		return h, err
	}
	r := reader{rest: h.frame[lengthSize+4:]} // behind the protocol version
	h.timeout, h.session = r.int(), r.long()
	n := r.int()
	if n > maxPassword {
		return h, fmt.Errorf("the server gives a session password of %d bytes, more than %d", n, maxPassword)
	}
	h.password = r.take(int(n))
	if r.bad || len(r.rest) > 1 { // whether it is read-only; old servers leave that out
		return h, fmt.Errorf("an answer of %d bytes with a session password of %d bytes is not ZooKeeper's", len(h.frame)-lengthSize, n)
	}
	return h, nil
}

// maxPassword bounds the password of a session, which go-zookeeper sends again in a message
// of 256 bytes. ZooKeeper's have 16.
const maxPassword = 128

// setLastZxid has the server hear of all that was seen in this session, as go-zookeeper would
// if it had seen it: one that knows less than that must not serve it.
func (c *SessionConn) setLastZxid(hello []byte) []byte {
	const at = lengthSize + 4 // behind the protocol version
	if len(hello) < at+8 {
		return hello
	}
	hello = bytes.Clone(hello)
	binary.BigEndian.PutUint64(hello[at:], uint64(c.lastZxid.Load()))
	return hello
}

// onZxid notes the zxid of an answer: the events up to it have come before, of watches that
// are in place on this connection.
func (c *Conn) onZxid(zxid int64) {
	l := c.session // only one wire of a link is read at a time
	l.lastZxid.Store(max(zxid, l.lastZxid.Load()))
	if c.rewatching.Load() == 0 {
		l.eventsZxid.Store(max(zxid, l.eventsZxid.Load()))
	}
}

// readFrame reads a whole message of the handshake, its length included.
func (c *Conn) readFrame(limit int) ([]byte, error) {
	head, err := c.reader.Peek(lengthSize)
	if err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(head)
	if size < minFrame || int64(size) > int64(limit) {
		return nil, fmt.Errorf("a message of %d bytes is not ZooKeeper's", size)
	}
	frame := make([]byte, lengthSize+int(size))
	_, err = io.ReadFull(c.reader, frame)
	return frame, err
}

const (
	xidAuth = -4
	opAuth  = 100
)

// authenticate sends credentials and waits for the answer. A server that refuses
// them says so and closes the connection.
func (c *Conn) authenticate(a Credentials) error {
	if err := c.Conn.SetWriteDeadline(c.deadline); err != nil {
		return err
	}
	if _, err := c.Conn.Write(a.frame()); err != nil {
		return fmt.Errorf("while authenticating with scheme %q: %w", a.Scheme, err)
	}
	reply, err := c.readFrame(maxGreeting)
	if err != nil {
		return fmt.Errorf("while authenticating with scheme %q: %w", a.Scheme, err)
	}
	xid := int32(binary.BigEndian.Uint32(reply[lengthSize:]))
	code := int32(binary.BigEndian.Uint32(reply[lengthSize+12:]))
	switch {
	case xid != xidAuth:
		return errors.New("the server answers something else while authenticating")
	case code != 0:
		return fmt.Errorf("%w: the server refuses the credentials of scheme %q", zk.ErrAuthFailed, a.Scheme)
	}
	return nil
}

// Credentials are what a connection authenticates with.
type Credentials struct{ Scheme, Credential string }

// frame is the message that carries the credentials.
func (a Credentials) frame() []byte {
	b := make([]byte, lengthSize)
	xid := int32(xidAuth)
	b = binary.BigEndian.AppendUint32(b, uint32(xid))
	b = binary.BigEndian.AppendUint32(b, opAuth)
	b = binary.BigEndian.AppendUint32(b, 0) // a type that has only this value
	b = binary.BigEndian.AppendUint32(b, uint32(len(a.Scheme)))
	b = append(b, a.Scheme...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(a.Credential)))
	b = append(b, a.Credential...)
	binary.BigEndian.PutUint32(b, uint32(len(b)-lengthSize))
	return b
}

// MoreTelling returns last, the error of the attempt before, if err only says that the same server
// has not answered yet; otherwise err.
func MoreTelling(last, err error) error {
	was, now := (*handshakeError)(nil), (*handshakeError)(nil)
	if errors.As(last, &was) && errors.As(err, &now) && now.err == errNoZooKeeper && was.server == now.server {
		return last
	}
	return err
}
