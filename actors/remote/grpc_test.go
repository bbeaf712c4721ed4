package remote

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
)

// The streams to a server share a connection. An abandoned one ends with its last stream, and the next
// stream has another one.
func TestAbandonedConnection(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error { <-stream.Context().Done(); return nil }))
	go server.Serve(listener)
	defer server.Stop()
	opened, closed := make(chan struct{}, 10), make(chan struct{}, 10)
	d := newGRPCDialer(nil, func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, address)
		opened <- struct{}{}
		return &notedConn{c, closed}, err
	})
	defer d.close()
	open := func() context.CancelFunc {
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := d.connect(ctx, listener.Addr().String()); err != nil {
			t.Fatal(err)
		}
		return cancel
	}
	within := func(what string, c chan struct{}) {
		t.Helper()
		select {
		case <-c:
		case <-time.After(time.Minute):
			t.Fatal("no connection is ", what)
		}
	}
	first, second := open(), open()
	defer second()
	within("opened", opened)
	if len(opened) > 0 {
		t.Error("two streams have a connection each")
	}
	d.abandon(listener.Addr().String())
	d.abandon("another server:1")
	third := open()
	defer third()
	within("opened", opened)
	first()
	if len(closed) > 0 {
		t.Error("a connection is closed that has a stream")
	}
	second()
	within("closed", closed)
	third()
	d.abandon(listener.Addr().String())
	within("closed", closed)
}

// A session that is closed opens no connection, also not for a stream that it had begun to open.
func TestNoConnectionBehindClose(t *testing.T) {
	d := newGRPCDialer(nil, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d.close()
	_, err := d.connect(ctx, "127.0.0.1:1")
	if !errors.Is(err, context.Canceled) || len(d.conns) > 0 {
		t.Errorf("%v, and %d connections", err, len(d.conns))
	}
}

// notedConn notes that it was closed.
type notedConn struct {
	net.Conn
	closed chan<- struct{}
}

func (c *notedConn) Close() error {
	select {
	case c.closed <- struct{}{}:
	default:
	}
	return c.Conn.Close()
}
