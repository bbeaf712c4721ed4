package zkbridge

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// At the loss of the connection, 0.64 of the timeout or more are left, less the margin. The loss
// does not change the deadline, and the next connection puts it off.
func TestDeadlineAfterDisconnect(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		const timeout, margin = 3 * time.Second, 500 * time.Millisecond
		s := embedded.Run(t, embedded.ServerConfig{MemoryOnly: true, TickTime: 100 * time.Millisecond, MaxSessionTimeout: timeout})
		b := connected(t, Config{Servers: "embedded:1", SessionTimeout: timeout, Margin: margin, Dial: s.Dial})
		u := newUser(t, b)
		u.subscribe()
		left := func() time.Duration { return time.Until(b.Session().Deadline) }
		lose := func() (deadline time.Time) {
			t.Helper()
			deadline = b.Session().Deadline
			if left := left(); left < timeout*64/100-margin || left > timeout-margin {
				t.Errorf("%v left", left)
			}
			s.DropConnections()
			u.waitState(messages.SessionState_SUSPENDED)
			if after := b.Session().Deadline; !after.Equal(deadline) {
				t.Errorf("the loss of the connection moves the deadline from %v to %v", deadline, after)
			}
			return deadline
		}
		u.waitState(messages.SessionState_CONNECTED)
		for i := range 40 {
			time.Sleep(time.Duration(i) * 70 * time.Millisecond) // virtual
			if i%2 == 0 {
				u.list("/")
			}
			away := s.Inject(embedded.Fault{Op: embedded.OpDial, Action: embedded.CutBefore, Times: -1})
			was := lose()
			time.Sleep(time.Second)
			away.Remove()
			u.waitState(messages.SessionState_CONNECTED)
			if now := b.Session().Deadline; !now.After(was) || left() < timeout-margin {
				t.Errorf("after the next handshake %v are left", left())
			}
		}
		time.Sleep(time.Second)
		s.Inject(embedded.Fault{Op: embedded.OpDial, Action: embedded.CutBefore, Times: -1})
		deadline := lose()
		u.waitState(messages.SessionState_LOST)
		if late := time.Since(deadline); late != 0 {
			t.Errorf("lost %v after the deadline", late)
		}
		if len(s.Sessions()) != 1 {
			t.Error("the server has expired the session before")
		}
		b.Close()
		<-b.ended
	})
}

// The deadline counts from the instant at which the answered message was sent, and not from the
// answer: of a request, a ping and a handshake.
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
			d := u.bridge.Session().Deadline.Sub(sent) // the clocks may differ by a two-hundredth
			if d > timeout-margin || d < timeout-margin-timeout/200 {
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
		// The bridge reads the generation before it is connected again: those answers set the deadline later.
		slow(embedded.OpGetData)
		slow(embedded.OpExists)
		s.DropConnections()
		u.waitState(messages.SessionState_SUSPENDED)
		sent = time.Now() // the bridge reconnects at once
		time.Sleep(delay * 3 / 2)
		answered("handshake", sent)
		u.waitState(messages.SessionState_CONNECTED)
		answered("read of the generation", sent.Add(delay))
	})
}

// The session of a process that does nothing lives through restarts of its servers, also if each
// answer takes 100 ms.
func TestIdleSessionLives(t *testing.T) {
	t.Parallel()
	for _, timeout := range []time.Duration{4 * time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second} {
		zktest.Bubble(t, func(t *testing.T) {
			s := embedded.Run(t, embedded.ServerConfig{MemoryOnly: true, MaxSessionTimeout: timeout})
			s.Inject(embedded.Fault{Op: embedded.OpAll, Times: -1, Action: embedded.DelayReply, Delay: 100 * time.Millisecond})
			b := connected(t, Config{Servers: "embedded:1", SessionTimeout: timeout, Dial: s.Dial})
			for i := range 100 {
				time.Sleep(time.Minute + time.Duration(i)*timeout/100) // virtual
				s.Halt()
				time.Sleep(timeout / 5)
				s.Restart()
				if now := b.Session(); now.Epoch != 1 || now.State == messages.SessionState_LOST {
					t.Fatalf("sessions of %v: after restart %d: %v", timeout, i, now)
				}
			}
			b.Close()
			<-b.ended
		})
	}
}

// While the machine is suspended the monotonic clock and all timers stand still. The session is
// lost at the first look at the clock after that, and the subscribers hear of it within a sixth of
// the timeout.
func TestSuspend(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		const timeout = 6 * time.Second
		s := embedded.Run(t, embedded.ServerConfig{MemoryOnly: true, TickTime: 100 * time.Millisecond, MaxSessionTimeout: timeout})
		var suspended atomic.Int64
		b := connected(t, Config{Servers: "embedded:1", SessionTimeout: timeout, Dial: s.Dial,
			SuspendedFor: func() time.Duration { return time.Duration(suspended.Load()) }})
		u := newUser(t, b)
		u.subscribe()
		u.waitState(messages.SessionState_CONNECTED)
		for _, nap := range []time.Duration{2 * time.Second, time.Hour} {
			time.Sleep(10 * time.Second) // virtual
			epoch := u.epoch()
			s.Pause() // no event comes from the network
			suspended.Add(int64(nap))
			time.Sleep(time.Millisecond)
			if lost := b.Lost(epoch); lost != (nap > timeout) {
				t.Errorf("lost after a suspend of %v: %v", nap, lost)
			}
			if deadline := b.Session().Deadline; (time.Until(deadline) < 0) != (nap > timeout) {
				t.Errorf("after a suspend of %v the deadline is in %v", nap, time.Until(deadline))
			}
			if nap > timeout {
				woken := time.Now()
				u.waitState(messages.SessionState_LOST)
				if late := time.Since(woken); late > timeout/zkconn.BeatsPerTimeout {
					t.Errorf("heard of the loss after %v", late)
				}
			}
			s.Resume()
		}
		u.waitState(messages.SessionState_CONNECTED)
		b.Close()
		<-b.ended
	})
}
