package zkbridge

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// Once the connection is gone the deadline no longer counts on the last answer: two
// thirds of the timeout, less the margin, are left to reconnect, and a connection in
// between begins it anew.
func TestDeadlineAfterDisconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout, margin = 3 * time.Second, 500 * time.Millisecond
		s := embedded.Run(t, embedded.Config{MemoryOnly: true, TickTime: 100 * time.Millisecond, MaxSessionTimeout: timeout})
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
	synctest.Test(t, func(t *testing.T) {
		const timeout, margin, late = 6 * time.Second, time.Second, 900 * time.Millisecond
		s := embedded.Run(t, embedded.Config{MemoryOnly: true, TickTime: 100 * time.Millisecond, MaxSessionTimeout: timeout})
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

// A follower that is cut off from its leader answers until it notices, and hangs up. The
// deadline of its clients is not later than the leader can expire their sessions if the
// margin is (syncLimit + 1/2) * tickTime; with less it may be. This is the arithmetic of
// Config.Margin against a model of what the leader hears.
func TestDeadlineOfACutOffFollower(t *testing.T) {
	enough, less := 0, 0
	for range 100_000 {
		f := newFollower()
		blind := time.Duration(f.syncLimit)*f.tick + f.tick/2
		timeout := 2*blind + rand.N(40*f.tick)
		margin := blind + rand.N(timeout/2-blind+1)
		if f.overlap(timeout, margin) > 0 {
			enough++
		}
		if f.overlap(timeout, blind*9/10) > 0 {
			less++
		}
	}
	if enough > 0 {
		t.Errorf("%d times the leader could expire the session before the deadline", enough)
	}
	if less == 0 {
		t.Error("a smaller margin is enough, too: the model has lost its edge")
	}
}

// follower is one that hears of its leader until cut, and hangs up at hungUp.
type follower struct {
	tick        time.Duration
	syncLimit   int
	cut, hungUp time.Duration
	phase       float64 // of the leader's pings, which come every half tick
	client      float64 // and of the client's
}

func newFollower() follower {
	f := follower{tick: time.Duration(1+rand.IntN(20)) * 100 * time.Millisecond, syncLimit: 1 + rand.IntN(10),
		phase: rand.Float64(), client: rand.Float64()}
	f.cut = time.Hour
	// Half a tick before it was cut off, at most, the leader was heard of last.
	f.hungUp = f.cut + time.Duration(f.syncLimit)*f.tick - rand.N(f.tick/2+1)
	return f
}

// overlap is how much later the deadline is than the leader can expire the session.
func (f follower) overlap(timeout, margin time.Duration) time.Duration {
	last := func(before, interval time.Duration, phase float64) time.Duration {
		first := time.Duration(phase * float64(interval))
		return first + (before-first)/interval*interval
	}
	interval := timeout / pingsPerTimeout
	reported := last(f.cut, f.tick/2, f.phase)        // by the follower to the leader
	heardOf := last(reported, interval, f.client)     // of the client's pings
	expires := heardOf + timeout                      // at the earliest
	answered := last(f.hungUp-1, interval, f.client)  // of the client's pings
	l := &sessionConn{cfg: &settings{margin: margin}} // as the client sees it
	l.timeout.Store(int64(timeout))
	l.lastAnswered.Store(int64(answered))
	l.disconnectedAt.Store(int64(f.hungUp))
	return l.deadline().Sub(l.openedAt.Add(expires))
}

// Each attempt to reconnect that fails is reported as one more disconnection. It does not
// move the deadline.
func TestDeadlineStaysWhileDisconnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &sessionConn{cfg: &settings{margin: time.Second}, post: func(any) {}, openedAt: time.Now()}
		l.timeout.Store(int64(9 * time.Second))
		time.Sleep(10 * time.Second) // virtual
		l.onAnswered(l.now())
		for range 3 {
			l.onClientEvent(zk.Event{Type: zk.EventSession, State: zk.StateDisconnected})
			if limit := l.deadlineOffset(); limit != 15*time.Second {
				t.Errorf("the deadline is at %v", limit)
			}
			time.Sleep(time.Second)
		}
	})
}
