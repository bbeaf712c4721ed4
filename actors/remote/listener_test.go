package remote

import (
	"errors"
	"fmt"
	"net"
	"runtime"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// A listener closes the connections that are over its bounds, of an address and of all, before anything
// was said on them, and takes new ones when others have ended.
func TestListener(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused := make(chan bool, 10)
	bounded := newListener(l, 3, 2, func(_ string, full bool) { refused <- full })
	accepted := make(chan net.Conn, 10)
	ended := make(chan error, 1)
	go func() {
		for {
			c, err := bounded.Accept()
			if err != nil {
				ended <- err
				return
			}
			accepted <- c
		}
	}()
	dial := func(from string) net.Conn {
		t.Helper()
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		c, err := d.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	var open []net.Conn
	for range 2 {
		dial("127.0.0.1")
		open = append(open, <-accepted)
	}
	silent := dial("127.0.0.1")
	if full := <-refused; full {
		t.Error("the address is over its bound, not all")
	}
	silent.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := silent.Read(make([]byte, 1)); err == nil {
		t.Error("the connection is open")
	}
	open[0].Close()
	open[0].Close() // counts once
	dial("127.0.0.1")
	open = append(open, <-accepted)
	dial("127.0.0.2") // another address has room
	open = append(open, <-accepted)
	dial("127.0.0.3")
	if full := <-refused; !full {
		t.Error("there is room for all")
	}
	l.Close()
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	for _, c := range open {
		c.Close()
	}
	if bounded.open != 0 || len(bounded.byAddress) != 0 {
		t.Errorf("%d are open: %v", bounded.open, bounded.byAddress)
	}
}

// accepts is a listener that returns connections and errors, and then that it is closed.
type accepts chan any

// Accept implements net.Listener.
func (l accepts) Accept() (net.Conn, error) {
	switch next := (<-l).(type) {
	case net.Conn:
		return next, nil
	case error:
		return nil, next
	}
	return nil, net.ErrClosed
}

// Close implements net.Listener.
func (l accepts) Close() error { close(l); return nil }

// Addr implements net.Listener.
func (l accepts) Addr() net.Addr { return &net.TCPAddr{} }

// connOf is a connection of an address, which counts that it is closed.
type connOf struct {
	net.Conn
	address string
	closed  *int
}

// RemoteAddr implements net.Conn.
func (c connOf) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(c.address), Port: 1} }

// Close implements net.Conn.
func (c connOf) Close() error { *c.closed++; return nil }

// However many connections of one address wait, those of others are handed over in turn with them, and
// in each pause as many as there are processors. What waits is closed with the listener.
func TestListenerTurns(t *testing.T) {
	const many = 500
	synctest.Test(t, func(t *testing.T) {
		from, closed := make(accepts, many+1), 0
		from <- &net.OpError{Op: "accept", Err: syscall.EMFILE} // there is a file later
		for i := range many {
			address := "10.0.0.1"
			if few := many - i; few <= 4 {
				address = fmt.Sprintf("10.0.0.%d", 2+few%2)
			}
			from <- connOf{address: address, closed: &closed}
		}
		l := newListener(from, many, many, func(string, bool) { t.Error("a connection is refused") })
		var open []net.Conn
		accept := func() string {
			c, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, c)
			return addressOf(c.RemoteAddr().String())
		}
		accept()
		synctest.Wait()
		if n, want := len(from), max(0, many+1-takenInPause*runtime.GOMAXPROCS(0)); n != want {
			t.Errorf("the listener has left %d to the system before its first pause, want %d", n, want)
		}
		<-time.After(time.Second) // the others wait
		began, last, others := time.Now(), 0, 0
		const enough = 101
		for n := 1; n < enough; n++ {
			if accept() != "10.0.0.1" {
				last = n
				others++
			}
		}
		if last > 6 || others != 4 {
			t.Errorf("%d of 4 connections of others are handed over, the last by place %d", others, last)
		}
		if lasted, want := time.Since(began), listenerPause*time.Duration((enough-1)/runtime.GOMAXPROCS(0)); lasted != want {
			t.Errorf("%d connections take %v, want %v", enough, lasted, want)
		}
		from.Close()
		synctest.Wait()
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) || closed != many-enough {
			t.Errorf("%v, %d are closed", err, closed)
		}
		for _, c := range open {
			c.Close()
		}
		if l.open != 0 || len(l.byAddress) != 0 {
			t.Errorf("%d are open: %v", l.open, l.byAddress)
		}
	})
}
