package remote_test

import (
	"bytes"
	"context"
	"net"
	"sync"
	"time"
)

// wire is the connection of one process to ZooKeeper, which can be cut off.
type wire struct {
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
	perByte time.Duration // that a byte takes, in each direction

	mu    sync.Mutex
	until time.Time // cut off
}

// cutOff holds all back for a time.
func (w *wire) cutOff(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if until := time.Now().Add(d); until.After(w.until) {
		w.until = until
	}
}

func (w *wire) heal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.until = time.Time{}
}

// wait blocks while the process is cut off, and reports whether it is not any more before done is
// closed.
func (w *wire) wait(done <-chan struct{}) bool {
	for {
		w.mu.Lock()
		d := time.Until(w.until)
		w.mu.Unlock()
		if d <= 0 {
			return true
		}
		select {
		case <-done:
			return false
		case <-time.After(min(d, 50*time.Millisecond)):
		}
	}
}

// pace blocks for as long as some bytes take, and reports whether done is not closed before.
func (w *wire) pace(bytes int, done <-chan struct{}) bool {
	if w.perByte == 0 {
		return true
	}
	select {
	case <-done:
		return false
	case <-time.After(time.Duration(bytes) * w.perByte):
		return true
	}
}

// Dial opens a connection.
func (w *wire) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if !w.wait(ctx.Done()) {
		return nil, context.Cause(ctx)
	}
	c, err := w.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	wc := &wireConn{Conn: c, wire: w, closed: make(chan struct{}), out: make(chan []byte, 1<<12)}
	go wc.carry()
	return wc, nil
}

// wireConn is a connection of a wire. Write does not block: a caller that holds a mutex meanwhile
// would stop virtual time.
type wireConn struct {
	net.Conn
	wire   *wire
	once   sync.Once
	closed chan struct{}
	out    chan []byte
}

func (c *wireConn) carry() {
	for {
		select {
		case b := <-c.out:
			if !c.wire.wait(c.closed) || !c.wire.pace(len(b), c.closed) {
				return
			}
			if _, err := c.Conn.Write(b); err != nil {
				return
			}
		case <-c.closed:
			return
		}
	}
}

// Read implements net.Conn.
func (c *wireConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if !c.wire.wait(c.closed) || !c.wire.pace(n, c.closed) {
		return 0, net.ErrClosed
	}
	return n, err
}

// Write implements net.Conn.
func (c *wireConn) Write(b []byte) (int, error) {
	select {
	case c.out <- bytes.Clone(b):
		return len(b), nil
	case <-c.closed:
		return 0, net.ErrClosed
	}
}

// Close implements net.Conn.
func (c *wireConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
