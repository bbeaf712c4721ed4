package zkconn

import (
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestConnClock(t *testing.T) {
	for _, piece := range []int{1, 3, 4, 1000} {
		synctest.Test(t, func(t *testing.T) { testConnClock(t, piece) })
	}
}

func testConnClock(t *testing.T, piece int) {
	client, server := net.Pipe()
	defer client.Close()
	defer server.Close()
	go io.Copy(io.Discard, server)
	c := handshaking(client, &Settings{Margin: time.Second})
	session := c.session
	newest := func(want time.Duration) {
		t.Helper()
		if got := session.hearing.newest; got != want {
			t.Errorf("in pieces of %d: newest answered message is from %v, not %v", piece, got, want)
		}
	}
	time.Sleep(time.Second) // virtual time
	go func() {
		time.Sleep(time.Second)
		for piece := range slices.Chunk(frame(37, 0, 9000, 0, 77, 16), piece) { // granted 9 s, session 77
			server.Write(piece)
		}
	}()
	must(t, c.handshake()) // sent at 1 s
	newest(1 * time.Second)
	if session.ID() != 77 || session.deadlineOffset() != 9*time.Second || !session.IsOnline() {
		t.Errorf("session %d, deadline after %v", session.ID(), session.deadlineOffset())
	}
	c.send(encodeDelete("/n"), ignore) // at 2 s
	time.Sleep(time.Second)
	c.send(encodeDelete("/n"), ignore) // 3 s
	time.Sleep(time.Second)
	c.Ping() // 4 s
	time.Sleep(time.Second)
	c.send(encodeDelete("/n"), ignore) // 5 s
	c.deliver(t, server, piece, frame(40, xidEvent), frame(16, 1), frame(300, 2))
	newest(3 * time.Second)
	c.deliver(t, server, piece, frame(16, xidPing))
	newest(4 * time.Second)
	c.deliver(t, server, piece, frame(16, 3))
	newest(5 * time.Second)
	c.endSession()
	c.deliver(t, server, piece, frame(16, 4))
	if !session.HasEnded() || len(c.sent) != 0 {
		t.Errorf("end of the session not seen, or %v left", c.sent)
	}
}

func TestConnRefusesGarbage(t *testing.T) {
	for _, garbage := range []string{"HTTP/1.1 400 Bad Request", "\x00\x00\x00\x00", "\xff\xff\xff\xff", "\x00\x00\x00\x0f"} {
		client, server := net.Pipe()
		c := handshaking(client, &Settings{})
		go answerConnect(server, []byte(garbage))
		if err := c.handshake(); err == nil {
			t.Errorf("%q is accepted", garbage)
		}
		client.Close()
		server.Close()
	}
	// After the handshake, too.
	for _, garbage := range []string{"HTTP/1.1 400 Bad Request", "\xff\xff\xff\xff", "\x00\x00\x00\x0f"} {
		client, server := net.Pipe()
		c := opened(client, &Settings{})
		go server.Write([]byte(garbage + strings.Repeat("\x00", minFrame)))
		if err := c.serve(); err == nil {
			t.Errorf("%q is accepted after the handshake", garbage)
		}
		client.Close()
		server.Close()
	}
}

// A connect response counts only if its parts fill it.
func TestGarbledConnectReply(t *testing.T) {
	for name, test := range map[string]struct {
		reply []byte
		ok    bool
	}{
		"complete":             {frame(37, 0, 9000, 0, 77, 16), true},
		"of an old server":     {frame(36, 0, 9000, 0, 77, 16), true},
		"of an ended session":  {frame(37, 0, 0, 0, 0, 16), false},
		"without a password":   {frame(16, 0, 9000, 0, 77), false},
		"in its length":        {frame(19, 0, 9000, 0, 77), false},
		"password of 2 GB":     {frame(37, 0, 9000, 0, 77, 1<<31-1), false},
		"password of -1":       {frame(37, 0, 9000, 0, 77, -1), false},
		"password too long":    {frame(37, 0, 9000, 0, 77, 18), false},
		"password too short":   {frame(37, 0, 9000, 0, 77, 15), false},
		"cannot be sent again": {frame(21+maxPassword+1, 0, 9000, 0, 77, maxPassword+1), false},
		"no session timeout":   {frame(37, 0, 0, 0, 77, 16), false},
		"less than no timeout": {frame(37, 0, -5, 0, 77, 16), false},
	} {
		client, server := net.Pipe()
		c := handshaking(client, &Settings{})
		go answerConnect(server, test.reply)
		if err := c.handshake(); (err == nil) != test.ok || errors.Is(err, errOver) != (name == "of an ended session") {
			t.Errorf("%s: %v", name, err)
		}
		if !test.ok && c.session.ID() != 0 {
			t.Errorf("%s: the connection has a session", name)
		}
		client.Close()
		server.Close()
	}
}

// answerConnect reads a connect request and answers it.
func answerConnect(server net.Conn, answer []byte) {
	server.Read(make([]byte, 100))
	server.Write(answer)
}
