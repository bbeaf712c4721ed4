package zkconn

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
)

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
	interval := timeout / PingsPerTimeout
	reported := last(f.cut, f.tick/2, f.phase)        // by the follower to the leader
	heardOf := last(reported, interval, f.client)     // of the client's pings
	expires := heardOf + timeout                      // at the earliest
	answered := last(f.hungUp-1, interval, f.client)  // of the client's pings
	l := &SessionConn{cfg: &Settings{Margin: margin}} // as the client sees it
	l.granted.Store(int64(timeout))
	l.lastAnswered.Store(int64(answered))
	l.disconnectedAt.Store(int64(f.hungUp))
	return l.Deadline().Sub(l.openedAt.Add(expires))
}

// Each attempt to reconnect that fails is reported as one more disconnection. It does not
// move the deadline.
func TestDeadlineStaysWhileDisconnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &SessionConn{cfg: &Settings{Margin: time.Second}, post: func(any) {}, openedAt: time.Now()}
		l.granted.Store(int64(9 * time.Second))
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
