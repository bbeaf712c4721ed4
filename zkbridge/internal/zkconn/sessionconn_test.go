package zkconn

import (
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
)

// A follower that is cut off from its leader answers until it notices that, and hangs up. No client believes in its session when the
// leader can have expired it, if the margin is (syncLimit + 1/2) * tickTime: not if it was paused, nor if the follower falls silent as
// well. With a smaller margin it may, and by the rule that a ping was sent in the last third of the timeout before the hang-up.
func TestDeadlineOfACutOffFollower(t *testing.T) {
	byHistory := func(h *hearing, timeout, _ time.Duration) time.Duration { return h.heard() + timeout }
	byPings := func(h *hearing, timeout, hungUp time.Duration) time.Duration {
		return max(0, min(h.newest, hungUp-timeout/3)) + timeout - h.margin
	}
	for _, rule := range []struct {
		name     string
		deadline func(h *hearing, timeout, hungUp time.Duration) time.Duration
		margin   float64 // 1 is enough
		enough   bool
	}{
		{"by history", byHistory, 1, true},
		{"by history, smaller margin", byHistory, 0.8, false},
		{"by pings", byPings, 1, false},
	} {
		var worst time.Duration
		for seed := range uint64(20_000) {
			f := newCutOff(rand.New(rand.NewPCG(seed, 0)), rule.margin)
			f.run()
			worst = max(worst, rule.deadline(&f.hearing, f.timeout, f.hungUp)-f.expires)
		}
		if (worst <= 0) != rule.enough {
			t.Errorf("%s: a client believes up to %v longer than the leader", rule.name, worst)
		}
	}
}

// cutOff is a history of one connection to a follower, which is in touch with its leader until the instant cut, and hangs up at hungUp.
// The client sends pings and now and then other messages. It may be paused, and what it sends, or the answers, may be lost from an
// instant on.
type cutOff struct {
	*rand.Rand
	hearing
	timeout       time.Duration
	tick, phase   time.Duration // the follower reports to the leader every half tick
	cut, hungUp   time.Duration
	pause, resume time.Duration
	mute, deaf    time.Duration // no message, and no answer, arrives from then on
	expires       time.Duration // by the leader
}

// newCutOff returns a history for a margin of which 1 is enough.
func newCutOff(r *rand.Rand, margin float64) *cutOff {
	c := &cutOff{Rand: r, tick: time.Duration(1+r.IntN(20)) * 100 * time.Millisecond}
	syncLimit := time.Duration(1 + r.IntN(10))
	delay := syncLimit*c.tick + c.tick/2
	c.timeout = 2*delay + c.below(40*c.tick)
	c.margin = time.Duration(margin * float64(delay+c.below(c.timeout/2-delay+1)))
	c.phase = c.below(c.tick / 2)
	c.cut = c.below(3 * c.timeout)
	// The leader's last ping arrived half a tick before the cut at most.
	c.hungUp = c.cut + syncLimit*c.tick - c.below(c.tick/2)
	c.pause = c.cut + c.below(c.timeout) - c.below(c.timeout)
	c.resume = c.pause + c.below(c.timeout)
	c.mute, c.deaf = c.pick(1<<62, c.below(2*c.timeout)), c.pick(1<<62, c.below(2*c.timeout))
	return c
}

func (c *cutOff) below(d time.Duration) time.Duration { return time.Duration(c.Int64N(int64(d) + 1)) }

func (c *cutOff) pick(often, seldom time.Duration) time.Duration {
	if c.IntN(4) > 0 {
		return often
	}
	return seldom
}

// whileRunning returns the earliest time from at on at which the client runs.
func (c *cutOff) whileRunning(at time.Duration) time.Duration {
	if at >= c.pause && at < c.resume {
		return c.resume
	}
	return at
}

// run lets the history happen until the follower hangs up.
func (c *cutOff) run() {
	const travel = 30 * time.Millisecond
	c.onHandshake(exchange{0, c.below(travel)}, c.margin) // sent at 0
	var received []time.Duration                          // by the follower
	received = append(received, 0)
	c.expires = c.timeout
	arrived, answered := time.Duration(0), time.Duration(0) // of the message before
	for next := time.Duration(0); ; {
		next = c.whileRunning(next + c.pick(c.timeout/BeatsPerTimeout, c.below(c.timeout/BeatsPerTimeout)))
		arrived = max(arrived, next+c.below(travel))
		c.reports(&received, arrived)
		if arrived >= min(c.mute, c.hungUp, c.expires) {
			break
		}
		received = append(received, arrived)
		if answered = max(answered, arrived+c.below(travel)); answered < c.deaf {
			read := c.whileRunning(answered)
			c.onAnswered(next, func() time.Duration { return read })
		}
	}
	c.reports(&received, c.cut)
}

// reports has the follower report what it has received, until the cut and a time. The leader expires the session after a report that
// comes too late.
func (c *cutOff) reports(received *[]time.Duration, until time.Duration) {
	for ; c.phase < min(until, c.cut); c.phase += c.tick / 2 {
		heard := slices.ContainsFunc(*received, func(at time.Duration) bool { return at <= c.phase })
		if heard && c.phase < c.expires {
			c.expires = c.phase + c.timeout
			*received = slices.DeleteFunc(*received, func(at time.Duration) bool { return at <= c.phase })
		}
	}
}

// Beside a server that answers, a session that is never paused has two thirds of the timeout left, less the margin, at any time.
func TestDeadlineOfAHealthySession(t *testing.T) {
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 1))
		var h hearing
		timeout := time.Second + time.Duration(r.Int64N(int64(time.Minute)))
		margin := 1 + time.Duration(r.Int64N(int64(timeout/2)))
		h.onHandshake(exchange{}, margin)
		for sent := time.Duration(0); sent < 4*timeout; {
			before := sent
			sent += 1 + time.Duration(r.Int64N(int64(timeout/BeatsPerTimeout)))
			// Those between two that are kept are left out.
			if left := h.heard() + timeout - sent; left < timeout*2/3-margin-margin/16 {
				t.Fatalf("seed %d: %v left of %v with a margin of %v, %v after the message before", seed, left, timeout, margin, sent-before)
			}
			h.onAnswered(sent, func() time.Duration { return sent })
			if len(h.recent) > 20 {
				t.Fatalf("%d exchanges are kept", len(h.recent))
			}
		}
	}
}

// The loss of the connection does not move the deadline.
func TestDeadlineStaysWhileDisconnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := handshaking(nil, &Settings{Margin: time.Second})
		session := c.session
		session.granted.Store(int64(9 * time.Second))
		session.onAnswered(sentRecord{xid: xidConnect})
		for i := range 10 {
			time.Sleep(time.Second) // virtual
			session.onAnswered(sentRecord{xid: xidPing, at: time.Duration(i+1) * time.Second})
		}
		for range 3 {
			session.onClientEvent(zk.Event{Type: zk.EventSession, State: zk.StateDisconnected})
			if limit := session.deadlineOffset(); limit != 18*time.Second {
				t.Errorf("the deadline is at %v", limit)
			}
			time.Sleep(time.Second)
		}
		session.Kill()
	})
}
