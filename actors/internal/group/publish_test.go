package group_test

import (
	"testing"
	"time"

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
