package zkbridge

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"

	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Once the connection is gone the deadline no longer counts on the last answer: two
// thirds of the timeout, less the margin, are left to reconnect, and a connection in
// between begins it anew.
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
		state(t, u.peer, messages.SessionState_CONNECTED)
		for range 2 {
			time.Sleep(1200 * time.Millisecond) // virtual
			u.list("/")
			deadline(timeout - margin)
			away := s.Inject(embedded.Fault{Op: embedded.OpDial, Action: embedded.CutBefore, Times: -1})
			s.DropConnections()
			state(t, u.peer, messages.SessionState_SUSPENDED)
			deadline(timeout*2/3 - margin)
			time.Sleep(time.Second)
			deadline(timeout*2/3 - margin - time.Second)
			away.Remove()
			state(t, u.peer, messages.SessionState_CONNECTED)
			deadline(timeout - margin)
		}
		time.Sleep(100 * time.Millisecond)
		u.list("/")
		s.DropConnections()
		state(t, u.peer, messages.SessionState_SUSPENDED)
		deadline(timeout - margin - 100*time.Millisecond) // from the handshake
		state(t, u.peer, messages.SessionState_CONNECTED)
		time.Sleep(time.Second)
		s.Inject(embedded.Fault{Op: embedded.OpDial, Action: embedded.CutBefore, Times: -1})
		s.DropConnections()
		begun := time.Now()
		state(t, u.peer, messages.SessionState_SUSPENDED)
		state(t, u.peer, messages.SessionState_LOST)
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

// The deadline counts from when the message was sent that is answered, and not from when
// the answer came: of a request, a ping and a handshake.
func TestDeadlineCountsFromSending(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		const timeout, margin, late = 6 * time.Second, time.Second, 900 * time.Millisecond
		s := embedded.Run(t, embedded.ServerConfig{MemoryOnly: true, TickTime: 100 * time.Millisecond, MaxSessionTimeout: timeout})
		u := newUser(t, connected(t, Config{Servers: "embedded:1", SessionTimeout: timeout, Margin: margin, Dial: s.Dial}))
		u.subscribe()
		state(t, u.peer, messages.SessionState_CONNECTED)
		slow := func(op embedded.Op) *embedded.Injected {
			return s.Inject(embedded.Fault{Op: op, Action: embedded.DelayReply, Delay: late})
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
		fired(t, ping)
		time.Sleep(late)
		synctest.Wait()
		answered("ping", ping.Firings()[0].Time)
		slow(embedded.OpConnect)
		slow(embedded.OpGetData) // the generation is read once it is connected: that answer is to come later
		s.DropConnections()
		state(t, u.peer, messages.SessionState_SUSPENDED)
		sent = time.Now() // it connects again at once
		state(t, u.peer, messages.SessionState_CONNECTED)
		if time.Since(sent) < late {
			t.Errorf("connected after %v", time.Since(sent))
		}
		answered("handshake", sent)
	})
}
