package zkconn

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
)

// The requests that are written in one piece, and those that are not.

// A send beside a write of another goroutine does not block.
func TestSendBesideAnother(t *testing.T) {
	client, server := net.Pipe()
	defer server.Close()
	w := opened(client, &Settings{})
	w.hasSendBuffer = true
	w.writeMu.Lock() // go-zookeeper's ping
	w.send(encodeDelete("/a"), func([]byte, error) {})
	w.writeMu.Unlock()
	if got := fmt.Sprint(xids(t, server, 1)); got != "[1000:18]" {
		t.Error(got)
	}
}

// Requests that are sent while the connection is corked go out together, in order and in
// one piece.
func TestCorkedRequests(t *testing.T) {
	for _, hasBuffer := range []bool{true, false} {
		client, server := net.Pipe()
		defer server.Close()
		w := opened(client, &Settings{})
		w.hasSendBuffer = hasBuffer
		nobody := func([]byte, error) {}
		w.Cork()
		w.send(encodeDelete("/a"), nobody)
		w.send(encodeDelete("/bb"), nobody)
		if w.flushing || len(w.unwritten) == 0 {
			t.Error("requests are sent that are held")
		}
		go w.Uncork() // a pipe takes what is read from it
		all := make([]byte, 1<<10)
		n, err := server.Read(all)
		must(t, err)
		if want := 2*(lengthSize+18) + 1; n != want {
			t.Errorf("%d bytes in one piece, want %d", n, want)
		}
		go w.send(encodeDelete("/c"), nobody)
		if got := fmt.Sprint(xids(t, server, 1)); got != "[1002:18]" {
			t.Error(got)
		}
		w.Close()
	}
}

// A request that is sent during a write does not overwrite the written one, also behind a message for which
// no memory is kept.
func TestSentWhileWriting(t *testing.T) {
	client, server := net.Pipe()
	defer server.Close()
	w := opened(client, &Settings{})
	defer w.Close()
	send := func(path string) { w.send(encodeDelete(path), func([]byte, error) {}) }
	next := func(meanwhile string) string { // begins to read, so that it is being written
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

// Much is written in pieces, of whole requests: between them go-zookeeper's pings, which have
// a deadline, find their turn.
func TestPieces(t *testing.T) {
	client, server := net.Pipe()
	defer server.Close()
	pieces := make(pieceSizes, 10)
	w := opened(pieceConn{client, pieces}, &Settings{})
	defer w.Close()
	big := "/" + strings.Repeat("b", maxBody)
	w.Cork()
	for _, path := range []string{"/a", "/b", big, big, "/c", "/d"} {
		w.send(encodeDelete(path), func([]byte, error) {})
	}
	go w.Uncork()
	small, large := lengthSize+18, lengthSize+16+len(big)
	xids(t, server, 6)
	var got []int
	for range 4 {
		got = append(got, <-pieces)
	}
	if want := []int{2 * small, large, large, 2 * small}; !slices.Equal(got, want) {
		t.Errorf("written in pieces of %v, want %v", got, want)
	}
}

// pieceConn tells the size of each piece that is written.
type pieceConn struct {
	net.Conn
	sizes pieceSizes
}

type pieceSizes chan int

func (p pieceConn) Write(b []byte) (int, error) {
	p.sizes <- len(b)
	return p.Conn.Write(b)
}
