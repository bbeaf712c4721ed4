package zktest

import (
	"sync"
	"testing"
	"time"
)

// Goroutines of a bubble set timers that fire at once. On two processors that ends the process under Go 1.26's
// race detector, within some thousand timers.
func TestBubbleWithTimersThatFireAtOnce(t *testing.T) {
	t.Parallel()
	Bubble(t, func(t *testing.T) {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 5000 {
					time.AfterFunc(0, func() {}).Reset(0)
				}
			})
		}
		wg.Wait()
	})
}
