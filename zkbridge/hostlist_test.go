package zkbridge

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// A server that answers nothing is given a second, and twice as long each time, up to the
// limit. One that refuses takes no time, and an answer begins it anew.
func TestPatience(t *testing.T) {
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

// A handshake that is not answered costs a second, whatever the ConnectTimeout.
func TestUnansweredHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := embedded.Run(t, embedded.Config{MemoryOnly: true, TickTime: time.Second})
		u := newUser(t, connected(t, Config{Servers: "embedded:1", SessionTimeout: 20 * time.Second, ConnectTimeout: 10 * time.Second, Dial: s.Dial}))
		u.subscribe()
		state(t, u.peer, messages.SessionState_CONNECTED)
		time.Sleep(time.Minute)
		s.Inject(embedded.Fault{Op: embedded.OpConnect, Action: embedded.BlackHole})
		s.DropConnections()
		begun := time.Now()
		state(t, u.peer, messages.SessionState_SUSPENDED)
		state(t, u.peer, messages.SessionState_CONNECTED)
		if took := time.Since(begun); took < firstAttemptTimeout || took > firstAttemptTimeout+maxPause {
			t.Errorf("connected again after %v", took)
		}
		u.bridge.Close()
		<-u.bridge.ended
	})
}
