package zkconn

import (
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
)

// opened returns a connection behind its handshake, over conn.
func opened(conn net.Conn, cfg *Settings) *Conn {
	cfg.Log = slog.New(slog.DiscardHandler)
	l := &SessionConn{cfg: cfg, openedAt: time.Now(), noteError: func(error) {}, post: func(any) {}}
	w := newConn(conn, conn, l, time.Now().Add(time.Hour))
	w.handshakeDone.Store(true)
	return w
}

// hearings holds the answers, in order.
type hearings chan string

func (a hearings) to(name string) Callback[[]byte] {
	return func(body []byte, err error) { a <- fmt.Sprint(name, " ", len(body), " ", err) }
}

func (a hearings) expect(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for range want {
		select {
		case s := <-a:
			got = append(got, s)
		case <-time.After(patience):
			t.Fatalf("only %q were told", got)
		}
	}
	if !slices.Equal(got, want) || len(a) > 0 {
		t.Errorf("told %q and %d more, want %q", got, len(a), want)
	}
}

// xids reads n requests and returns the number and size of each.
func xids(t *testing.T, conn io.Reader, n int) (list []string) {
	t.Helper()
	for range n {
		head := make([]byte, lengthSize)
		if _, err := io.ReadFull(conn, head); err != nil {
			t.Fatal(err)
		}
		body := make([]byte, binary.BigEndian.Uint32(head))
		if _, err := io.ReadFull(conn, body); err != nil {
			t.Fatal(err)
		}
		list = append(list, fmt.Sprint(binary.BigEndian.Uint32(body), ":", len(body)))
	}
	return list
}

// A send does not wait for a server that reads nothing, and the order is kept.
func TestSendDoesNotBlock(t *testing.T) {
	client, server := net.Pipe()
	defer server.Close()
	w := opened(client, &Settings{})
	told := make(hearings, 10)
	for _, path := range []string{"/a", "/bb", "/ccc"} {
		w.send(encodeDelete(path), told.to(path))
	}
	if got := fmt.Sprint(xids(t, server, 3)); got != "[1000:18 1001:19 1002:20]" {
		t.Error(got)
	}
	w.send(encodeDelete("/dddd"), told.to("/dddd")) // later
	if got := fmt.Sprint(xids(t, server, 1)); got != "[1003:21]" {
		t.Error(got)
	}
	w.Close()
	closed := fmt.Sprint(" 0 ", zk.ErrConnectionClosed)
	told.expect(t, "/a"+closed, "/bb"+closed, "/ccc"+closed, "/dddd"+closed)
	w.send(encodeDelete("/e"), told.to("/e"))
	told.expect(t, fmt.Sprint("/e 0 ", zk.ErrNoServer))
}

// A socket is written to at once, until it might be full.
func TestSendOverSocket(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	conn, err := net.Dial("tcp", l.Addr().String())
	must(t, err)
	server, err := l.Accept()
	must(t, err)
	defer server.Close()
	w := opened(conn, &Settings{})
	defer w.Close()
	nobody := func([]byte, error) {}
	w.send(encodeDelete("/a"), nobody)
	if w.unanswered != headerSize+10 || len(w.unwritten) > 0 {
		t.Errorf("%d bytes, %d in queue", w.unanswered, len(w.unwritten))
	}
	want := []string{"1000:18"}
	for n := range 100 { // of a megabyte: more than any socket takes
		w.send(encodeDelete("/"+strings.Repeat("b", 1<<20)), nobody)
		want = append(want, fmt.Sprint(1001+n, ":", 1<<20+17))
	}
	if got := xids(t, server, 101); !slices.Equal(got, want) {
		t.Error(got)
	}
}

