package zkconn

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
)

// handshake opens the session, or resumes it, and logs in, so that the server has the credentials
// before any request.
func (c *Conn) handshake() error {
	s := c.session
	id, password := s.Resumption()
	sent := s.now() // the server cannot have had the message then
	hello, err := c.connect(s.Zxid(), s.cfg.SessionTimeout, id, password)
	switch {
	case err != nil:
		return err
	case hello.session == 0:
		s.sessionEnded.Store(true)
		return s.expire(c.Server + " says that the session has expired")
	case hello.timeout <= 0:
		return fmt.Errorf("the server grants a session timeout of %d ms", hello.timeout)
	case id != 0 && hello.session != id:
		return s.expire("the server has opened session " + messages.FormatSession(hello.session) + " instead")
	}
	s.onHandshake(sent, time.Duration(hello.timeout)*time.Millisecond)
	s.password.Store(&hello.password) // before the id: a reader of the id may need it
	s.sessionID.Store(hello.session)
	s.online.Store(true)
	if err := c.login(s.cfg.Auth); err != nil {
		if errors.Is(err, zk.ErrAuthFailed) {
			s.onAuthRefused(err)
		}
		return err
	}
	return c.Conn.SetDeadline(time.Time{})
}

// connect asks the server for a session, a new one if id is 0, for a client that has seen a zxid.
func (c *Conn) connect(zxid int64, timeout time.Duration, id int64, password []byte) (h connectResponse, err error) {
	if err := c.Conn.SetDeadline(c.deadline); err != nil {
		return h, err
	}
	c.Conn.Write(connectRequest(zxid, timeout, id, password)) // if it fails, what can be read shows why
	if h, err = c.readConnectResponse(); err != nil {
		head, _ := c.reader.Peek(min(c.reader.Buffered(), lengthSize))
		return h, explainNoAnswer(err, head)
	}
	return h, nil
}

// connectRequest returns the message that asks for a session. A server that knows less than zxid
// must not serve it.
func connectRequest(zxid int64, timeout time.Duration, id int64, password []byte) []byte {
	b := appendInt(make([]byte, lengthSize), 0) // protocol version
	b = binary.BigEndian.AppendUint64(b, uint64(zxid))
	b = appendInt(b, int32(timeout.Milliseconds()))
	b = binary.BigEndian.AppendUint64(b, uint64(id))
	b = appendBool(appendData(b, password), false) // not a read-only server
	binary.BigEndian.PutUint32(b, uint32(len(b)-lengthSize))
	return b
}

// explainNoAnswer returns err with an explanation why there is no connect response. head is the
// beginning of what the server has sent.
func explainNoAnswer(err error, head []byte) error {
	switch protocol := protocolOf(head); {
	case protocol != "":
		return fmt.Errorf("%s answers: %s", protocol, checkPort)
	case isCertificateRefused(err):
		return explainCertificate(err)
	case isTLSAlert(head):
		return errors.New("the port accepts TLS only: set Config.TLS")
	case isHangUp(err):
		return fmt.Errorf("it accepts connections and hangs up, as a ZooKeeper server does that has no quorum at present, or as many "+
			"connections of this address as its maxClientCnxns allows, and one whose port is for TLS (set Config.TLS): %w", err)
	case errors.Is(err, os.ErrDeadlineExceeded) && len(head) == 0:
		return fmt.Errorf("%w (%w)", errSilent, err)
	}
	return fmt.Errorf("it answers, but not as ZooKeeper: %s (%w)", checkPort, err)
}

// isCertificateRefused reports whether a server has ended TLS because of this client's certificate, or
// because it has none. With TLS 1.3 that comes after the client's handshake.
func isCertificateRefused(err error) bool {
	var alert *net.OpError
	return errors.As(err, &alert) && alert.Op == "remote error" && strings.Contains(alert.Err.Error(), "certificate")
}

func explainCertificate(err error) error {
	return fmt.Errorf("%w: the server wants a certificate of this client that it trusts: set Config.TLS.Certificates: %w", zk.ErrAuthFailed, err)
}

const checkPort = "check that the port is ZooKeeper's clientPort"

// errSilent is the error of a server that has not answered the handshake.
var errSilent = errors.New("it accepts connections and has not answered yet: ZooKeeper is slow or overloaded, or something else " +
	"listens at the port, which should be ZooKeeper's clientPort")

// protocolOf returns the kind of server that begins its answers with head, and an empty text if
// that is not known.
func protocolOf(head []byte) string {
	for _, p := range []struct{ begins, server string }{
		{"HTTP", "an HTTP server"}, {"SSH-", "an SSH server"}, {"-ERR", "a Redis server"}, {"-NOAUTH", "a Redis server"}, {"220", "a mail or FTP server"},
	} {
		begins := p.begins[:min(len(p.begins), lengthSize)]
		if bytes.HasPrefix(head, []byte(begins)) {
			return p.server
		}
	}
	return ""
}

// isTLSAlert reports whether a message of TLS begins with head, by which a server refuses the
// request.
func isTLSAlert(head []byte) bool { return bytes.HasPrefix(head, []byte{0x15, 3}) }

// handshakeError is the error of a handshake.
type handshakeError struct {
	protocol string // "handshake" for ZooKeeper's, or "TLS"
	server   string // the address
	err      error
}

func (e *handshakeError) Error() string {
	return fmt.Sprintf("%s with %s: %v", e.protocol, e.server, e.err)
}

func (e *handshakeError) Unwrap() error { return e.err }

