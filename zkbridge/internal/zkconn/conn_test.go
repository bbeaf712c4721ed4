package zkconn

import (
	"encoding/binary"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// frame is a message as the server sends it: length, and the fields.
func frame(size int, fields ...int32) []byte {
	b := make([]byte, 4+size)
	binary.BigEndian.PutUint32(b, uint32(size))
	for i, f := range fields {
		binary.BigEndian.PutUint32(b[4+4*i:], uint32(f))
	}
	return b
}

func request4(xid, op int32) []byte { return frame(8, xid, op) }

// pieces sends b to the connection, and reads it there in pieces of n bytes. The connection keeps
// the bytes before.
func (c *Conn) pieces(t *testing.T, server net.Conn, b []byte, n int, before ...byte) {
	t.Helper()
	go server.Write(append(before, b...))
	for got := 0; got < len(b); {
		k, err := c.Read(make([]byte, min(n, len(b)-got)))
		if err != nil {
			t.Fatal(err)
		}
		got += k
	}
}

func TestConnClock(t *testing.T) {
	for _, piece := range []int{1, 3, 4, 1000} {
		synctest.Test(t, func(t *testing.T) { testConnClock(t, piece) })
	}
}

func testConnClock(t *testing.T, piece int) {
	client, server := net.Pipe()
	defer client.Close()
	defer server.Close()
	go func() { // a server that takes everything
		for b := make([]byte, 4096); ; {
			if _, err := server.Read(b); err != nil {
				return
			}
		}
	}()
	l := &SessionConn{cfg: &Settings{Margin: time.Second}, openedAt: time.Now(), noteError: func(error) {}, post: func(any) {}}
	w := newConn(client, client, l, time.Now().Add(time.Hour))
	second := func(b []byte) { time.Sleep(time.Second); w.Write(b) } // virtual time
	newest := func(want time.Duration) {
		t.Helper()
		if got := time.Duration(l.lastAnswered.Load()); got != want {
			t.Errorf("in pieces of %d: newest answered message is from %v, not %v", piece, got, want)
		}
	}
	second(frame(40))                                         // connect request at 1 s
	w.pieces(t, server, frame(37, 0, 9000, 0, 77, 16), piece) // granted 9 s, session 77
	newest(1 * time.Second)
	if l.sessionID.Load() != 77 || l.Deadline() != l.openedAt.Add(9*time.Second) {
		t.Errorf("session %d, deadline after %v", l.sessionID.Load(), l.Deadline().Sub(l.openedAt))
	}
	second(request4(1, 14))       // 2 s
	second(request4(2, 4))        // 3 s
	second(request4(xidPing, 11)) // 4 s
	second(request4(3, 4))        // 5 s
	w.pieces(t, server, append(frame(16, 1), frame(300, 2)...), piece, frame(40, xidEvent)...)
	newest(3 * time.Second)
	w.pieces(t, server, frame(16, xidPing), piece)
	newest(4 * time.Second)
	w.pieces(t, server, frame(16, 3), piece)
	newest(5 * time.Second)
	time.Sleep(time.Second)
	w.send(encodeDelete("/n"), func([]byte, error) {}) // 6 s
	w.pieces(t, server, frame(16, xidPing), piece, frame(16, firstXid)...)
	newest(6 * time.Second)
	second(request4(4, opClose))
	w.pieces(t, server, frame(16, 4), piece)
	if !l.sessionEnded.Load() || len(w.sent) != 0 {
		t.Errorf("end of the session not seen, or %v left", w.sent)
	}
}

func TestConnRefusesGarbage(t *testing.T) {
	for _, garbage := range []string{"HTTP/1.1 400 Bad Request", "\x00\x00\x00\x00", "\xff\xff\xff\xff", "\x00\x00\x00\x0f"} {
		client, server := net.Pipe()
		l := &SessionConn{cfg: &Settings{}, noteError: func(error) {}, post: func(any) {}}
		w := newConn(client, client, l, time.Now().Add(time.Hour))
		go server.Write([]byte(garbage))
		if _, err := w.Read(make([]byte, 4)); err == nil {
			t.Errorf("%q is accepted", garbage)
		}
		client.Close()
		server.Close()
	}
	// After the handshake, too.
	for _, garbage := range []string{"HTTP/1.1 400 Bad Request", "\xff\xff\xff\xff", "\x00\x00\x00\x0f"} {
		client, server := net.Pipe()
		l := &SessionConn{cfg: &Settings{}, noteError: func(error) {}, post: func(any) {}}
		w := newConn(client, client, l, time.Now().Add(time.Hour))
		w.handshakeDone.Store(true)
		go server.Write([]byte(garbage + strings.Repeat("\x00", minFrame)))
		if _, err := w.Read(make([]byte, 4)); err == nil {
			t.Errorf("%q is accepted after the handshake", garbage)
		}
		client.Close()
		server.Close()
	}
}

// A connect response is not passed on unless its parts fill it: go-zookeeper would
// make as much room for the password as its length says.
func TestGarbledConnectResponse(t *testing.T) {
	for name, c := range map[string]struct {
		hello []byte
		ok    bool
	}{
		"as it should be":      {frame(37, 0, 9000, 0, 77, 16), true},
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
	} {
		client, server := net.Pipe()
		l := &SessionConn{cfg: &Settings{}, noteError: func(error) {}, post: func(any) {}}
		w := newConn(client, client, l, time.Now().Add(time.Hour))
		go server.Write(c.hello)
		if _, err := w.Read(make([]byte, 4)); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
		if !c.ok && l.sessionID.Load() != 0 {
			t.Errorf("%s: the session is taken for opened", name)
		}
		client.Close()
		server.Close()
	}
}