// The handshake's deadline does not hold for later requests.
func TestSendAfterTheHandshakesDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		defer server.Close()
		w := opened(client, &Settings{})
		w.handshakeDone.Store(false)
		w.deadline = time.Now().Add(time.Second)
		go func() {
			xids(t, server, 1)
			server.Write(frame(37, 0, 9000, 0, 77, 16))
		}()
		must(t, w.SetWriteDeadline(time.Now().Add(time.Minute))) // as go-zookeeper does
		_, err := w.Write(frame(40))
		must(t, err)
		must(t, w.SetWriteDeadline(time.Time{}))
		_, err = io.ReadFull(w, make([]byte, 41))
		must(t, err)
		time.Sleep(2 * time.Second)
		w.send(encodeDelete("/a"), func(_ []byte, err error) { t.Error(err) })
		if got := fmt.Sprint(xids(t, server, 1)); got != "[1000:18]" {
			t.Error(got)
		}
		w.sent = nil
		w.Close()
	})
}

// A send of more than the socket takes at once does not wait, either.
func TestSendMuchOverSocket(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	conn, err := net.Dial("tcp", l.Addr().String())
	must(t, err)
	must(t, conn.(*net.TCPConn).SetWriteBuffer(sendBuffer))
	server, err := l.Accept()
	must(t, err)
	defer server.Close()
	w := opened(conn, &Settings{})
	defer w.Close()
	sent := make(chan struct{})
	go func() {
		w.send(encodeDelete("/"+strings.Repeat("a", 16<<20)), func([]byte, error) {})
		close(sent)
	}()
	select {
	case <-sent:
	case <-time.After(patience):
		t.Error("waits for the server")
	}
}

// Answers find their requests, between the answers for go-zookeeper. An answer that is too large, late,
// or without a request does no harm.
func TestAnswers(t *testing.T) {
	client, server := net.Pipe()
	defer server.Close()
	go io.Copy(io.Discard, server)
	w := opened(client, &Settings{MaxReply: 1000})
	told := make(hearings, 10)
	for _, name := range []string{"a", "b", "c", "d"} {
		w.send(encodeDelete("/"+name), told.to(name))
	}
	w.pieces(t, server, frame(16, xidPing), 5, slices.Concat(frame(16, 1000, 0, 7), frame(300, 1001, 0, 8),
		frame(70_000, 1002, 0, 9), frame(16, 1003, 0, 6, -101), frame(16, 1003), frame(16, 5000, 0, 10))...)
	told.expect(t, "a 0 <nil>", "b 284 <nil>", fmt.Sprint("c 0 ", errTooLarge), fmt.Sprint("d 0 ", zk.ErrNoNode))
	if newest := w.session.lastZxid.Load(); newest != 10 {
		t.Errorf("newest zxid is %d", newest)
	}
	w.send(encodeDelete("/e"), told.to("e"))
	go server.Write(frame(1001, xidEvent))
	if _, err := w.Read(make([]byte, 4)); err == nil || !strings.Contains(err.Error(), "1001 bytes") {
		t.Errorf("%v", err)
	}
	told.expect(t, fmt.Sprint("e 0 ", zk.ErrConnectionClosed)) // since no goroutine reads on
}

// Answers keep go-zookeeper, which does not see them, from taking the server for dead.
func TestAnswersAreSignsOfLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		defer server.Close()
		go io.Copy(io.Discard, server)
		w := opened(client, &Settings{})
		go func() {
			for n := range int32(10) {
				w.send(encodeDelete("/n"), func([]byte, error) {})
				time.Sleep(9 * time.Second)
				server.Write(frame(16, 1000+n))
			}
		}()
		must(t, w.SetReadDeadline(time.Now().Add(10*time.Second)))
		begun := time.Now()
		_, err := w.Read(make([]byte, 4))
		if took := time.Since(begun); err == nil || took != 100*time.Second {
			t.Errorf("%v after %v", err, took)
		}
	})
}

// Numbers begin anew before they become negative.
func TestNumbersOfRequests(t *testing.T) {
	client, server := net.Pipe()
	defer server.Close()
	w := opened(client, &Settings{})
	w.xid = math.MaxInt32 - 1
	for range 2 {
		w.send(encodeDelete("/"), func([]byte, error) {})
	}
	if got := fmt.Sprint(xids(t, server, 2)); got != "[2147483647:17 1000:17]" {
		t.Error(got)
	}
}

