package zkconn

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
)

// send does not block while another goroutine writes.
func TestSendBesideAnother(t *testing.T) {
	c, server := openedPipe(t, &Settings{})
	c.hasSendBuffer = true
	c.writeMu.Lock()
	c.send(encodeDelete("/a"), ignore)
	c.writeMu.Unlock()
	if got := fmt.Sprint(sentRequests(t, server, 1)); got != "[1:18]" {
		t.Error(got)
	}
}

// Requests that are sent while the connection is corked are written together, in order and in one
// chunk.
func TestCorkedRequests(t *testing.T) {
	for _, hasBuffer := range []bool{true, false} {
		c, server := openedPipe(t, &Settings{})
		c.hasSendBuffer = hasBuffer
		c.Cork()
		c.send(encodeDelete("/a"), ignore)
		c.send(encodeDelete("/bb"), ignore)
		if c.flushing || len(c.unwritten) == 0 {
			t.Error("requests are written before Uncork")
		}
		go c.Uncork() // blocks until the server reads
		all := make([]byte, 1<<10)
		n, err := server.Read(all)
		must(t, err)
		if want := 2*(lengthSize+18) + 1; n != want {
			t.Errorf("%d bytes in one chunk, want %d", n, want)
		}
		go c.send(encodeDelete("/c"), ignore)
		if got := fmt.Sprint(sentRequests(t, server, 1)); got != "[3:18]" {
			t.Error(got)
		}
		c.Close()
	}
}

// Nothing follows the message that closes the session: the server would have hung up, and the
// connection would end before its answer is read.
func TestNothingFollowsTheClose(t *testing.T) {
	for _, writes := range []string{"at once", "on a goroutine"} {
		c, server := openedPipe(t, &Settings{})
		c.hasSendBuffer = writes == "at once"
		replies := make(answers, 2)
		c.Cork()
		c.send(encodeDelete("/a"), replies.of("/a"))
		c.endSession()
		c.endSession()
		c.Ping()
		c.send(encodeDelete("/b"), replies.of("/b"))
		go c.Uncork()
		if got := fmt.Sprint(sentRequests(t, server, 2)); got != "[1:18 2:8]" {
			t.Error(got)
		}
		more := make(chan int)
		go func() {
			n, _ := server.Read(make([]byte, 100))
			more <- n
		}()
		c.deliver(t, server, 100, frame(16, 1), frame(16, 2))
		c.Close()
		if n := <-more; n > 0 || !c.session.HasEnded() {
			t.Errorf("%s: %d bytes follow the close, whose answer has come: %v", writes, n, c.session.HasEnded())
		}
		replies.expect(t, "/a 0 <nil>", fmt.Sprint("/b 0 ", zk.ErrConnectionClosed))
	}
}

// A request that is sent during a write does not overwrite the written one, also after a message
// whose memory is not kept.
func TestSentWhileWriting(t *testing.T) {
	c, server := openedPipe(t, &Settings{})
	defer c.Close()
	send := func(path string) { c.send(encodeDelete(path), ignore) }
	next := func(meanwhile string) string { // it reads the beginning of the request, so that the rest is being written
		t.Helper()
		head := make([]byte, headerSize)
		_, err := io.ReadFull(server, head)
		must(t, err)
		if meanwhile != "" {
			send(meanwhile)
		}
		body := make([]byte, int(binary.BigEndian.Uint32(head))-headerSize+lengthSize)
		_, err = io.ReadFull(server, body)
		must(t, err)
		r := reader{rest: body}
		return r.text()
	}
	big := "/" + strings.Repeat("b", 2*maxBody)
	send("/a")
	next("")
	send(big)
	next("/c")
	got := []string{next("/d"), next("/e"), next("")}
	if want := "[/c /d /e]"; fmt.Sprint(got) != want {
		t.Errorf("the server got %q, want %s", got, want)
	}
}

// Many requests are written in chunks of whole requests, so that none needs a buffer of its own.
func TestChunks(t *testing.T) {
	client, server := net.Pipe()
	defer server.Close()
	sizes := make(chan int, 10)
	c := opened(writeSizes{client, sizes}, &Settings{})
	defer c.Close()
	big := "/" + strings.Repeat("b", maxBody)
	c.Cork()
	for _, path := range []string{"/a", "/b", big, big, "/c", "/d"} {
		c.send(encodeDelete(path), ignore)
	}
	go c.Uncork()
	small, large := lengthSize+18, lengthSize+16+len(big)
	sentRequests(t, server, 6)
	var got []int
	for range 4 {
		got = append(got, <-sizes)
	}
	if want := []int{2 * small, large, large, 2 * small}; !slices.Equal(got, want) {
		t.Errorf("written in chunks of %v, want %v", got, want)
	}
}

// writeSizes is a connection that reports the size of each write.
type writeSizes struct {
	net.Conn
	sizes chan int
}

func (w writeSizes) Write(b []byte) (int, error) {
	w.sizes <- len(b)
	return w.Conn.Write(b)
}
