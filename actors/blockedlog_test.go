package actors_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
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
	bubble(t, func(v *virtual) {
		goOn := make(chan struct{})
		defer close(goOn)
		locks := v.locks(func(cfg *actors.Config) { cfg.Logger = slog.New(blockedLog{slog.DiscardHandler, goOn}) })
		other := v.locks()
		mu := locks.Mutex("/lock")
		g := lock(v, mu)
		v.Pause()
		<-time.After(time.Until(locks.Session().Deadline) + 200*time.Millisecond)
		if !isClosed(g.Done()) {
			v.Error("the holder has not learned of its loss by the deadline")
		}
		next := mu.Acquire(context.Background())
		v.Resume()
		unlock(v, result(v, next))
		unlock(v, lock(v, other.Mutex("/lock")))
		must(v, locks.Close())
		must(v, other.Close())
	})
}