// A connection over which the server does not set the watches again is of no use: no waiter would be
// woken.
func TestWatchesAreNotSetAgain(t *testing.T) {
	client, server := net.Pipe()
	defer server.Close()
	w := opened(client, &Settings{})
	zkClient{session: w.session}.SetWatches(w, []string{"/n"}, nil)
	if got := fmt.Sprint(xids(t, server, 1)); got != "[1000:34]" {
		t.Error(got)
	}
	go w.Read(make([]byte, 4))
	server.Write(frame(16, firstXid, 0, 0, CodeUnimplemented))
	server.SetReadDeadline(time.Now().Add(patience))
	if _, err := server.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("%v, not the end", err)
	}
}

// The answers come one after the other, also if an answer comes while the connection is lost.
func TestOneCallbackAtATime(t *testing.T) {
	client, server := net.Pipe()
	defer server.Close()
	go io.Copy(io.Discard, server)
	w := opened(client, &Settings{})
	told := make(chan bool, 2)
	for range 2 {
		w.send(encodeDelete("/n"), func([]byte, error) {
			free := w.callbackMu.TryLock()
			if free {
				w.callbackMu.Unlock()
			}
			told <- free
		})
	}
	w.pieces(t, server, frame(16, xidPing), 100, frame(16, firstXid)...)
	w.Close()
	if first, second := <-told, <-told; first || second {
		t.Error("another could be told meanwhile")
	}
}

// A send that cannot be written does not wait, even if the other direction works.
func TestSendFails(t *testing.T) {
	client, server := net.Pipe()
	defer server.Close()
	w := opened(client, &Settings{})
	must(t, client.SetWriteDeadline(time.Now()))
	told := make(hearings, 1)
	w.send(encodeDelete("/a"), told.to("a"))
	told.expect(t, fmt.Sprint("a 0 ", zk.ErrConnectionClosed))
}

// No request overtakes one that is still to be written, though there may be room again.
func TestSendBehindOthers(t *testing.T) {
	client, server := net.Pipe()
	defer server.Close()
	w := opened(client, &Settings{})
	w.hasSendBuffer, w.flushing = true, true
	w.send(encodeDelete("/a"), func([]byte, error) {})
	go w.flushLoop()
	if got := fmt.Sprint(xids(t, server, 1)); got != "[1000:18]" {
		t.Error(got)
	}
}

// Watches are set again in as many messages as it takes, each path once.
func TestWatchRequests(t *testing.T) {
	paths := func(kind string, n int) (list []string) {
		for i := range n {
			list = append(list, fmt.Sprintf("/%s%0*d", kind, 1000, i))
		}
		return list
	}
	for _, c := range []struct{ nodes, directories, messages int }{{0, 0, 0}, {1, 0, 1}, {0, 1, 1}, {100, 100, 2}, {300, 200, 4}} {
		nodes, directories := paths("node", c.nodes), paths("directory", c.directories)
		requests := encodeSetWatches(77, nodes, directories)
		if len(requests) != c.messages {
			t.Errorf("%+v: %d messages", c, len(requests))
		}
		for _, b := range requests {
			r := reader{rest: b[headerSize:]}
			zxid, some, missing, others := r.long(), r.texts(), r.texts(), r.texts()
			if zxid != 77 || len(missing) != 0 || r.bad || len(r.rest) != 0 || len(b) > maxWatches+2000 {
				t.Errorf("%+v: zxid %d, %d bytes, %d left", c, zxid, len(b), len(r.rest))
			}
			if !slices.Equal(some, nodes[:len(some)]) || !slices.Equal(others, directories[:len(others)]) {
				t.Errorf("%+v: other paths", c)
			}
			nodes, directories = nodes[len(some):], directories[len(others):]
		}
		if len(nodes)+len(directories) > 0 {
			t.Errorf("%+v: %d and %d paths are left", c, len(nodes), len(directories))
		}
	}
}
