package zkbridge

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/actorlock/actorlock/zkbridge/zktest"
)

func TestUnreachable(t *testing.T) {
	b := open(t, Config{Servers: "127.0.0.1:1,localhost:1", SessionTimeout: time.Second})
	ctx, cancel := context.WithTimeoutCause(context.Background(), 200*time.Millisecond, errors.New("enough"))
	defer cancel()
	err := b.Connected(ctx)
	for _, part := range []string{"127.0.0.1:1,localhost:1", "enough", "refused"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not say %q", err, part)
		}
	}
	if !errors.Is(err, context.Cause(ctx)) {
		t.Errorf("%v does not wrap the cause", err)
	}
	checkClose(t, b, true)
}

// TestUnknownName has one name of two that does not resolve.
func TestUnknownName(t *testing.T) {
	s := zktest.Embedded(t)
	connected(t, Config{Servers: "no-such-host.invalid:2181," + s.Addr()})
}

// TestMute connects to servers that accept and then say nothing, or not enough.
func TestMute(t *testing.T) {
	for _, says := range []string{"", "\x00\x00\x00\x25", "\x00\x00\x00\x25abc", "HTTP/1.1 400 Bad Request\r\n"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		dials := make(chan net.Conn, 100)
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					close(dials)
					return
				}
				conn.Write([]byte(says))
				dials <- conn
			}
		}()
		b := open(t, Config{Servers: l.Addr().String(), SessionTimeout: time.Second, ConnectTimeout: 100 * time.Millisecond})
		first, second := <-dials, <-dials // it gives up and tries again
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		if err := b.Connected(ctx); err == nil || !strings.Contains(err.Error(), "handshake with "+l.Addr().String()) {
			t.Errorf("%q: %v", says, err)
		}
		cancel()
		checkClose(t, b, true)
		l.Close()
		first.Close()
		second.Close()
		for conn := range dials {
			conn.Close()
		}
	}
}

func TestOtherTimeoutGranted(t *testing.T) {
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		b := open(t, Config{Servers: s.Addr(), SessionTimeout: 101 * time.Millisecond})
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		err := b.Connected(ctx)
		if !errors.Is(err, ErrSessionTimeout) || !strings.Contains(err.Error(), "101ms") || !strings.Contains(err.Error(), "400ms") {
			t.Errorf("%v", err)
		}
		if err := b.Connected(ctx); !errors.Is(err, ErrSessionTimeout) {
			t.Errorf("asked again: %v", err)
		}
		b.Close()
		if err := b.Connected(ctx); !errors.Is(err, ErrSessionTimeout) {
			t.Errorf("asked after Close: %v", err)
		}
	})
}
