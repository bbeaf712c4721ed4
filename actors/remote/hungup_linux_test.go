package remote

import (
	"net"
	"testing"
)

// A connection that its peer has closed while it waited costs no handshake, whatever it has sent, and one
// that has said nothing yet is handed over.
func TestListenerDropsWhatHasHungUp(t *testing.T) {
	system, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := newListener(system, 10, 10, func(string, bool) { t.Error("a connection is refused") })
	defer l.Close()
	dial := func() net.Conn {
		c, err := net.Dial("tcp", system.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for _, sends := range []string{"", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"} {
		gone := dial()
		gone.Write([]byte(sends))
		gone.Close()
	}
	reset := dial()
	reset.(*net.TCPConn).SetLinger(0)
	reset.Close()
	for range 2 {
		silent := dial()
		defer silent.Close()
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if got, want := c.RemoteAddr().String(), silent.LocalAddr().String(); got != want {
			t.Errorf("%s is handed over, not %s", got, want)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open != 2 {
		t.Errorf("%d connections are open", l.open)
	}
}
