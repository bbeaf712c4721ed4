package zkconn

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
)

// send does not wait for a server that reads nothing, and keeps the order.
func TestSendDoesNotBlock(t *testing.T) {
	c, server := openedPipe(t, &Settings{})
	replies := make(answers, 10)
	for _, path := range []string{"/a", "/bb", "/ccc"} {
		c.send(encodeDelete(path), replies.of(path))
	}
	if got := fmt.Sprint(sentRequests(t, server, 3)); got != "[1:18 2:19 3:20]" {
		t.Error(got)
	}
	c.send(encodeDelete("/dddd"), replies.of("/dddd")) // later
	if got := fmt.Sprint(sentRequests(t, server, 1)); got != "[4:21]" {
		t.Error(got)
	}
	c.Close()
	closed := fmt.Sprint(" 0 ", zk.ErrConnectionClosed)
	replies.expect(t, "/a"+closed, "/bb"+closed, "/ccc"+closed, "/dddd"+closed)
	c.send(encodeDelete("/e"), replies.of("/e"))
	replies.expect(t, fmt.Sprint("/e 0 ", zk.ErrNoServer))
}

// send writes to a socket at once until the socket's buffer may be full.
func TestSendOverSocket(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	conn, err := net.Dial("tcp", l.Addr().String())
	must(t, err)
	server, err := l.Accept()
	must(t, err)
	defer server.Close()
	c := opened(conn, &Settings{})
	defer c.Close()
	c.send(encodeDelete("/a"), ignore)
	if c.unanswered != headerSize+10 || len(c.unwritten) > 0 {
		t.Errorf("%d bytes, %d in queue", c.unanswered, len(c.unwritten))
	}
	want := []string{"1:18"}
	for n := range 100 { // of a megabyte: more than any socket takes
		c.send(encodeDelete("/"+strings.Repeat("b", 1<<20)), ignore)
		want = append(want, fmt.Sprint(2+n, ":", 1<<20+17))
	}
	if got := sentRequests(t, server, 101); !slices.Equal(got, want) {
		t.Error(got)
	}
}

// The deadline of the handshake does not apply to later requests.
func TestSendAfterTheHandshakesDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		defer server.Close()
		c := handshaking(client, &Settings{})
		c.deadline = time.Now().Add(time.Second)
		go answerConnect(server, frame(37, 0, 9000, 0, 77, 16))
		must(t, c.handshake())
		time.Sleep(2 * time.Second)
		c.send(encodeDelete("/a"), func(_ []byte, err error) { t.Error(err) })
		if got := fmt.Sprint(sentRequests(t, server, 1)); got != "[1:18]" {
			t.Error(got)
		}
		c.sent = nil
		c.Close()
	})
}

// send does not wait if a request is larger than the socket's buffer.
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
	c := opened(conn, &Settings{})
	defer c.Close()
	sent := make(chan struct{})
	go func() {
		c.send(encodeDelete("/"+strings.Repeat("a", 16<<20)), ignore)
		close(sent)
	}()
	select {
	case <-sent:
	case <-time.After(timeLimit):
		t.Error("send waits for the server")
	}
}

// Each answer reaches its request. The connection goes on after an answer that is too large.
func TestAnswers(t *testing.T) {
	c, server := openedPipe(t, &Settings{MaxReply: 1000})
	go io.Copy(io.Discard, server)
	replies := make(answers, 10)
	for _, name := range []string{"a", "b", "c", "d"} {
		c.send(encodeDelete("/"+name), replies.of(name))
	}
	c.deliver(t, server, 5, frame(16, 1, 0, 7), frame(300, 2, 0, 8), frame(70_000, 3, 0, 9), frame(16, 4, 0, 10, -101))
	replies.expect(t, "a 0 <nil>", "b 284 <nil>", fmt.Sprint("c 0 ", errTooLarge, ": it has 70000 bytes"), fmt.Sprint("d 0 ", zk.ErrNoNode))
	if newest := c.session.lastZxid.Load(); newest != 10 {
		t.Errorf("newest zxid is %d", newest)
	}
	c.send(encodeDelete("/e"), replies.of("e"))
	go server.Write(frame(1001, xidEvent))
	if err := c.serve(); err == nil || !strings.Contains(err.Error(), "1001 bytes") {
		t.Errorf("%v", err)
	}
	replies.expect(t, fmt.Sprint("e 0 ", zk.ErrConnectionClosed)) // because no goroutine goes on reading
}

