package zktest

import (
	"net"
	"runtime"
	"testing"
)

// A reserved port serves one server after the other. Between them no other process chooses it, and no client connects to it.
func TestReservePort(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux keeps a port that has no listener")
	}
	p := reservePort()
	for range 2 {
		if release, ok := reserve(p.number); ok {
			release()
			t.Fatalf("port %d is reserved twice", p.number)
		}
		if c, err := net.Dial("tcp", p.addr()); err == nil {
			c.Close()
			t.Fatalf("a client connects to port %d without a server", p.number)
		}
		l, err := net.Listen("tcp", p.addr())
		if err != nil {
			t.Fatalf("a server on its reserved port: %v", err)
		}
		c, err := net.Dial("tcp", p.addr())
		if err != nil {
			t.Fatalf("a client of the server: %v", err)
		}
		c.Close()
		l.Close()
	}
	p.release()
	release, ok := reserve(p.number)
	if !ok {
		t.Fatalf("port %d stays reserved after its release", p.number)
	}
	release()
}
