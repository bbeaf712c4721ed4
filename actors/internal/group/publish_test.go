package group_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/actorlock/actorlock/actors/internal/group"
)

// A few members publish their changes as soon as they have gathered them. The time that many members
// leave between two publications grows as the reads of one publication by all do, up to a bound.
func TestInterval(t *testing.T) {
	for _, c := range []struct {
		members int
		want    time.Duration
	}{{0, 0}, {3, 900 * time.Microsecond}, {64, 409600 * time.Microsecond}, {200, 2 * time.Second}, {100_000, 2 * time.Second}} {
		if got := group.Interval(c.members); got != c.want {
			t.Errorf("%d members publish every %v, want %v", c.members, got, c.want)
		}
	}
}

// A member publishes five times at once after a time without changes, and never more often in any time than
// five times and once in each interval. With a shorter interval, because members have left, it waits for no longer
// than that.
func TestPace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		interval := time.Duration(rapid.IntRange(1, 1000).Draw(t, "interval, ms")) * time.Millisecond
		fewer := time.Duration(rapid.IntRange(1, 1000).Draw(t, "of the interval, once members have left"))
		now := time.Unix(0, 0)
		var pace group.Pace
		var all []time.Time
		for range rapid.IntRange(1, 60).Draw(t, "publications") {
			now = now.Add(interval * time.Duration(rapid.IntRange(0, 700).Draw(t, "pause, % of the interval")) / 100)
			if len(all) < 5 || now.Sub(all[len(all)-1]) >= 5*interval {
				if rest := pace.Rest(now, interval); rest > 0 {
					t.Fatalf("waits for %v after %v without a publication", rest, all)
				}
			}
			now = now.Add(max(0, pace.Rest(now, interval)))
			pace.Note(now, interval)
			all = append(all, now)
			if rest := pace.Rest(now, interval/fewer); rest > interval/fewer {
				t.Fatalf("waits for %v with an interval of %v", rest, interval/fewer)
			}
		}
		for first := range all {
			for last := first; last < len(all); last++ {
				if most := 5 + int(all[last].Sub(all[first])/interval); last-first+1 > most {
					t.Fatalf("%d publications from %v to %v: at most %d", last-first+1, all[first], all[last], most)
				}
			}
		}
	})
}