// An answer that overtakes another, or that no request waits for, ends the connection, and does not
// count. A ping may be overtaken, and overtake, within the time between two pings.
func TestAnswersComeInOrder(t *testing.T) {
	const beat = time.Hour / BeatsPerTimeout
	for _, c := range []struct {
		name     string
		between  time.Duration
		sent     string // pings and requests
		answered []int32
		ends     bool
	}{
		{"in order", 2 * beat, "r.r", []int32{1, xidPing, 2}, false},
		{"overtaken", 0, "rr", []int32{2}, true},
		{"twice", 0, "r", []int32{1, 1}, true},
		{"of no request", 0, "r", []int32{1, 7}, true},
		{"of no ping", 0, "r", []int32{1, xidPing}, true},
		{"of a message that the client does not send", 0, "r", []int32{1, -4}, true},
		{"overtaken by a ping soon", beat, "r.", []int32{xidPing, 1}, false},
		{"overtaken by a ping", beat + 1, "r.", []int32{xidPing}, true},
		{"ping is overtaken soon", beat, ".r", []int32{1, xidPing}, false},
		{"ping is overtaken", beat + 1, ".r", []int32{1}, true},
		{"overtaken beside a ping", 0, ".rr", []int32{2}, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			conn, server := openedPipe(t, &Settings{})
			defer conn.Close()
			go io.Copy(io.Discard, server)
			for _, kind := range c.sent {
				if kind == '.' {
					conn.Ping()
				} else {
					conn.send(encodeDelete("/n"), ignore)
				}
				time.Sleep(c.between)
			}
			go func() {
				for i, xid := range c.answered {
					server.Write(frame(16, xid, 0, int32(i+1)))
				}
			}()
			var err error
			for i := 0; i < len(c.answered) && err == nil; i++ {
				err = conn.readMessage()
			}
			if (err != nil) != c.ends {
				t.Errorf("%s: %v", c.name, err)
			}
			if zxid := conn.session.Zxid(); c.ends && zxid >= int64(len(c.answered)) {
				t.Errorf("%s: the zxid %d counts", c.name, zxid)
			}
		})
	}
}

// A server whose zxids go back does not have what the session has seen: no answer of it counts, and
// the session is over.
func TestZxidGoesBack(t *testing.T) {
	c, server := openedPipe(t, &Settings{})
	go io.Copy(io.Discard, server)
	var events []any
	c.session.post = func(event any) { events = append(events, event) }
	replies := make(answers, 10)
	for _, name := range []string{"a", "b"} {
		c.send(encodeDelete("/"+name), replies.of(name))
	}
	go server.Write(slices.Concat(frame(16, 1, 0, 9), frame(16, 2, 0, 8)))
	if err := c.serve(); !errors.Is(err, errOver) {
		t.Errorf("%v", err)
	}
	replies.expect(t, "a 0 <nil>", fmt.Sprint("b 0 ", zk.ErrConnectionClosed))
	if want := (Expired{" has lost transactions: its zxid is 0x8 after 0x9"}); !slices.Equal(events, []any{want}) || !c.session.isOver() {
		t.Errorf("%v", events)
	}
}

// Each answer extends the read deadline, which is half of the session timeout.
func TestAnswersAreSignsOfLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := openedPipe(t, &Settings{})
		c.session.onHandshake(0, 20*time.Second)
		go io.Copy(io.Discard, server)
		go func() {
			for n := range int32(10) {
				c.send(encodeDelete("/n"), ignore)
				time.Sleep(7 * time.Second)
				server.Write(frame(16, firstXid+n))
			}
		}()
		begun := time.Now()
		err := c.serve()
		if took := time.Since(begun); !errors.Is(err, os.ErrDeadlineExceeded) || took != 80*time.Second {
			t.Errorf("%v after %v", err, took)
		}
	})
}

// The xids begin anew before they become negative.
func TestXids(t *testing.T) {
	c, server := openedPipe(t, &Settings{})
	c.xid = math.MaxInt32 - 1
	for range 2 {
		c.send(encodeDelete("/"), ignore)
	}
	if got := fmt.Sprint(sentRequests(t, server, 2)); got != "[2147483647:17 1:17]" {
		t.Error(got)
	}
}

