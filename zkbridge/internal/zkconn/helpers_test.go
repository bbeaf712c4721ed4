package zkconn

import (
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// The fixtures of these tests:
//
//	handshaking  a connection before its handshake
//	opened       a connection after its handshake; openedPipe: over a pipe whose other end is the server's
//	deliver      has a connection read bytes of the server, in pieces
//	frame        a message; sentRequests: those that the server gets
//	answers      the answers to requests
//	testNetwork  name servers and servers (resolver_test.go)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// timeLimit is how long a test waits for an event that must come, on the slowest machine.
const timeLimit = zktest.TimeLimit

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// handshaking returns a connection over conn before its handshake.
func handshaking(conn net.Conn, cfg *Settings) *Conn {
	cfg.Log = slog.New(slog.DiscardHandler)
	cfg.Clock = NewClock(nil)
	session := newSessionConn(1, cfg, func(any) {}, func(error) {})
	return newConn(conn, conn, session, time.Now().Add(time.Hour))
}

// opened returns a connection over conn after its handshake.
func opened(conn net.Conn, cfg *Settings) *Conn {
	c := handshaking(conn, cfg)
	c.session.onHandshake(0, time.Hour)
	return c
}

// openedPipe returns a connection after its handshake, and the server's end.
func openedPipe(t *testing.T, cfg *Settings) (c *Conn, server net.Conn) {
	client, server := net.Pipe()
	t.Cleanup(func() { server.Close() })
	return opened(client, cfg), server
}

// deliver sends messages to the connection, in pieces of n bytes, and has it read them.
func (c *Conn) deliver(t *testing.T, server net.Conn, n int, messages ...[]byte) {
	t.Helper()
	go func() {
		for piece := range slices.Chunk(slices.Concat(messages...), n) {
			server.Write(piece)
		}
	}()
	for range messages {
		must(t, c.readMessage())
	}
}

// frame returns a message with its length, and with fields at its beginning.
func frame(size int, fields ...int32) []byte {
	b := make([]byte, 4+size)
	binary.BigEndian.PutUint32(b, uint32(size))
	for i, f := range fields {
		binary.BigEndian.PutUint32(b[4+4*i:], uint32(f))
	}
	return b
}

// sentRequests reads n requests at the server, and returns the xid and the size of each.
func sentRequests(t *testing.T, server io.Reader, n int) (list []string) {
	t.Helper()
	for range n {
		head := make([]byte, lengthSize)
		_, err := io.ReadFull(server, head)
		must(t, err)
		body := make([]byte, binary.BigEndian.Uint32(head))
		_, err = io.ReadFull(server, body)
		must(t, err)
		list = append(list, fmt.Sprint(binary.BigEndian.Uint32(body), ":", len(body)))
	}
	return list
}

// answers holds the answers to requests, in their order.
type answers chan string

// of returns the callback of the request with a name.
func (a answers) of(name string) Callback[[]byte] {
	return func(body []byte, err error) { a <- fmt.Sprint(name, " ", len(body), " ", err) }
}

// expect waits for answers, and checks that there are no others.
func (a answers) expect(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for range want {
		select {
		case s := <-a:
			got = append(got, s)
		case <-time.After(timeLimit):
			t.Fatalf("only the answers %q", got)
		}
	}
	if !slices.Equal(got, want) || len(a) > 0 {
		t.Errorf("answers %q and %d more, want %q", got, len(a), want)
	}
}

// ignore is a callback.
func ignore([]byte, error) {}
