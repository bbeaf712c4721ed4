package zkbridge

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// wire is one connection to a server. It looks at what passes to learn what
// go-zookeeper does not tell: the session's id and timeout, and when the newest
// message was sent that has been answered. It also keeps from go-zookeeper what
// would hang or crash it.
type wire struct {
	net.Conn
	link     *link
	in       *bufio.Reader // go-zookeeper reads each reply in two small pieces
	deadline time.Time     // of the handshake
	ready    atomic.Bool   // the handshake is over

	mu      sync.Mutex
	sent    []stamp // written and not answered, oldest first
	closing int32   // xid of the message that closes the session

	// The frame that is being read; head is its length and what follows.
	head [20]byte
	have int
	rest int // of its bytes are still to come, once the head is there
}

// stamp is when a message was sent, from the start of the link.
type stamp struct {
	xid int32
	at  time.Duration
}

const (
	// Messages from the server that belong to no request.
	xidEvent = -1
	xidPing  = -2
	// greeting stands for the first message, which has no xid.
	greeting = -100

	opClose = -11

	// What follows the length of a reply is at least 16 bytes; of the reply to
	// the greeting, too.
	minFrame = 16
	// Longer frames are no ZooKeeper's. go-zookeeper would allocate what the
	// length says; a web server's first bytes would be a gigabyte.
	maxFrame    = 256 << 20
	maxGreeting = 64 << 10

	replyHead    = 8  // length, xid
	greetingHead = 20 // length, protocol version, timeout, session id
)

func newWire(conn net.Conn, l *link, deadline time.Time) *wire {
	return &wire{Conn: conn, link: l, deadline: deadline, in: bufio.NewReaderSize(conn, 16<<10)}
}

// SetReadDeadline keeps the handshake bounded: go-zookeeper waits for six session
// timeouts for the length of the reply and without limit for the rest.
func (w *wire) SetReadDeadline(t time.Time) error { return w.Conn.SetReadDeadline(w.bound(t)) }

// SetWriteDeadline is like SetReadDeadline.
func (w *wire) SetWriteDeadline(t time.Time) error { return w.Conn.SetWriteDeadline(w.bound(t)) }

func (w *wire) bound(t time.Time) time.Time {
	if !w.ready.Load() && (t.IsZero() || t.After(w.deadline)) {
		return w.deadline
	}
	return t
}

// Write sends one message; go-zookeeper writes each in one piece. The time is
// taken before: what counts is a moment when the server cannot have had it.
func (w *wire) Write(b []byte) (int, error) {
	w.mu.Lock()
	at := w.link.now()
	switch {
	case len(b) < replyHead:
	case !w.ready.Load():
		w.sent = append(w.sent, stamp{greeting, at})
	default:
		xid := int32(binary.BigEndian.Uint32(b[4:]))
		w.sent = append(w.sent, stamp{xid, at})
		if len(b) >= 12 && int32(binary.BigEndian.Uint32(b[8:])) == opClose {
			w.closing = xid
		}
	}
	w.mu.Unlock()
	return w.Conn.Write(b)
}

// Read gives what the server sends, once it was looked at.
func (w *wire) Read(p []byte) (int, error) {
	n, err := w.in.Read(p)
	if n > 0 {
		if bad := w.scan(p[:n]); bad != nil {
			n, err = 0, bad
		}
	}
	if err != nil && !w.ready.Load() {
		w.link.note(fmt.Errorf("handshake with %s: %w", w.RemoteAddr(), err))
	}
	return n, err
}

// scan follows the frames through the stream, in whatever pieces it comes.
func (w *wire) scan(b []byte) error {
	for len(b) > 0 {
		if w.rest > 0 {
			n := min(w.rest, len(b))
			b = b[n:]
			w.rest -= n
			if w.rest == 0 {
				w.frameEnds()
			}
			continue
		}
		n := copy(w.head[w.have:w.headSize()], b)
		b = b[n:]
		w.have += n
		if err := w.headGrows(); err != nil {
			return err
		}
	}
	return nil
}

func (w *wire) headSize() int {
	if w.ready.Load() {
		return replyHead
	}
	return greetingHead
}

func (w *wire) headGrows() error {
	if w.have < 4 {
		return nil
	}
	size := binary.BigEndian.Uint32(w.head[:])
	limit := uint32(maxFrame)
	if !w.ready.Load() {
		limit = maxGreeting
	}
	if size < minFrame || size > limit {
		return fmt.Errorf("a message of %d bytes is not ZooKeeper's", size)
	}
	if w.have < w.headSize() {
		return nil
	}
	w.rest = int(size) + 4 - w.have
	if w.ready.Load() {
		w.answered(int32(binary.BigEndian.Uint32(w.head[4:])))
		return nil
	}
	err := w.link.greeted(int64(binary.BigEndian.Uint64(w.head[12:])))
	if w.rest == 0 {
		w.frameEnds()
	}
	return err
}

func (w *wire) frameEnds() {
	w.have = 0
	if w.ready.Load() {
		return
	}
	if id := int64(binary.BigEndian.Uint64(w.head[12:])); id != 0 {
		timeout := time.Duration(int32(binary.BigEndian.Uint32(w.head[8:]))) * time.Millisecond
		w.link.timeout.Store(int64(timeout))
		w.answered(greeting)
	}
	w.ready.Store(true)
}

// answered notes that the server has had the message xid. An event of a watch
// proves nothing: it answers no message.
func (w *wire) answered(xid int32) {
	if xid == xidEvent {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, s := range w.sent {
		if s.xid == xid {
			w.sent = append(w.sent[:i], w.sent[i+1:]...)
			w.link.heard(s.at)
			break
		}
	}
	if w.closing != 0 && xid == w.closing {
		w.link.ended.Store(true)
	}
}
