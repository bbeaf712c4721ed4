package zkbridge

import (
	"testing"
	"time"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/epoch"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// A read of the generation that is throttled, or whose answer does not say what there is, is tried again
// over the same connection. Only then does a session end that has a generation.
func TestGenerationIsReadAgainOverOneConnection(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code  int32
		times int
		epoch uint64 // afterwards
	}{
		{-127, 20, 1}, {-1, epoch.MaxMisreads, 1}, {-5, epoch.MaxMisreads, 1}, {-7, epoch.MaxMisreads, 1}, {-102, epoch.MaxMisreads, 1}, {-1, epoch.MaxMisreads + 1, 2},
	} {
		zktest.Bubble(t, func(t *testing.T) {
			s := zktest.Virtual(t)
			failures := 0
			f := &faultyClient{readAndWatch: func() error {
				if failures++; failures > c.times {
					return nil
				}
				return zkconn.ServerError(c.code)
			}}
			var d testDialer
			d.dial = s.Dial
			u := userOfFaulty(t, Config{Servers: s.Addr(), Dial: d.Dial, SessionTimeout: 20 * time.Second}, f)
			u.subscribe()
			u.waitState(messages.SessionState_CONNECTED)
			u.created("/d", "n-")
			d.cut()
			time.Sleep(10 * time.Second)
			if u.epoch() != c.epoch || u.bridge.Session().State != messages.SessionState_CONNECTED {
				t.Errorf("%d, %d times: %v", c.code, c.times, u.bridge.Session())
			}
			if n := u.bridge.Stats().Suspensions; n != 1 {
				t.Errorf("%d, %d times: SUSPENDED %d times", c.code, c.times, n)
			}
		})
	}
}
