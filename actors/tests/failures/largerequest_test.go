package failures

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// A request that is larger than the server's jute.maxbuffer fails, and names the setting. The other locks of
// the process go on, and their directories stay containers.
func TestLargeRequest(t *testing.T) {
	t.Parallel() // the pauses between the attempts take a quarter of a minute
	zktest.OneRunIn(t, 8)
	s := zktest.Own(t, zktest.Property("jute.maxbuffer", "65536"))
	locktest.OnServer(t, s, func(b *locktest.Fixture) {
		var log locktest.Log
		locks := b.Locks(log.Config, func(cfg *actors.Config) { cfg.SessionTimeout = 20 * time.Second })
		held := locktest.Lock(b, locks.Mutex(b.LockPath+"-held"))
		large := locks.Mutex(b.LockPath).Acquire(context.Background(), actors.WithData(make([]byte, 100<<10)))
		for i := 0; !locktest.IsClosed(large.Done()); i++ {
			for _, end := range []string{"-known", "-new-" + string(rune('a'+i%26))} {
				locktest.Unlock(b, locktest.Lock(b, locks.Mutex(b.LockPath+end)))
			}
			<-time.After(10 * time.Millisecond)
		}
		_, err := large.Result()
		locktest.Is(b, err, actors.ErrUnavailable)
		if err == nil || !strings.Contains(err.Error(), "jute.maxbuffer") {
			b.Errorf("%v", err)
		}
		if err := held.Err(); err != nil {
			b.Errorf("the lock that was held: %v", err)
		}
		if s := locks.Stats(); s.Suspensions > 8 || s.SessionsLost > 0 {
			b.Errorf("SUSPENDED %d times, %d sessions lost", s.Suspensions, s.SessionsLost)
		}
		for _, words := range []string{"containers", "does not know"} {
			if lines := log.With(words); len(lines) > 0 {
				b.Errorf("the log says %q", lines)
			}
		}
		locktest.Unlock(b, held)
		locktest.Unlock(b, locktest.Lock(b, locks.Mutex(b.LockPath))) // without the data
		b.Clean()
	})
}
