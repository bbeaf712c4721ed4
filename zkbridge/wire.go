package zkbridge

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

// wire is one connection to a server. Over it go-zookeeper opens the session, keeps it
// alive and closes it; the bridge's requests, their answers and the events pass it by, see
// exchange. The wire looks at what passes to learn what go-zookeeper does not tell: the
// session's id and timeout, and when the newest message was sent that has been answered.
type wire struct {
	net.Conn          // to the server, perhaps through TLS
	raw      net.Conn // below TLS
	link     *link
	server   string        // the address that was dialed
	in       *bufio.Reader // go-zookeeper reads each reply in two small pieces
	out      sync.Mutex    // held while something is written: not every net.Conn bears two at a time
	deadline time.Time     // of the handshake
	ready    atomic.Bool   // the handshake is over

	mu         sync.Mutex
	sent       []stamp // on their way and not answered, oldest first
	unanswered int     // bytes of them
	closing    int32   // xid of the message that closes the session
	exchange

	// For the one who reads.
	own             []byte        // to be read before anything else
	rest            int           // bytes of the present frame that are still to come
	body            []byte        // for re-use
	patience, since time.Duration // of go-zookeeper for the next reply, and from when
}

// stamp is when a message was sent, from the start of the link.
type stamp struct {
	xid  int32
	at   time.Duration
	size int
	then taker[[]byte] // of a request of the bridge
}

const (
	// Messages from the server that belong to no request.
	xidEvent = -1
	xidPing  = -2
	// greeting stands for the first message, which has no xid.
	greeting = -100

	opClose = -11

	// What follows the length of a reply is at least 16 bytes: xid, zxid, error.
	// Of the reply to the greeting, too: protocol version, timeout, session id.
	minFrame = 16
	// Longer frames are no ZooKeeper's: a web server's first bytes would be a
	// gigabyte.
	maxFrame    = 256 << 20
	maxGreeting = 64 << 10
)

func newWire(conn, raw net.Conn, l *link, deadline time.Time) *wire {
	w := &wire{Conn: conn, raw: raw, link: l, deadline: deadline, in: bufio.NewReaderSize(conn, 16<<10)}
	w.exchange.roomy = isRoomy(raw)
	return w
}

// Close cuts the connection. It does not block, as a farewell through TLS might.
// What was not answered on it never will be.
func (w *wire) Close() error {
	err := w.raw.Close()
	w.lose(zk.ErrConnectionClosed)
	return err
}

// SetReadDeadline keeps the handshake bounded: go-zookeeper waits for six session
// timeouts for the length of the reply and without limit for the rest.
func (w *wire) SetReadDeadline(t time.Time) error {
	if !t.IsZero() {
		w.patience, w.since = time.Until(t), w.link.now()
	}
	return w.Conn.SetReadDeadline(w.bound(t))
}

// SetWriteDeadline is like SetReadDeadline.
func (w *wire) SetWriteDeadline(t time.Time) error { return w.Conn.SetWriteDeadline(w.bound(t)) }

func (w *wire) bound(t time.Time) time.Time {
	if !w.ready.Load() && (t.IsZero() || t.After(w.deadline)) {
		return w.deadline
	}
	return t
}

// Write sends one message of go-zookeeper, which writes each in one piece. The time is
// taken before: what counts is a moment when the server cannot have had it.
func (w *wire) Write(b []byte) (int, error) {
	w.mu.Lock()
	switch {
	case len(b) < headerSize:
	case !w.ready.Load():
		w.note(stamp{xid: greeting, size: len(b)})
		b = w.link.greet(b)
	default:
		xid := int32(binary.BigEndian.Uint32(b[lengthSize:]))
		w.note(stamp{xid: xid, size: len(b)})
		if op := int32(binary.BigEndian.Uint32(b[lengthSize+xidSize:])); op == opClose {
			w.closing = xid
		}
	}
	w.mu.Unlock()
	w.out.Lock()
	defer w.out.Unlock()
	return w.Conn.Write(b)
}