// The connection closes if the server does not set the watches again, because waiters would miss
// their events.
func TestWatchesAreNotSetAgain(t *testing.T) {
	c, server := openedPipe(t, &Settings{})
	zkClient{session: c.session}.SetWatches(c, []string{"/n"}, nil)
	if got := fmt.Sprint(sentRequests(t, server, 1)); got != "[1:34]" {
		t.Error(got)
	}
	go c.serve()
	server.Write(frame(16, firstXid, 0, 0, CodeUnimplemented))
	server.SetReadDeadline(time.Now().Add(timeLimit))
	if _, err := server.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("%v, not the end", err)
	}
}

// Watches whose message the server has throttled are set again over the same connection.
func TestWatchesAreThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := openedPipe(t, &Settings{})
		defer c.Close()
		zkClient{session: c.session}.SetWatches(c, []string{"/n"}, nil)
		for xid := range int32(3) {
			if got, want := fmt.Sprint(sentRequests(t, server, 1)), fmt.Sprintf("[%d:34]", xid+1); got != want {
				t.Errorf("%s, not %s", got, want)
			}
			code := int32(codeThrottled)
			if xid == 2 {
				code = 0
			}
			c.deliver(t, server, 100, frame(16, xid+1, 0, 0, code))
		}
		if n := c.rewatching.Load(); n != 0 {
			t.Errorf("%d messages are not answered", n)
		}
	})
}

// The error of one of the messages that set watches is the error of all.
func TestWatchSinceFails(t *testing.T) {
	c, server := openedPipe(t, &Settings{})
	c.session.Use(c)
	failed := make(chan error, 2)
	zkClient{session: c.session}.WatchSince([]string{"/" + strings.Repeat("x", maxWatches), "/n"}, 1, func(err error) { failed <- err })
	if got := len(sentRequests(t, server, 2)); got != 2 {
		t.Error(got)
	}
	go c.serve()
	server.Write(frame(16, firstXid, 0, 0, CodeUnimplemented))
	server.Write(frame(16, firstXid+1, 0, 0, 0))
	if err := <-failed; err != ServerError(CodeUnimplemented) || len(failed) > 0 {
		t.Error(err)
	}
}

// Callbacks run one after the other, also if an answer arrives while the connection is lost, and that
// of a request that comes then.
func TestOneCallbackAtATime(t *testing.T) {
	c, server := openedPipe(t, &Settings{})
	go io.Copy(io.Discard, server)
	unlocked := make(chan bool, 3) // whether another callback could run
	send := func() {
		c.send(encodeDelete("/n"), func([]byte, error) {
			free := c.callbackMu.TryLock()
			if free {
				c.callbackMu.Unlock()
			}
			unlocked <- free
		})
	}
	send()
	send()
	c.deliver(t, server, 100, frame(16, firstXid))
	c.Close()
	send()
	for i := range 3 {
		if <-unlocked {
			t.Errorf("another callback could run beside number %d", i)
		}
	}
}

// A request that cannot be written fails at once, even if the other direction works.
func TestSendFails(t *testing.T) {
	c, _ := openedPipe(t, &Settings{})
	must(t, c.Conn.SetWriteDeadline(time.Now()))
	replies := make(answers, 1)
	c.send(encodeDelete("/a"), replies.of("a"))
	replies.expect(t, fmt.Sprint("a 0 ", zk.ErrConnectionClosed))
}

// A request does not overtake one that is still to be written, though the buffer may have room
// again.
func TestSendBehindOthers(t *testing.T) {
	c, server := openedPipe(t, &Settings{})
	c.hasSendBuffer, c.flushing = true, true
	c.send(encodeDelete("/a"), ignore)
	go c.flushLoop()
	if got := fmt.Sprint(sentRequests(t, server, 1)); got != "[1:18]" {
		t.Error(got)
	}
}

// encodeSetWatches has each path once, in as many messages as are needed.
func TestWatchRequests(t *testing.T) {
	paths := func(kind string, n int) (list []string) {
		for i := range n {
			list = append(list, fmt.Sprintf("/%s%0*d", kind, 1000, i))
		}
		return list
	}
	for _, c := range []struct{ nodes, directories, messages int }{{0, 0, 0}, {1, 0, 1}, {0, 1, 1}, {100, 100, 2}, {300, 200, 4}} {
		nodes, directories := paths("node", c.nodes), paths("directory", c.directories)
		requests := encodeSetWatches(77, "", nodes, directories)
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
