package remote

import (
	"errors"
	"net"
	"runtime"
	"sync"
	"time"
)

// listener bounds the connections, from before their handshake on, and has them begin it in turn. It closes
// at once what is over the bounds. The rest is handed to gRPC address by address, and a few at a time: the
// handshakes of thousands that come at one moment would take all processors for seconds, before what
// clients send is read. One that the peer closes while it waits costs no handshake.
type listener struct {
	net.Listener
	all, perAddress int
	refused         func(address string, all bool)

	begin  sync.Once
	some   chan struct{} // has one if connections wait that did not before
	failed chan error    // has what ended the listener
	handed paced         // what Accept returns

	mu        sync.Mutex
	open      int // connections that are not closed
	byAddress map[string]*atAddress
	turns     []*atAddress // those with connections that wait, in turn
}

// atAddress are the connections of an address.
type atAddress struct {
	open    int            // those that are not closed, at least one
	waiting []*boundedConn // those of them that Accept has not returned
}

// In each pause a listener takes so many connections from the system for each processor, and hands over so
// many: the rest of the time is for the frames of clients. On two processors a listener hands over some 2,000
// connections in a second. More TLS handshakes would take both processors.
const (
	listenerPause = time.Millisecond
	takenInPause  = 8
	handedInPause = 1
)

// filesPause is how long a listener pauses when the system has no file for a connection.
const filesPause = 10 * time.Millisecond

func newListener(l net.Listener, all, perAddress int, refused func(address string, all bool)) *listener {
	return &listener{Listener: l, all: all, perAddress: perAddress, refused: refused,
		some: make(chan struct{}, 1), failed: make(chan error, 1), byAddress: map[string]*atAddress{}}
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	l.begin.Do(func() { go l.takeAll() })
	l.handed.wait(handedInPause)
	runtime.Gosched() // the handshake before goes first
	for {
		c := l.next()
		switch {
		case c == nil:
			select {
			case <-l.some:
			case err := <-l.failed:
				return nil, err
			}
		case hungUp(c.Conn):
			c.Close()
		default:
			l.handed++
			return c, nil
		}
	}
}

// temporary is the error of a system that has no file or no memory at the moment. (gRPC, too, asks in this way.)
type temporary interface {
	error
	Temporary() bool
}

// takeAll takes the connections from the system, whose queue is one for all addresses, until the listener is closed.
func (l *listener) takeAll() {
	for taken := paced(0); ; taken++ {
		taken.wait(takenInPause)
		c, err := l.Listener.Accept()
		if e, is := errors.AsType[temporary](err); is && e.Temporary() {
			time.Sleep(filesPause)
			continue
		}
		if err != nil {
			for c := l.next(); c != nil; c = l.next() {
				c.Close()
			}
			l.failed <- err
			return
		}
		address := addressOf(c.RemoteAddr().String())
		if full, within := l.take(c, address); !within {
			c.Close()
			l.refused(address, full)
		}
	}
}

// paced counts what is done between two pauses.
type paced int

// wait pauses if so many were done for each processor.
func (p *paced) wait(each int) {
	if int(*p) >= each*runtime.GOMAXPROCS(0) {
		*p = 0
		time.Sleep(listenerPause)
	}
}

// take has a connection wait for its turn if it is within the bounds. Otherwise full reports whether that
// of all connections is reached.
func (l *listener) take(c net.Conn, address string) (full, within bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.byAddress[address]
	if a == nil {
		a = &atAddress{}
	}
	if full = l.open >= l.all; full || a.open >= l.perAddress {
		return full, false
	}
	l.byAddress[address] = a
	l.open++
	a.open++
	a.waiting = append(a.waiting, &boundedConn{Conn: c, closed: sync.OnceFunc(func() { l.ended(address) })})
	if len(a.waiting) == 1 {
		l.turns = append(l.turns, a)
	}
	select {
	case l.some <- struct{}{}:
	default:
	}
	return false, true
}

// next returns the connection whose turn it is, or nil: of each address the one that came first.
func (l *listener) next() *boundedConn {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.turns) == 0 {
		return nil
	}
	a := l.turns[0]
	l.turns = l.turns[1:]
	c := a.waiting[0]
	if a.waiting = a.waiting[1:]; len(a.waiting) > 0 {
		l.turns = append(l.turns, a)
	}
	return c
}

func (l *listener) ended(address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	a := l.byAddress[address]
	if a.open--; a.open == 0 {
		delete(l.byAddress, address)
	}
}

// boundedConn is a connection that a listener has counted.
type boundedConn struct {
	net.Conn
	closed func()
}

// Close implements net.Conn.
func (c *boundedConn) Close() error {
	err := c.Conn.Close()
	c.closed()
	return err
}
