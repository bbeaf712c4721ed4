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
	net.Conn          // to the server, perhaps through TLS
	raw      net.Conn // below TLS
	link     *link
	in       *bufio.Reader // go-zookeeper reads each reply in two small pieces
	deadline time.Time     // of the handshake
	ready    atomic.Bool   // the handshake is over

	mu      sync.Mutex
	sent    []stamp // written and not answered, oldest first
	closing int32   // xid of the message that closes the session

	// rewatch is closed when the watches of an earlier connection have been sent
	// again; nil if there were none. unset counts the messages that it takes: one,
	// and those which go-zookeeper had queued for connections that broke before
	// they were sent. It is guarded by mu, and passed on by the link.
	rewatch chan struct{}
	unset   int32

	// For the one who reads.
	own     []byte // to be read before anything else
	rest    int    // bytes of the present frame that are still to come
	skip    int    // bytes that nobody is to see
	awaited bool   // rewatch
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

	opGetData    = 4
	opChildren   = 12
	opMulti      = 14
	opSetWatches = 101
	opClose      = -11

	lengthSize = 4
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
	if l.watching.Load() {
		w.rewatch = make(chan struct{})
		w.unset = l.unset.Add(1) // before the handshake is over nothing can come
	}
	return w
}

// Close cuts the connection. It does not block, as a farewell through TLS might.
func (w *wire) Close() error { return w.raw.Close() }

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
	case len(b) < lengthSize+4:
	case !w.ready.Load():
		w.sent = append(w.sent, stamp{greeting, at})
	default:
		xid := int32(binary.BigEndian.Uint32(b[4:]))
		w.sent = append(w.sent, stamp{xid, at})
		w.noteRequest(xid, b)
	}
	w.mu.Unlock()
	return w.Conn.Write(b)
}

// noteRequest looks at a message for what matters later. It needs w.mu.
func (w *wire) noteRequest(xid int32, b []byte) {
	if len(b) < 12 {
		return
	}
	switch int32(binary.BigEndian.Uint32(b[8:])) {
	case opClose:
		w.closing = xid
	case opGetData, opChildren:
		if b[len(b)-1] == 1 {
			w.link.watching.Store(true)
		}
	case opMulti:
		w.link.line.advance()
	case opSetWatches:
		w.watchesSent()
	}
}

// watchesSent needs w.mu.
func (w *wire) watchesSent() {
	if w.unset > 0 {
		w.expectWatches(w.unset - 1)
	}
}

// expectWatches notes how many messages that set watches are yet to come. It needs w.mu.
func (w *wire) expectWatches(n int32) {
	w.unset = n
	w.link.unset.Store(n)
	if n == 0 {
		close(w.rewatch)
	}
}

// forgetWatches is for a connection that did not come to be: nothing is queued for it.
func (w *wire) forgetWatches() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.unset > 0 {
		w.unset = 0
		w.link.unset.Add(-1)
	}
}

// rewatchLimit is how long the first reply waits for watches to be sent again. They
// are not if all have fired meanwhile.
const (
	rewatchLimit = 50 * time.Millisecond
	rewatchPause = time.Millisecond
)

// awaitWatches holds the first reply back until go-zookeeper has sent its watches
// again: it reads the last zxid for that without a lock, and a reply changes it.
func (w *wire) awaitWatches() {
	if w.rewatch == nil || w.awaited {
		return
	}
	w.awaited = true
	// Many short waits: a process that is not scheduled for a while uses up only one of them,
	// and go-zookeeper gets its turn in the others.
	for range rewatchLimit / rewatchPause {
		select {
		case <-w.rewatch:
			return
		case <-time.After(rewatchPause):
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.unset > 0 {
		w.expectWatches(0)
	}
}

// Read gives what the server sends, once it was looked at.
func (w *wire) Read(p []byte) (int, error) {
	if !w.ready.Load() {
		if err := w.shakeHands(); err != nil {
			w.forgetWatches()
			err = fmt.Errorf("handshake with %s: %w", w.RemoteAddr(), err)
			w.link.note(err)
			return 0, err
		}
		w.ready.Store(true)
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

// nextFrame looks at the head of the next reply.
func (w *wire) nextFrame() error {
	for w.skip > 0 {
		n, err := w.in.Discard(w.skip)
		w.skip -= n
		if err != nil {
			return err
		}
	}
	head, err := w.in.Peek(lengthSize)
	if err != nil {
		return err
	}
	size := binary.BigEndian.Uint32(head)
	if size < minFrame || size > maxFrame {
		return fmt.Errorf("a message of %d bytes is not ZooKeeper's", size)
	}
	if head, err = w.in.Peek(lengthSize + minFrame); err != nil {
		return err
	}
	xid := int32(binary.BigEndian.Uint32(head[lengthSize:]))
	w.answered(xid)
	if xid >= 0 {
		w.awaitWatches()
	}
	if limit := w.link.cfg.maxReply; limit > 0 && int(size) > limit {
		return w.withhold(head, xid, int(size))
	}
	w.rest = lengthSize + int(size)
	return nil
}

// withhold puts an error in the place of a reply that is too large. go-zookeeper
// would end the connection because of it, again and again as it is asked again.
func (w *wire) withhold(head []byte, xid int32, size int) error {
	w.link.cfg.log.Error("ZooKeeper's answer is larger than Config.MaxReply and is not read",
		"server", w.RemoteAddr().String(), "bytes", size, "limit", w.link.cfg.maxReply)
	if xid < 0 {
		return fmt.Errorf("a message of %d bytes, which no request has asked for, is larger than MaxReply", size)
	}
	w.own = append([]byte(nil), head...)
	binary.BigEndian.PutUint32(w.own, minFrame)
	code := int32(codeTooLarge)
	binary.BigEndian.PutUint32(w.own[lengthSize+12:], uint32(code))
	w.skip = lengthSize + size
	return nil
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
			if xid == greeting {
				w.link.shaken.Store(int64(s.at))
			}
			break
		}
	}
	if w.closing != 0 && xid == w.closing {
		w.link.ended.Store(true)
	}
}
