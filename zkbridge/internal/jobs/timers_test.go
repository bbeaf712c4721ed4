package jobs

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// Timers that are due at one moment fire in the order in which they were set, but for those that are stopped,
// also by one of them.
func TestTimersOfOneMoment(t *testing.T) {
	for range 20 { // Go's order is random
		synctest.Test(t, func(t *testing.T) {
			posted := make(chan func(), 100)
			timers := NewTimers(func(f func()) { posted <- f })
			var fired []int
			var stops []func()
			for i := range 10 {
				stops = append(stops, timers.After(time.Second, func() {
					if fired = append(fired, i); i == 3 {
						stops[6]()
					}
				}))
			}
			timers.After(2*time.Second, func() { fired = append(fired, 10) })
			timers.After(3*time.Second, func() { t.Error("a timer fires after End") })
			stops[1]()
			time.Sleep(2 * time.Second)
			synctest.Wait()
			for len(posted) > 0 {
				(<-posted)()
			}
			timers.End()
			time.Sleep(2 * time.Second)
			if want := []int{0, 2, 3, 4, 5, 7, 8, 9, 10}; !slices.Equal(fired, want) || len(posted) > 0 || len(timers.set) > 0 {
				t.Errorf("fired: %v, want %v; %d more, %d are set", fired, want, len(posted), len(timers.set))
			}
		})
	}
}
