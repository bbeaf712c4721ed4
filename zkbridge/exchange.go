package zkbridge

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

// exchange is the part of a wire for the bridge's requests. They are written as they
// come, and their answers are handed on by who reads the connection: that spares the
// goroutines that wait for each, and reflection.
type exchange struct {
	xid     int32    // of the newest request; guarded by wire.mu as the rest is
	roomy   bool     // the connection has a buffer
	queue   [][]byte // requests to be written, in pieces that a socket takes, or of one request
	held    bool     // the bridge is about to send more
	writing bool     // drain is at it
	spare   []byte   // for the next piece, or nil
	broken  bool     // nothing is sent any more
	// rewatching counts the messages that set watches again and are not answered. Until all
	// are, this connection has not reported what has happened since link.since.
	rewatching atomic.Int32
	// turn is held while a request is told its answer, so that all are told in order. That is
	// a message to the bridge or the end of a wait: no taker closes the connection, which
	// takes turn, too.
	turn sync.Mutex
}

// taker is told an answer, or why there is none, on any goroutine. It must not block, nor
// keep memory that is not its own.
type taker[T any] func(T, error)

// firstXid is that of the first request. go-zookeeper, which counts from 1, sends one
// message with a number of its own, the last.
const firstXid = 1000

// socketTakes is how many bytes a socket takes at any rate without waiting for the other
// side.
const socketTakes = 16 << 10

// isRoomy tells of a connection that has a buffer for socketTakes. Of others than TCP's
// nobody knows.
func isRoomy(conn net.Conn) bool {
	_, is := conn.(*net.TCPConn)
	return is
}

// send sends a request and does not block. What one goroutine sends is sent, and
// answered, in order. It does not keep the request.
func (w *wire) send(request []byte, then taker[[]byte]) {
	binary.BigEndian.PutUint32(request, uint32(len(request)-lengthSize))
	w.mu.Lock()
	if w.broken {
		w.mu.Unlock()
		then(nil, zk.ErrNoServer)
		return
	}
	if w.xid < firstXid || w.xid == math.MaxInt32 {
		w.xid = firstXid - 1
	}
	w.xid++
	binary.BigEndian.PutUint32(request[lengthSize:], uint32(w.xid))
	w.note(stamp{xid: w.xid, size: len(request), then: then})
	w.enqueue(request)
	w.pass()
}

// enqueue needs w.mu.
func (w *wire) enqueue(request []byte) {
	if n := len(w.queue); n > 0 && len(w.queue[n-1])+len(request) <= socketTakes {
		w.queue[n-1] = append(w.queue[n-1], request...)
		return
	}
	w.queue = append(w.queue, append(w.spare, request...))
	w.spare = nil
}

// hold has requests wait for letGo. Those of others than the bridge do, too: it does not
// take long.
func (w *wire) hold() {
	w.mu.Lock()
	w.held = true
	w.mu.Unlock()
}

// letGo sends what has come since hold.
func (w *wire) letGo() {
	w.mu.Lock()
	w.held = false
	w.pass()
}

// pass writes the queue, one piece then; or drain does, if the socket might have to be waited
// for. It is called with w.mu, and unlocks that.
func (w *wire) pass() {
	switch {
	case w.held || w.writing || len(w.queue) == 0:
		w.mu.Unlock()
	case w.roomy && len(w.queue) == 1 && w.unanswered <= socketTakes && w.out.TryLock():
		w.transmit()
	default:
		w.writing = true
		w.mu.Unlock()
		go w.drain()
	}
}

// drain writes what could not be written without waiting, perhaps. Between two pieces
// go-zookeeper finds its turn, whose pings have a deadline.
func (w *wire) drain() {
	for {
		w.out.Lock()
		w.mu.Lock()
		if len(w.queue) == 0 || w.broken {
			w.writing, w.queue = false, nil
			w.mu.Unlock()
			w.out.Unlock()
			return
		}
		w.transmit()
	}
}

// transmit writes the first piece of the queue. It is called with w.out and w.mu, and
// unlocks them. It ends the connection if writing fails, as go-zookeeper does. There is no
// deadline: where the other side takes nothing it answers nothing, and reading has one.
func (w *wire) transmit() {
	piece := w.queue[0]
	w.queue = slices.Delete(w.queue, 0, 1)
	w.mu.Unlock()
	_, err := w.Conn.Write(piece)
	w.out.Unlock()
	if cap(piece) <= maxBody {
		w.mu.Lock()
		w.spare = piece[:0]
		w.mu.Unlock()
	}
	if err != nil {
		w.Close()
	}
}

// receive takes in the answer to a request.
func (w *wire) receive(head []byte, xid int32, size int) (err error) {
	w.seen(int64(binary.BigEndian.Uint64(head[lengthSize+xidSize:])))
	refusal := errorOf(int32(binary.BigEndian.Uint32(head[lengthSize+xidSize+8:])))
	var answer []byte
	if w.isTooLarge(size) {
		refusal = errTooLarge
		_, err = w.in.Discard(lengthSize + size)
	} else {
		answer, err = w.readBody(size)
	}
	if err != nil {
		return err
	}
	w.turn.Lock()
	defer w.turn.Unlock()
	if s := w.answered(xid); s.then != nil { // else it was told that the connection is lost
		s.then(answer, refusal)
	}
	return nil
}

// happened takes in the event of a watch. It proves nothing about the session: it answers
// no message.
func (w *wire) happened(size int) error {
	if err := w.checkSize(size); err != nil {
		return err
	}
	body, err := w.readBody(size)
	if err != nil {
		return err
	}
	r := reader{rest: body}
	kind, _, path := zk.EventType(r.int()), r.int(), r.text()
	if r.bad {
		return errGarbled
	}
	w.link.happened(kind, path)
	return nil
}

// maxBody is the size of messages for which memory is kept.
const maxBody = 64 << 10

// readBody reads a message of size bytes, and gives what is behind its head. That is good
// until the next is read.
func (w *wire) readBody(size int) ([]byte, error) {
	if _, err := w.in.Discard(lengthSize + minFrame); err != nil {
		return nil, err
	}
	size -= minFrame
	if size > maxBody {
		w.body = nil
	}
	body := slices.Grow(w.body[:0], size)[:size]
	if size <= maxBody {
		w.body = body
	}
	_, err := io.ReadFull(w.in, body)
	return body, err
}

// lose has all requests fail that will not be answered any more; why is told to the one that
// was to be answered next.
func (w *wire) lose(why error) {
	w.turn.Lock()
	defer w.turn.Unlock()
	w.mu.Lock()
	left := w.sent
	w.broken, w.sent, w.unanswered = true, nil, 0
	w.mu.Unlock()
	for _, s := range left {
		if s.then != nil {
			s.then(nil, why)
			why = zk.ErrConnectionClosed
		}
	}
}
