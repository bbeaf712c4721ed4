package zkconn

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
)

// A follower that is cut off from its leader answers until it notices that, and hangs up. The leader cannot expire a session before
// the deadline of its client if the margin is (syncLimit + 1/2) * tickTime. With a smaller margin it may. The test compares the
// arithmetic of Config.Margin with a model of what the leader receives.
func TestDeadlineOfACutOffFollower(t *testing.T) {
	enough, less := 0, 0 // overlaps with an accepted margin, and with a smaller one
	for range 100_000 {
		f := newFollower()
		delay := time.Duration(f.syncLimit)*f.tick + f.tick/2
		timeout := 2*delay + rand.N(40*f.tick)
		margin := delay + rand.N(timeout/2-delay+1)
		if f.overlap(timeout, margin) > 0 {
			enough++
		}
		if f.overlap(timeout, delay*9/10) > 0 {
			less++
		}
	}
	if enough > 0 {
		t.Errorf("%d times the leader could expire the session before the deadline", enough)
	}
	if less == 0 {
		t.Error("a smaller margin is enough as well: the model shows no difference")
	}
}

// follower is in touch with its leader until the instant cut, and hangs up at hungUp.
type follower struct {
	tick        time.Duration
	syncLimit   int
	cut, hungUp time.Duration
	phase       float64 // of the leader's pings, which come every half tick
	client      float64 // phase of the client's pings
}

func newFollower() follower {
	f := follower{tick: time.Duration(1+rand.IntN(20)) * 100 * time.Millisecond, syncLimit: 1 + rand.IntN(10),
		phase: rand.Float64(), client: rand.Float64()}
	f.cut = time.Hour
	// The leader's last ping arrived half a tick before the cut at most.
	f.hungUp = f.cut + time.Duration(f.syncLimit)*f.tick - rand.N(f.tick/2+1)
	return f
}

// overlap returns how much later the deadline is than the earliest expiry by the leader.
func (f follower) overlap(timeout, margin time.Duration) time.Duration {
	last := func(before, interval time.Duration, phase float64) time.Duration {
		first := time.Duration(phase * float64(interval))
		return first + (before-first)/interval*interval
	}
	interval := timeout / PingsPerTimeout
	reported := last(f.cut, f.tick/2, f.phase)              // by the follower to the leader
	pinged := last(reported, interval, f.client)            // of the client's pings
	expires := pinged + timeout                             // at the earliest
	answered := last(f.hungUp-1, interval, f.client)        // of the client's pings
	session := &SessionConn{cfg: &Settings{Margin: margin}} // the client's
	session.granted.Store(int64(timeout))
	session.lastAnswered.Store(int64(answered))
	session.disconnectedAt.Store(int64(f.hungUp))
	return session.Deadline().Sub(session.openedAt.Add(expires))
}

// Each failed attempt to reconnect is reported as another disconnection. It does not move the deadline.
func TestDeadlineStaysWhileDisconnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		session := &SessionConn{cfg: &Settings{Margin: time.Second}, post: func(any) {}, openedAt: time.Now()}
		session.granted.Store(int64(9 * time.Second))
		time.Sleep(10 * time.Second) // virtual
		session.onAnswered(session.now())
		for range 3 {
			session.onClientEvent(zk.Event{Type: zk.EventSession, State: zk.StateDisconnected})
			if limit := session.deadlineOffset(); limit != 15*time.Second {
				t.Errorf("the deadline is at %v", limit)
			}
			time.Sleep(time.Second)
		}
	})
}
