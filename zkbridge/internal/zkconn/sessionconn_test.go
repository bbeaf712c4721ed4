package zkconn

import (
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// A follower that is cut off from its leader answers until it notices that, and hangs up. No client
// believes in its session when the leader can have expired it, if the margin is (syncLimit + 1/2) *
// tickTime: not if it was paused, nor if the follower falls silent as well, nor if the clocks run
// at different speeds. With a smaller margin it may, and by each weaker rule.
func TestDeadlineOfACutOffFollower(t *testing.T) {
	for _, rule := range []struct {
		name     string
		deadline func(h *hearing, hungUp time.Duration) time.Duration
		margin   float64 // 1 is enough
		enough   bool
	}{
		{"by history", func(h *hearing, _ time.Duration) time.Duration { return h.deadline() }, 1, true},
		{"by history, with a smaller margin", func(h *hearing, _ time.Duration) time.Duration { return h.deadline() }, 0.9, false},
		{"by history, without the error of clocks", func(h *hearing, _ time.Duration) time.Duration {
			return h.timeout + min(h.proven, h.newest-h.margin)
		}, 1, false},
		{"by the newest message", func(h *hearing, _ time.Duration) time.Duration { return h.timeout + h.newest - h.margin }, 1, false},
		{"by pings before the hang-up", func(h *hearing, hungUp time.Duration) time.Duration {
			return max(0, min(h.newest, hungUp-h.timeout/3)) + h.timeout - h.margin
		}, 1, false},
	} {
		var worst time.Duration
		for seed := uint64(0); seed < 20_000 && (rule.enough || worst <= 0); seed++ {
			f := newCutOff(rand.New(rand.NewPCG(seed, 0)), rule.margin)
			f.run()
			worst = max(worst, f.real(rule.deadline(&f.hearing, f.clock(f.hungUp)))-f.expires)
		}
		if (worst <= 0) != rule.enough {
			t.Errorf("%s: a client believes up to %v longer than the leader", rule.name, worst)
		}
	}
}

// cutOff is a history of one connection to a follower, which is in touch with its leader until the
// instant cut, and hangs up at hungUp. The client sends pings and now and then other messages. It
// may be paused, and what it sends, or the answers, may be lost from an instant on. The times are
// those of the servers' clocks; the client's clock is slower or faster.
type cutOff struct {
	*rand.Rand
	hearing
	speed         float64       // of the client's clock
	tick, phase   time.Duration // the follower reports to the leader every half tick
	cut, hungUp   time.Duration
	pause, resume time.Duration
	mute, deaf    time.Duration // no message, and no answer, arrives from then on
	busy          time.Duration // greatest time between two messages
	expires       time.Duration // by the leader
}

// newCutOff returns a history for a margin of which 1 is enough.
func newCutOff(r *rand.Rand, margin float64) *cutOff {
	c := &cutOff{Rand: r, tick: time.Duration(1+r.IntN(20)) * 100 * time.Millisecond}
	c.speed = 1 + (2*r.Float64()-1)/(ClockError+1)
	syncLimit := time.Duration(1 + r.IntN(10))
	delay := syncLimit*c.tick + c.tick/2
	c.timeout = 2*delay + c.below(40*c.tick)
	c.margin = time.Duration(margin * float64(delay+c.pick(0, c.below(c.timeout/2-delay))))
	c.phase = c.below(c.tick / 2)
	c.cut = c.below(3 * c.timeout)
	// The leader's last ping arrived half a tick before the cut at most.
	c.hungUp = c.cut + syncLimit*c.tick - c.below(c.tick/2)
	c.pause = c.cut + c.below(c.timeout) - c.below(c.timeout)
	c.resume = c.pause + c.below(c.timeout)
	c.busy = c.pick(c.timeout/BeatsPerTimeout, c.timeout/200)
	c.mute, c.deaf = c.pick(1<<62, c.below(2*c.timeout)), c.pick(1<<62, c.below(2*c.timeout))
	return c
}

// clock returns what the client's clock shows at a time, and real is its inverse.
func (c *cutOff) clock(at time.Duration) time.Duration { return time.Duration(float64(at) * c.speed) }
func (c *cutOff) real(clock time.Duration) time.Duration {
	return time.Duration(float64(clock) / c.speed)
}

func (c *cutOff) below(d time.Duration) time.Duration { return time.Duration(c.Int64N(int64(d) + 1)) }

func (c *cutOff) pick(often, seldom time.Duration) time.Duration {
	if c.IntN(4) > 0 {
		return often
	}
	return seldom
}

// travel returns how long a message is under way.
func (c *cutOff) travel() time.Duration { return c.below(c.pick(30*time.Millisecond, c.timeout/4)) }

// whileRunning returns the earliest time from at on at which the client runs.
func (c *cutOff) whileRunning(at time.Duration) time.Duration {
	if at >= c.pause && at < c.resume {
		return c.resume
	}
	return at
}

// run lets the history happen until the follower hangs up.
func (c *cutOff) run() {
	c.onHandshake(exchange{0, c.clock(c.travel())}, c.timeout, c.margin) // sent at 0
	received := []time.Duration{0}                                       // by the follower
	c.expires = c.timeout
	arrived, answered := time.Duration(0), time.Duration(0) // of the message before
	for next := time.Duration(0); ; {
		next = c.whileRunning(next + c.pick(c.busy, c.below(c.busy)))
		arrived = max(arrived, next+c.travel())
		c.reports(&received, arrived)
		if arrived >= min(c.mute, c.hungUp, c.expires) {
			break
		}
		received = append(received, arrived)
		if answered = max(answered, arrived+c.travel()); answered < c.deaf {
			c.onAnswered(c.clock(next), func() time.Duration { return c.clock(c.whileRunning(answered)) })
		}
	}
	c.reports(&received, c.cut)
}

// reports has the follower report what it has received, until the cut and a time. The leader
// expires the session after a report that comes too late.
func (c *cutOff) reports(received *[]time.Duration, until time.Duration) {
	for ; c.phase < min(until, c.cut); c.phase += c.tick / 2 {
		heard := slices.ContainsFunc(*received, func(at time.Duration) bool { return at <= c.phase })
		if heard && c.phase < c.expires {
			c.expires = c.phase + c.timeout
			*received = slices.DeleteFunc(*received, func(at time.Duration) bool { return at <= c.phase })
		}
	}
}

// Beside a server that answers, a session that is never paused has 0.64 of the timeout left, less
// the margin, at any time: two thirds without the errors of clocks, and without the exchanges that
// are left out.
func TestDeadlineOfAHealthySession(t *testing.T) {
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 1))
		var h hearing
		timeout := time.Second + time.Duration(r.Int64N(int64(time.Minute)))
		margin := 1 + time.Duration(r.Int64N(int64(timeout/2)))
		h.onHandshake(exchange{}, timeout, margin)
		for sent := time.Duration(0); sent < 4*timeout; {
			before := sent
			sent += 1 + time.Duration(r.Int64N(int64(timeout/BeatsPerTimeout/time.Duration(1+seed%2*99)))) // half of them are busy
			if left := h.deadline() - sent; left < timeout*64/100-margin {
				t.Fatalf("seed %d: %v left of %v with a margin of %v, %v after the message before", seed, left, timeout, margin, sent-before)
			}
			h.onAnswered(sent, func() time.Duration { return sent })
			if len(h.recent) > 40 {
				t.Fatalf("%d exchanges are kept", len(h.recent))
			}
		}
	}
}

// The loss of the connection does not move the deadline.
func TestDeadlineStaysWhileDisconnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		session := handshaking(nil, &Settings{Margin: time.Second}).session
		session.onHandshake(0, 10*time.Second)
		for i := range 10 {
			time.Sleep(time.Second) // virtual
			session.onAnswered(time.Duration(i+1) * time.Second)
		}
		for range 3 {
			// The message of 8 s was answered a margin before that of 10 s was sent.
			if limit, want := session.deadlineOffset(), 18*time.Second-10*time.Second/ClockError; limit != want {
				t.Errorf("the deadline is at %v, not %v", limit, want)
			}
			time.Sleep(time.Second)
		}
		session.Kill()
	})
}
