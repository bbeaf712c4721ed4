package zkbridge

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"

	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// After the loss of the connection, two thirds of the timeout, less the margin, are left to reconnect. The next connection sets a
// new deadline.
func TestDeadlineAfterDisconnect(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		const timeout, margin = 3 * time.Second, 500 * time.Millisecond
		s := embedded.Run(t, embedded.ServerConfig{MemoryOnly: true, TickTime: 100 * time.Millisecond, MaxSessionTimeout: timeout})
		b := connected(t, Config{Servers: "embedded:1", SessionTimeout: timeout, Margin: margin, Dial: s.Dial})
		u := newUser(t, b)
		u.subscribe()
		deadline := func(want time.Duration) {
			t.Helper()
			if left := time.Until(b.Session().Deadline); left != want {
				t.Errorf("%v left, not %v", left, want)
			}
		}
		u.waitState(messages.SessionState_CONNECTED)
		for range 2 {
			time.Sleep(1200 * time.Millisecond) // virtual
			u.list("/")
			deadline(timeout - margin)
			away := s.Inject(embedded.Fault{Op: embedded.OpDial, Action: embedded.CutBefore, Times: -1})
			s.DropConnections()
			u.waitState(messages.SessionState_SUSPENDED)
			deadline(timeout*2/3 - margin)
			time.Sleep(time.Second)
			deadline(timeout*2/3 - margin - time.Second)
			away.Remove()
			u.waitState(messages.SessionState_CONNECTED)
			deadline(timeout - margin)
		}
		time.Sleep(100 * time.Millisecond)
		u.list("/")
		s.DropConnections()
		u.waitState(messages.SessionState_SUSPENDED)
		deadline(timeout - margin - 100*time.Millisecond) // from the handshake
		u.waitState(messages.SessionState_CONNECTED)
		time.Sleep(time.Second)
		s.Inject(embedded.Fault{Op: embedded.OpDial, Action: embedded.CutBefore, Times: -1})
		s.DropConnections()
		begun := time.Now()
		u.waitState(messages.SessionState_SUSPENDED)
		u.waitState(messages.SessionState_LOST)
		if after := time.Since(begun); after != timeout*2/3-margin {
			t.Errorf("lost %v after the connection", after)
		}
		if len(s.Sessions()) != 1 {
			t.Error("the server has expired the session before")
		}
		b.Close()
		<-b.ended
	})
}

// The deadline counts from the instant at which the answered message was sent, and not from the answer: of a request, a ping and a
// handshake.
func TestDeadlineCountsFromSending(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		const timeout, margin, delay = 6 * time.Second, time.Second, 900 * time.Millisecond
		s := embedded.Run(t, embedded.ServerConfig{MemoryOnly: true, TickTime: 100 * time.Millisecond, MaxSessionTimeout: timeout})
		u := newUser(t, connected(t, Config{Servers: "embedded:1", SessionTimeout: timeout, Margin: margin, Dial: s.Dial}))
		u.subscribe()
		u.waitState(messages.SessionState_CONNECTED)
		slow := func(op embedded.Op) *embedded.Injected {
			return s.Inject(embedded.Fault{Op: op, Action: embedded.DelayReply, Delay: delay})
		}
		answered := func(what string, sent time.Time) {
			t.Helper()
			if d := u.bridge.Session().Deadline.Sub(sent); d != timeout-margin {
				t.Errorf("%s: the deadline is %v after it was sent, not %v", what, d, timeout-margin)
			}
		}
		slow(embedded.OpGetChildren2)
		sent := time.Now()
		u.list("/")
		answered("request", sent)
		ping := slow(embedded.OpPing)
		waitFired(t, ping)
		time.Sleep(delay)
		synctest.Wait()
		answered("ping", ping.Firings()[0].Time)
		slow(embedded.OpConnect)
		slow(embedded.OpGetData) // the bridge reads the generation once it is connected: that answer must not set the deadline
		s.DropConnections()
		u.waitState(messages.SessionState_SUSPENDED)
		sent = time.Now() // the bridge reconnects at once
		u.waitState(messages.SessionState_CONNECTED)
		if time.Since(sent) < delay {
			t.Errorf("connected after %v", time.Since(sent))
		}
		answered("handshake", sent)
	})
}
