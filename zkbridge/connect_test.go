package zkbridge

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/actorlock/actorlock/zkbridge/zktest"
)

func TestUnreachable(t *testing.T) {
	b := open(t, Config{Servers: "127.0.0.1:1,localhost:1", ConnectTimeout: patience})
	attemptFails(t, b, "refused")
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
		synctest.Test(t, func(t *testing.T) {
			var dials atomic.Int32
			b := open(t, Config{Servers: "mute:1", SessionTimeout: time.Second, ConnectTimeout: 100 * time.Millisecond,
				Dial: piped(func(conn net.Conn) {
					dials.Add(1)
					go io.WriteString(conn, says)
					io.Copy(io.Discard, conn)
				})})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := b.Connected(ctx); err == nil || !strings.Contains(err.Error(), "handshake with pipe") {
				t.Errorf("%q: %v", says, err)
			}
			if n := dials.Load(); n < 2 {
				t.Errorf("%q: %d attempts", says, n)
			}
			checkClose(t, b, true)
		})
	}
}

// What is behind a port that accepts connections is named, also before an attempt has
// failed.
func TestNoZooKeeperBehindPort(t *testing.T) {
	const mute = "it accepts connections but does not answer as ZooKeeper"
	for _, c := range []struct{ does, says string }{
		{"", mute},
		{"HTTP/1.1 400 Bad Request\r\n", mute + ": a message of"},
		{"\x15\x03\x01\x00\x02\x02\x50", mute + ": a message of"}, // an alert of TLS
		{"hang up", "hangs up, as a ZooKeeper server without a quorum does"},
	} {
		for _, patient := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				b := open(t, Config{Servers: "port:1", SessionTimeout: 20 * time.Second, Dial: piped(func(conn net.Conn) {
					if c.does == "hang up" {
						io.ReadFull(conn, make([]byte, 48))
						return
					}
					go io.WriteString(conn, c.does)
					io.Copy(io.Discard, conn)
				})})
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				if patient {
					ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
				}
				defer cancel()
				if err := b.Connected(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%q: %v", c.does, err)
				}
			})
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
