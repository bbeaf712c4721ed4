package remote

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// While all turns are taken a large frame waits, and a small one does not.
func TestLargeFramesWaitForTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newFrameTurns()
		var ends []func()
		for range cap(turns) {
			ends = append(ends, turns.take())
		}
		var handled atomic.Int32
		go turns.handle(smallFrameMessages, func() { handled.Add(1) })
		synctest.Wait()
		if handled.Load() > 0 {
			t.Error("a large frame is handled beside as many as have turns")
		}
		turns.handle(smallFrameMessages-1, func() { handled.Add(10) })
		if handled.Load() != 10 {
			t.Error("a small frame waits for a turn")
		}
		for _, end := range ends {
			end()
		}
		synctest.Wait()
		if handled.Load() != 11 || len(turns) > 0 {
			t.Errorf("the large frame is not handled once there is a turn, or keeps it: %d, %d", handled.Load(), len(turns))
		}
	})
}
