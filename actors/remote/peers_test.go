package remote

import (
	"testing"
	"time"
)

func TestAddressOf(t *testing.T) {
	for address, want := range map[string]string{
		"10.0.0.1:5000": "10.0.0.1", "[::ffff:10.0.0.1]:80": "10.0.0.1", "[2001:db8:1:2:3:4:5:6]:80": "2001:db8:1:2::/64", "[fe80::1%eth0]:80": "fe80::/64",
		"bufconn": "bufconn", "name:80": "name", "": "", "@": "@",
	} {
		if got := addressOf(address); got != want {
			t.Errorf("%q: %q, want %q", address, got, want)
		}
	}
}

func TestMaxConnections(t *testing.T) {
	for _, c := range []struct {
		clients, perPeer, files, all, perAddress int
	}{
		{20_000, 5_000, unlimitedFiles, 25_016, 6_266},
		{20_000, 20_000, unlimitedFiles, 25_016, 25_016},
		{20_000, 5_000, 1024, 992, 496},
		{20_000, 5_000, 64, 32, 16},
		{20_000, 20_000, 64, 32, 32},
		{20_000, 5_000, 1, 2, 1},
		{100, 100, 1 << 20, 141, 141},
	} {
		if all, perAddress := maxConnections(c.clients, c.perPeer, uint64(c.files)); all != c.all || perAddress != c.perAddress {
			t.Errorf("%+v: %d, %d", c, all, perAddress)
		}
	}
	if n := openFiles(); n < 3 {
		t.Errorf("%d open files", n)
	}
}

// Lines of one text are written once in ten seconds, and the next says how many were left out.
func TestLines(t *testing.T) {
	var l logLimit
	take := func(text string, now time.Duration, leftOut int, may bool) {
		t.Helper()
		if n, is := l.take(text, now); n != leftOut || is != may {
			t.Errorf("%s at %v: %d, %v", text, now, n, is)
		}
	}
	take("a", 0, 0, true)
	for i := range 3000 {
		take("a", time.Duration(i)*time.Millisecond, 0, false)
	}
	take("b", 5*time.Second, 0, true)
	take("a", linePause, 3000, true)
	take("a", 2*linePause, 0, true)
}
