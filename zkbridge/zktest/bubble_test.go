package zktest

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// Goroutines of a bubble set timers that fire at once. On two processors some thousand of these
// timers end the process under Go 1.26's race detector.
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

// A server without a network has clients, and Nodes works while the server is frozen.
func TestVirtual(t *testing.T) {
	Bubble(t, func(t *testing.T) {
		s := Virtual(t)
		c := s.Client(t)
		create(t, c, "/parent", 0)
		create(t, c, "/parent/one", zk.FlagEphemeral)
		create(t, c, "/parent/one-two", 0)
		create(t, c, "/parent-two", 0)
		s.Freeze(t)
		if got := s.Nodes(t, "/parent"); !slices.Equal(got, []string{"one", "one-two"}) {
			t.Errorf("nodes %v", got)
		}
		if got := s.Nodes(t, "/"); !slices.Equal(got, []string{"parent", "parent-two"}) {
			t.Errorf("nodes %v", got)
		}
		s.Thaw(t)
	})
}