// connectResponse is a server's answer to a connect request.
type connectResponse struct {
	timeout  int32 // ms
	session  int64 // 0 if the requested session is over
	password []byte
}

// readConnectResponse returns an error for a response whose parts do not fill it.
func (c *Conn) readConnectResponse() (h connectResponse, err error) {
	frame, err := c.readFrame()
	if err != nil {
		return h, err
	}
	r := reader{rest: frame[lengthSize+4:]} // behind the protocol version
	h.timeout, h.session = r.int(), r.long()
	n := r.int()
	if n > maxPassword {
		return h, fmt.Errorf("the server gives a session password of %d bytes, more than %d", n, maxPassword)
	}
	h.password = r.take(int(n))
	if r.bad || len(r.rest) > 1 { // the last byte says whether the server is read-only; old servers leave it out
		return h, fmt.Errorf("an answer of %d bytes with a session password of %d bytes is not ZooKeeper's", len(frame)-lengthSize, n)
	}
	return h, nil
}

// maxPassword bounds the password of a session. ZooKeeper's have 16 bytes.
const maxPassword = 128

// onZxid notes the zxid of an answer. The events up to the zxid have come before, of watches that
// are set on this connection. A zxid that goes back ends the session: the server does not have what
// the session has seen, and should have refused the handshake. 0 stands in answers of servers that
// have not looked at the request.
func (c *Conn) onZxid(zxid int64) error {
	s := c.session // only one connection of a session is read at a time
	if last := s.lastZxid.Load(); zxid < last && zxid > 0 {
		return s.expire(fmt.Sprintf("%s has lost transactions: its zxid is %#x after %#x", c.Server, zxid, last))
	}
	s.lastZxid.Store(max(zxid, s.lastZxid.Load()))
	if c.rewatching.Load() == 0 {
		s.eventsZxid.Store(max(zxid, s.eventsZxid.Load()))
	}
	return nil
}

// readFrame reads a whole message of the handshake, its length included.
func (c *Conn) readFrame() ([]byte, error) {
	_, size, err := c.nextHead(maxHandshake)
	if err != nil {
		return nil, err
	}
	frame := make([]byte, lengthSize+size)
	_, err = io.ReadFull(c.reader, frame)
	return frame, err
}

// exchange sends a message, whose length it fills in, and waits for the answer. No request may be
// under way.
func (c *Conn) exchange(message []byte) (answer []byte, err error) {
	binary.BigEndian.PutUint32(message, uint32(len(message)-lengthSize))
	if _, err := c.Conn.Write(message); err != nil {
		return nil, err
	}
	return c.readFrame()
}

const (
	xidAuth = -4
	opAuth  = 100
)

// login authenticates by all credentials.
func (c *Conn) login(all []Credentials) error {
	for _, a := range all {
		if err := c.authenticate(a); err != nil {
			return err
		}
	}
	return nil
}

// authenticate sends credentials and waits for the answer. A server that refuses them answers so
// and closes the connection. After any other error the next attempt may pass.
func (c *Conn) authenticate(a Credentials) error {
	reply, err := c.exchange(a.message())
	if err != nil {
		return fmt.Errorf("while authenticating with scheme %q: %w", a.Scheme, err)
	}
	xid := int32(binary.BigEndian.Uint32(reply[lengthSize:]))
	code := int32(binary.BigEndian.Uint32(reply[lengthSize+12:]))
	if xid != xidAuth {
		return errors.New("the server answers something else while authenticating")
	}
	switch err := errorOf(code); err {
	case nil:
		return nil
	case zk.ErrAuthFailed, zk.ErrNoAuth, ServerError(codeLoginWanted):
		return fmt.Errorf("%w: the server refuses the credentials of scheme %q: they are wrong, or it has no such scheme", zk.ErrAuthFailed, a.Scheme)
	default: // of a server that has failed, or has no time
		return fmt.Errorf("while authenticating with scheme %q: %w", a.Scheme, err)
	}
}

// explainLoginWanted returns the error of a server that wants a login, with what the client lacks.
func (cfg *Settings) explainLoginWanted(err error) error {
	if len(cfg.Auth) == 0 {
		return fmt.Errorf("%w: set Config.Auth, or a certificate in Config.TLS.Certificates (SASL is not supported)", err)
	}
	schemes := make([]string, len(cfg.Auth))
	for i, a := range cfg.Auth {
		schemes[i] = a.Scheme
	}
	return fmt.Errorf("%w, and the scheme of Config.Auth, %q, is none of these (SASL is not supported)", err, schemes)
}

// Credentials identify the client to a server, by the rules of a scheme such as "digest".
type Credentials struct{ Scheme, Credential string }

// message returns the message with the credentials, without its length.
func (a Credentials) message() []byte {
	b := appendInt(appendInt(make([]byte, lengthSize), xidAuth), opAuth)
	b = appendInt(b, 0) // a type that has only this value
	return appendText(appendText(b, a.Scheme), a.Credential)
}

// MoreTelling returns the better explanation why there is no session: last, the error of the
// attempt before, if err only says that the same server has not answered yet; otherwise err.
func MoreTelling(last, err error) error {
	was, now := (*handshakeError)(nil), (*handshakeError)(nil)
	if errors.As(last, &was) && errors.As(err, &now) && now.isSilent() && was.server == now.server && was.protocol == now.protocol {
		return last
	}
	return err
}

// isSilent reports whether the server has not answered in the time of the attempt.
func (e *handshakeError) isSilent() bool {
	return e.err == errSilent || errors.Is(e.err, errNoTLS)
}
