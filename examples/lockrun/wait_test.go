//go:build unix

package main

import (
	"testing"
	"time"

	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// With -wait lockrun ends in time, with and without ZooKeeper. The exit codes differ.
func TestWaitBoundsTheWhole(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	silent := zktest.Proxy(t, s.Addr())
	silent.BlackHole(true)
	taken := s.Path(t)
	holder(t, s, taken)
	gone := zktest.Proxy(t, s.Addr()) // the server of a waiter that loses its connection
	for _, c := range []struct {
		what, addr, wait string
		code             int
	}{
		{"closed port", "127.0.0.1:1", "300ms", exitUnavailable},
		{"closed port", "127.0.0.1:1", "0", exitUnavailable},
		{"port that accepts and never answers", silent.Addr(), "300ms", exitUnavailable},
		{"port that accepts and never answers", silent.Addr(), "0", exitUnavailable},
		{"lock that is held", s.Addr(), "3s", exitNotAcquired},
		{"server that goes away", gone.Addr(), "8s", exitNotAcquired},
	} {
		t.Run(c.what+", "+c.wait, func(t *testing.T) {
			path := taken
			if c.addr == gone.Addr() {
				zktest.OneRunIn(t, 8) // it waits for eight seconds
				path = s.Path(t)
				holder(t, s, path)
			}
			t.Parallel()
			o, err := runCommand.parse([]string{"-zk", c.addr, "-lock", path, "-wait", c.wait, "--", "true"})
			if err != nil {
				t.Fatal(err)
			}
			start, ended := time.Now(), make(chan struct{})
			go func() {
				defer close(ended)
				if code, err := run(o); code != c.code || err == nil {
					t.Errorf("code %d, want %d; %v", code, c.code, err)
				}
			}()
			if c.addr == gone.Addr() {
				zktest.Eventually(t, timeLimit, func() bool { return len(s.Nodes(t, path)) == 2 }, "it waits")
				gone.BlackHole(true)
			}
			<-ended
			took := time.Since(start)
			t.Logf("after %v", took)
			if took > connectLimit/2 {
				t.Errorf("it took %v, as if there were no -wait", took)
			}
		})
	}
}