// note needs w.mu.
func (w *wire) note(s stamp) {
	s.at = w.link.now()
	w.sent = append(w.sent, s)
	w.unanswered += s.size
}

// Read gives go-zookeeper what the server sends for it.
func (w *wire) Read(p []byte) (int, error) {
	n, err := w.read(p)
	if err != nil {
		if isHangUp(err) {
			w.lose(errHungUp)
		}
		w.Close() // so that nobody waits any longer for what cannot come
	}
	return n, err
}

func (w *wire) read(p []byte) (int, error) {
	if !w.ready.Load() {
		if err := w.shakeHands(); err != nil {
			err = &handshakeError{w.RemoteAddr().String(), err}
			w.link.note(err)
			return 0, err
		}
		w.ready.Store(true)
		w.Conn.SetWriteDeadline(time.Time{}) // that of the handshake is over; go-zookeeper sets its own
	}
	if len(w.own) == 0 && w.rest == 0 {
		if err := w.nextFrame(); err != nil {
			return 0, err
		}
	}
	if len(w.own) > 0 {
		n := copy(p, w.own)
		w.own = w.own[n:]
		return n, nil
	}
	n, err := w.in.Read(p[:min(len(p), w.rest)])
	w.rest -= n
	return n, err
}

// nextFrame takes in what is the bridge's, up to the next reply for go-zookeeper.
func (w *wire) nextFrame() error {
	for {
		head, size, err := w.nextHead()
		if err != nil {
			return err
		}
		switch xid := int32(binary.BigEndian.Uint32(head[lengthSize:])); {
		case xid >= firstXid:
			err = w.receive(head, xid, size)
		case xid == xidEvent:
			err = w.happened(size)
		default:
			w.answered(xid)
			w.rest = lengthSize + size
			return w.checkSize(size)
		}
		if err != nil {
			return err
		}
		w.calm()
	}
}

// nextHead waits for the head of the next message, and gives the number of bytes behind
// its length.
func (w *wire) nextHead() (head []byte, size int, err error) {
	if head, err = w.in.Peek(lengthSize); err != nil {
		return nil, 0, err
	}
	n := binary.BigEndian.Uint32(head)
	if n < minFrame || n > maxFrame {
		return nil, 0, fmt.Errorf("a message of %d bytes is not ZooKeeper's", n)
	}
	head, err = w.in.Peek(lengthSize + minFrame)
	return head, int(n), err
}

// checkSize refuses a message that is too large, and that no request has asked for.
func (w *wire) checkSize(size int) error {
	if w.isTooLarge(size) {
		return fmt.Errorf("a message of %d bytes, which no request has asked for, is larger than MaxReply", size)
	}
	return nil
}

func (w *wire) isTooLarge(size int) bool {
	limit := w.link.cfg.maxReply
	if limit == 0 || size <= limit {
		return false
	}
	w.link.cfg.log.Error("ZooKeeper's answer is larger than Config.MaxReply and is not read",
		"server", w.RemoteAddr().String(), "bytes", size, "limit", limit)
	return true
}

// answered notes that the server has had the message xid.
func (w *wire) answered(xid int32) (s stamp) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.sent, func(s stamp) bool { return s.xid == xid })
	if i < 0 {
		return s
	}
	s = w.sent[i]
	w.sent = slices.Delete(w.sent, i, i+1)
	w.unanswered -= s.size
	w.link.heard(s.at)
	switch {
	case xid == greeting:
		w.link.shaken.Store(int64(s.at))
	case w.closing != 0 && xid == w.closing:
		w.link.ended.Store(true)
	}
	return s
}

// calm puts off the end of go-zookeeper's patience, as each reply does that it sees.
func (w *wire) calm() {
	if now := w.link.now(); w.patience > 0 && now-w.since > w.patience/8 { // often enough
		w.since = now
		w.Conn.SetReadDeadline(time.Now().Add(w.patience))
	}
}
