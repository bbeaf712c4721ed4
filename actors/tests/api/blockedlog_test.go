package api

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
)

// blockedLog is a handler that blocks until it is let go on.
type blockedLog struct {
	slog.Handler
	goOn <-chan struct{}
}

func (h blockedLog) Enabled(context.Context, slog.Level) bool { return true }

func (h blockedLog) Handle(context.Context, slog.Record) error {
	<-h.goOn
	return nil
}

// A log that blocks, as a full pipe does, does not stop the locks: a holder learns of its loss on
// time, a waiter gets its lock, and Close returns.
func TestBlockedLog(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		goOn := make(chan struct{})
		defer close(goOn)
		locks := v.Locks(func(cfg *actors.Config) { cfg.Logger = slog.New(blockedLog{slog.DiscardHandler, goOn}) })
		other := v.Locks()
		mu := locks.Mutex("/lock")
		g := locktest.Lock(v, mu)
		v.Pause()
		<-time.After(time.Until(locks.Session().Deadline) + 200*time.Millisecond)
		if !locktest.IsClosed(g.Done()) {
			v.Error("the holder has not learned of its loss by the deadline")
		}
		next := mu.Acquire(context.Background())
		v.Resume()
		locktest.Unlock(v, locktest.Result(v, next))
		locktest.Unlock(v, locktest.Lock(v, other.Mutex("/lock")))
		locktest.Must(v, locks.Close())
		locktest.Must(v, other.Close())
	})
}
