package zkconn

import (
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
)

// A request fails at the eighth hang-up, with pauses before, and names the setting. The end of a
// connection that is no hang-up on the request does not count.
func TestHangUps(t *testing.T) {
	var h HangUps
	pauses := []time.Duration{0, time.Second / 4, time.Second / 2, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second}
	for i, pause := range pauses {
		if err := h.Note(zk.ErrConnectionClosed); err != nil || int(h) != i {
			t.Errorf("a lost connection counts: %v, %d", err, h)
		}
		if err := h.Note(errHungUp); err != nil || h.Pause() != pause {
			t.Errorf("hang-up %d: %v, pause %v, not %v", i+1, err, h.Pause(), pause)
		}
	}
	for range 2 {
		err := h.Note(errHungUp)
		if err == nil || !strings.Contains(err.Error(), "jute.maxbuffer") {
			t.Errorf("hang-up %d: %v", h, err)
		}
	}
	if ReasonFor(h.Final()) != messages.Reason_UNAVAILABLE || IsTransient(h.Final()) {
		t.Error("the failure is not final")
	}
}

// A hang-up counts for the request that the server had to answer next, and for the largest one: where that
// was too large, the server has not answered those before it either.
func TestHangUpOnALargeRequest(t *testing.T) {
	for size, suspected := range map[int]bool{largeRequest - 1<<10: false, largeRequest + 1<<10: true} {
		client, server := net.Pipe()
		c := opened(closedForWriting{client}, &Settings{})
		replies := make(answers, 5)
		for _, request := range []struct {
			name string
			size int
		}{{"ping", 0}, {"next", 10}, {"small", 10}, {"large", size}, {"last", 10}} {
			if c.Ping(); request.size > 0 {
				c.send(encodeDelete("/"+strings.Repeat("x", request.size)), replies.of(request.name))
			}
		}
		server.Close()
		if err := c.serve(); !isHangUp(err) {
			t.Fatal(err)
		}
		large := zk.ErrConnectionClosed
		if suspected {
			large = errHungUp
		}
		replies.expect(t, fmt.Sprint("next 0 ", errHungUp), fmt.Sprint("small 0 ", zk.ErrConnectionClosed), fmt.Sprint("large 0 ", large),
			fmt.Sprint("last 0 ", zk.ErrConnectionClosed))
	}
}

// closedForWriting is a connection that the other side has closed, behind what it has sent.
type closedForWriting struct{ net.Conn }

func (closedForWriting) Write([]byte) (int, error) {
	return 0, &net.OpError{Op: "write", Err: syscall.EPIPE}
}

// A write to a server that has hung up does not hide its last answers, nor which request it had to answer next.
func TestWriteAfterHangUp(t *testing.T) {
	client, server := net.Pipe()
	c := opened(closedForWriting{client}, &Settings{})
	replies := make(answers, 2)
	for _, name := range []string{"answered", "next"} {
		c.send(encodeDelete("/"+name), replies.of(name))
	}
	go func() {
		server.Write(frame(16, 1, 0, 7))
		server.Close()
	}()
	if err := c.serve(); !isHangUp(err) {
		t.Error(err)
	}
	replies.expect(t, "answered 0 <nil>", fmt.Sprint("next 0 ", errHungUp))
}
