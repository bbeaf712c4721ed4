package zkconn

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// The clock takes a suspend into account at the next millisecond at the latest, and never goes
// back: the time between the readings of two system clocks may make a suspend look shorter than
// before.
func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		suspended := time.Minute
		c := NewClock(func() time.Duration { return suspended })
		for i, step := range []struct{ run, suspend, want time.Duration }{
			{0, 0, 0},
			{time.Second, 0, time.Second},
			{0, time.Hour, time.Second}, // not noticed yet
			{time.Millisecond, 0, time.Hour + time.Second + time.Millisecond},
			{time.Millisecond, -time.Minute, time.Hour + time.Second + 2*time.Millisecond},
			{time.Millisecond, 2 * time.Minute, time.Hour + time.Minute + time.Second + 3*time.Millisecond},
		} {
			suspended += step.suspend
			time.Sleep(step.run) // virtual
			if now := c.Now(); now != step.want {
				t.Errorf("step %d: %v, not %v", i, now, step.want)
			}
			if left := time.Until(c.TimeOf(step.want + time.Hour)); left != time.Hour {
				t.Errorf("step %d: an hour from now is in %v", i, left)
			}
		}
	})
}

// Suspends are counted from the system's clocks: there is none while this test runs, however the
// goroutines are scheduled.
func TestNoSuspendIsSeen(t *testing.T) {
	c := NewClock(nil)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			last := time.Duration(0)
			for range 50_000 {
				if now := c.Now(); now < last {
					t.Errorf("%v after %v", now, last)
				} else {
					last = now
				}
			}
		})
	}
	all.Wait()
	if ahead := time.Duration(c.ahead.Load()); ahead > time.Second {
		t.Errorf("a suspend of %v", ahead)
	}
}

// Where the wall clock shows suspends, one that is set back hides none that comes later.
func TestClockThatIsSetBack(t *testing.T) {
	var s stepSum
	for i, step := range []struct{ ahead, want time.Duration }{
		{999 * time.Millisecond, 0},
		{time.Second, time.Second},
		{-time.Hour, time.Second},                       // set back
		{-time.Hour + 20*time.Second, 21 * time.Second}, // suspended
		{-time.Hour + 20*time.Second + 1, 21 * time.Second},
		{-time.Hour + 19*time.Second, 21 * time.Second},
		{-time.Hour + 20*time.Second, 22 * time.Second}, // too much rather than too little
	} {
		if got := s.add(func() time.Duration { return step.ahead }); got != step.want {
			t.Errorf("step %d: %v, not %v", i, got, step.want)
		}
	}
}

func BenchmarkClock(b *testing.B) {
	c := NewClock(nil)
	for b.Loop() {
		c.Now()
	}
}
