package zkconn

import (
	"testing"
	"testing/synctest"
	"time"
)

// The time limit of an attempt is a second, and doubles after each attempt without an answer up to the configured limit. A refused
// attempt does not change it, and an answer resets it.
func TestAttemptTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHostList(func() bool { return false }, 20*time.Second)
		must(t, h.Init([]string{"a"}))
		attempt := func(wait bool, want time.Duration) {
			t.Helper()
			h.Next()
			time.Sleep(h.pause())
			deadline := h.beginAttempt(7 * time.Second)
			if got := time.Until(deadline); got != want {
				t.Errorf("%v, not %v", got, want)
			}
			if wait {
				time.Sleep(time.Until(deadline))
			}
		}
		for range 2 {
			attempt(false, time.Second)
			attempt(false, time.Second)
			for _, want := range []time.Duration{1, 2, 4, 7, 7} {
				attempt(true, want*time.Second)
			}
			attempt(false, 7*time.Second)
			h.Connected()
		}
		if left := time.Until(h.beginAttempt(time.Millisecond)); left != time.Millisecond {
			t.Errorf("%v", left)
		}
	})
}

func TestHostList(t *testing.T) {
	over := false
	h := newHostList(func() bool { return over }, 20*time.Second)
	h.Init([]string{"a", "b"})
	expect := func(server string, pause bool) {
		t.Helper()
		s, retryStart := h.Next()
		if p := h.pause(); s != server || retryStart != over || (p > 0) != pause || p > maxPause {
			t.Errorf("%s, %v, %v; want %s, %v, %v", s, retryStart, p, server, over, pause)
		}
	}
	expect("a", false)
	expect("b", false)
	expect("a", true) // all were tried
	expect("b", false)
	h.connected = time.Now().Add(-time.Minute)
	h.tries = 0
	expect("a", false) // at once after a connection is lost
	h.Connected()
	expect("b", true) // but not if it was a short one
	over = true
	expect("a", false)
	expect("b", true)
}

// Clients that lose a server at the same time pause for different times.
func TestPauseIsSpread(t *testing.T) {
	for _, c := range []struct{ session, longest time.Duration }{
		{time.Minute, time.Second}, {4 * time.Second, 500 * time.Millisecond}, {100 * time.Millisecond, 12500 * time.Microsecond},
	} {
		tenths := map[time.Duration]bool{}
		for range 1000 {
			h := newHostList(func() bool { return false }, c.session)
			h.pauseDue = true
			p := h.pause()
			if p < c.longest/4 || p > c.longest {
				t.Fatalf("%v: pause of %v", c.session, p)
			}
			tenths[p*10/c.longest] = true
		}
		if len(tenths) < 7 {
			t.Errorf("%v: pauses fall into %v", c.session, tenths)
		}
	}
}
