package zkconn

import (
	"io"
	"net"
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
	afterSecond := func(b []byte) { time.Sleep(time.Second); c.Write(b) } // virtual time
	newest := func(want time.Duration) {
		t.Helper()
		if got := session.hearing.newest; got != want {
			t.Errorf("in pieces of %d: newest answered message is from %v, not %v", piece, got, want)
		}
	}
	afterSecond(frame(40))                                     // connect request at 1 s
	c.deliver(t, server, frame(37, 0, 9000, 0, 77, 16), piece) // granted 9 s, session 77
	newest(1 * time.Second)
	if session.sessionID.Load() != 77 || session.deadlineOffset() != 9*time.Second {
		t.Errorf("session %d, deadline after %v", session.sessionID.Load(), session.deadlineOffset())
	}
	afterSecond(frame(8, 1, 14)) // 2 s
	afterSecond(frame(8, 2, 4))  // 3 s
	time.Sleep(time.Second)
	c.Ping()                           // 4 s
	c.Write(frame(8, xidPing, opPing)) // go-zookeeper's, which is not sent
	afterSecond(frame(8, 3, 4))        // 5 s
	c.deliver(t, server, append(frame(16, 1), frame(300, 2)...), piece, frame(40, xidEvent)...)
	newest(3 * time.Second)
	c.deliver(t, server, frame(16, xidPing), piece)
	newest(4 * time.Second)
	c.deliver(t, server, frame(16, 3), piece)
	newest(5 * time.Second)
	time.Sleep(time.Second)
	c.send(encodeDelete("/n"), ignore) // 6 s
	c.deliver(t, server, frame(16, xidPing), piece, frame(16, firstXid)...)
	newest(6 * time.Second)
	afterSecond(frame(8, 4, opClose))
	c.deliver(t, server, frame(16, 4), piece)
	if !session.sessionEnded.Load() || len(c.sent) != 0 {
		t.Errorf("end of the session not seen, or %v left", c.sent)
	}
}

func TestConnRefusesGarbage(t *testing.T) {
	for _, garbage := range []string{"HTTP/1.1 400 Bad Request", "\x00\x00\x00\x00", "\xff\xff\xff\xff", "\x00\x00\x00\x0f"} {
		client, server := net.Pipe()
		c := handshaking(client, &Settings{})
		go server.Write([]byte(garbage))
		if _, err := c.Read(make([]byte, 4)); err == nil {
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
		if _, err := c.Read(make([]byte, 4)); err == nil {
			t.Errorf("%q is accepted after the handshake", garbage)
		}
		client.Close()
		server.Close()
	}
}

// The connection passes on a connect reply only if its parts fill it: go-zookeeper would
// allocate memory for any length of the password.
func TestGarbledConnectReply(t *testing.T) {
	for name, test := range map[string]struct {
		reply []byte
		ok    bool
	}{
		"complete":             {frame(37, 0, 9000, 0, 77, 16), true},
		"of an old server":     {frame(36, 0, 9000, 0, 77, 16), true},
		"of an ended session":  {frame(37, 0, 0, 0, 0, 16), true},
		"without a password":   {frame(16, 0, 9000, 0, 77), false},
		"in its length":        {frame(19, 0, 9000, 0, 77), false},
		"password of 2 GB":     {frame(37, 0, 9000, 0, 77, 1<<31-1), false},
		"password of -1":       {frame(37, 0, 9000, 0, 77, -1), false},
		"password too long":    {frame(37, 0, 9000, 0, 77, 18), false},
		"password too short":   {frame(37, 0, 9000, 0, 77, 15), false},
		"cannot be sent again": {frame(21+maxPassword+1, 0, 9000, 0, 77, maxPassword+1), false},
		"no session timeout":   {frame(37, 0, 0, 0, 77, 16), false},
		"less than no timeout": {frame(37, 0, -5, 0, 77, 16), false}, // go-zookeeper's timers would panic
	} {
		client, server := net.Pipe()
		c := handshaking(client, &Settings{})
		go server.Write(test.reply)
		if _, err := c.Read(make([]byte, 4)); (err == nil) != test.ok {
			t.Errorf("%s: %v", name, err)
		}
		if !test.ok && c.session.sessionID.Load() != 0 {
			t.Errorf("%s: the connection has a session", name)
		}
		client.Close()
		server.Close()
	}
}
