package zktest

import (
	"net"
	"testing"
)

// A reserved port serves one server after the other. Between them no other process chooses it, and
// no client connects to it.
func TestReservePort(t *testing.T) {
	p := reservePort()
	for range 2 {
		wantReserved(t, p, true)
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
	wantReserved(t, p, false)
}

// The members of an ensemble keep all their ports from the choice to the end, also while they are
// stopped. (No server runs here: connections that it had would keep its port for a minute by
// themselves.)
func TestPortsOfAnEnsemble(t *testing.T) {
	s, err := prepare(install{}, t.TempDir(), 3, collect(nil))
	if err != nil {
		t.Fatal(err)
	}
	want := func(reserved bool) {
		for _, n := range s.nodes {
			for _, p := range []reservedPort{n.port, n.quorum, n.election} {
				wantReserved(t, p, reserved)
			}
		}
	}
	want(true)
	s.Stop(t)
	want(true)
	s.close()
	want(false)
}

func wantReserved(t *testing.T, p reservedPort, want bool) {
	t.Helper()
	free, ok := reserve(p.number)
	if ok {
		free()
	}
	if ok == want {
		t.Errorf("port %d is reserved: %v, want %v", p.number, !ok, want)
	}
}
