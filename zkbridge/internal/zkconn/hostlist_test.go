package zkconn

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// The time limit of an attempt is a second, and doubles after each attempt without an answer up to
// the configured limit. A refused attempt does not change it, and an answer resets it.
func TestAttemptTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestHostList(t, 20*time.Second, "a")
		attempt := func(wait bool, want time.Duration) {
			t.Helper()
			h.next()
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
			h.onConnected()
		}
		if left := time.Until(h.beginAttempt(time.Millisecond)); left != time.Millisecond {
			t.Errorf("%v", left)
		}
	})
}

func TestHostList(t *testing.T) {
	h := newTestHostList(t, 20*time.Second, "a", "b")
	expect := func(server string, pause bool) {
		t.Helper()
		s := h.next()
		if p := h.pause(); s != server || (p > 0) != pause || p > maxPause {
			t.Errorf("%s, %v; want %s, %v", s, p, server, pause)
		}
	}
	expect("a", false)
	expect("b", false)
	expect("a", true) // all were tried
	expect("b", false)
	h.connected = time.Now().Add(-time.Minute)
	h.tries = 0
	expect("a", false) // at once after a connection is lost
	h.onConnected()
	expect("b", true) // but not if it was a short one
}

// A program may set the same servers again and again: the pauses grow all the same.
func TestServersReplacedByThemselves(t *testing.T) {
	h := newTestHostList(t, time.Minute, "a", "b")
	for i := range 20 {
		h.list.Replace([]string{"a", "b"})
		server := h.next()
		p := h.pause()
		if want := []string{"a", "b"}[i%2]; server != want || (p > 0) != (i > 1 && i%2 == 0) || i == 18 && p < time.Second {
			t.Errorf("try %d: %s, not %s, after %v", i, server, want, p)
		}
	}
}

// New servers are tried at once, and no former one any more.
func TestReplacedServers(t *testing.T) {
	h := newTestHostList(t, 20*time.Second, "a", "b")
	h.next()
	h.next()
	h.list.Replace([]string{"c", "d"})
	var tried []string
	for range 4 {
		server := h.next()
		if paused := h.pause() > 0; paused != (len(tried) == 2) {
			t.Errorf("paused before try %d: %v", len(tried), paused)
		}
		tried = append(tried, server)
	}
	if slices.Sort(tried); !slices.Equal(tried, []string{"c", "c", "d", "d"}) {
		t.Errorf("tried %q", tried)
	}
}

// Clients that lose a server at the same time pause for different times.
func TestPauseIsSpread(t *testing.T) {
	for _, c := range []struct{ session, longest time.Duration }{
		{time.Minute, time.Second}, {4 * time.Second, 200 * time.Millisecond}, {100 * time.Millisecond, 5 * time.Millisecond},
	} {
		tenths := map[time.Duration]bool{}
		for range 1000 {
			h := newTestHostList(t, c.session, "a")
			h.onConnected() // and lost it at once
			h.next()
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

// The pauses grow while no server answers, and are short again after a connection.
func TestPausesGrow(t *testing.T) {
	for session, longest := range map[time.Duration]time.Duration{
		time.Minute: 4 * time.Second, 20 * time.Second: 4 * time.Second, 4 * time.Second: 800 * time.Millisecond,
	} {
		h := newTestHostList(t, session, "a", "b", "c")
		for range 2 {
			for round := range 8 {
				most := longest >> max(0, 3-round)
				for i := range 3 {
					h.next()
					switch p := h.pause(); {
					case round == 0 || i > 0:
						if p > 0 {
							t.Errorf("%v: a pause of %v before a server that was not tried in round %d", session, p, round)
						}
					case p < most/4 || p > most:
						t.Errorf("%v: a pause of %v before round %d, not of %v at most", session, p, round, most)
					}
				}
			}
			h.onConnected()
			h.connected = time.Now().Add(-time.Minute)
		}
	}
}

// A session is not lost by a pause: after the pauses at least three quarters of the time are left
// that were left before, until so little is left that a first pause is a quarter of it.
func TestPausesLeaveTimeToTheSession(t *testing.T) {
	for _, session := range []time.Duration{time.Second, 4 * time.Second, 20 * time.Second, time.Minute} {
		h := newTestHostList(t, session, "a")
		for range 100 {
			left := session * 2 / 3
			h.left = func() time.Duration { return left }
			h.onConnected()
			h.connected = time.Now().Add(-time.Minute)
			attempts := 0
			for left > 0 {
				h.next()
				p := h.pause()
				if p > max(left/4, h.maxPause/4) {
					t.Errorf("%v: a pause of %v while %v are left", session, p, left)
				}
				left -= p
				attempts++
			}
			if attempts < 6 || attempts > 40 {
				t.Errorf("%v: %d attempts until the session is lost", session, attempts)
			}
		}
	}
}

// newTestHostList returns a list of servers without a session.
func newTestHostList(t *testing.T, session time.Duration, servers ...string) *hostList {
	h := newHostList(NewServerList(servers), func() time.Duration { return -1 }, session)
	h.servers, h.of = servers, servers // not shuffled
	return h
}
