package actors_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
)

// The garbage collector is outside of a test's bubble, where the clock is another: that it collects a lost grant does not
// end the grant of the next holder.
func TestLostGrantCollectedInVirtualTime(t *testing.T) {
	t.Parallel()
	bubble(t, func(v *virtual) {
		mu := v.locks().Mutex("/lock")
		func() {
			<-lock(v, mu, actors.HoldAtMost(time.Second)).Done()
		}()
		holder := lock(v, mu, actors.HoldAtMost(time.Hour))
		for range 20 {
			runtime.GC()
			runtime.Gosched()
		}
		<-time.After(5 * time.Second)
		must(v, holder.Err())
		unlock(v, holder)
	})
}
