//lint:file-ignore SA1012 nil contexts are tested, too

package api

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Without a context a grant's own one has ended, Sessions yields nothing and logs that, and Wait
// returns an error of futures.
func TestNilContext(t *testing.T) {
	locktest.OnEmbedded(t, func(b *locktest.Fixture) {
		var log locktest.Log
		locks := b.Locks(log.Config)
		mu := locks.Mutex(b.LockPath)
		g := locktest.Lock(b, mu)
		work := g.Context(nil)
		locktest.Closes(b, work.Done(), "the context")
		if err := context.Cause(work); !errors.Is(err, actors.ErrInvalid) || !strings.Contains(err.Error(), "context is nil") {
			b.Errorf("the context's cause is %v", err)
		}
		if _, open := <-locks.Sessions(nil); open || len(log.With("context is nil")) != 1 {
			b.Error("Sessions without a context")
		}
		locktest.Is(b, g.Unlock(nil), actors.ErrInvalid)
		b.WaitNodes(0) // Unlock has released
		f := mu.Acquire(locktest.Within(b))
		_, err := f.Wait(nil)
		locktest.Is(b, err, ask.ErrNilContext)
		locktest.Unlock(b, locktest.Result(b, f))
	})
}

// A request whose context has ended before is refused, and makes nothing.
func TestEndedContext(t *testing.T) {
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		locks := locktest.Connect(t, s.Addr())
		mu := locks.Mutex(s.Path(t))
		why := errors.New("ended before")
		ended, cancel := context.WithCancelCause(t.Context())
		cancel(why)
		begun := time.Now()
		_, err := mu.Lock(ended)
		locktest.Is(t, err, why)
		if err == nil || !strings.Contains(err.Error(), mu.Path()) {
			t.Errorf("the error does not name the path: %v", err)
		}
		past, cancel2 := context.WithDeadline(t.Context(), begun.Add(-time.Hour))
		defer cancel2()
		_, err = mu.Acquire(past).Result()
		locktest.Is(t, err, context.DeadlineExceeded)
		if nodes := s.Nodes(t, "/"); len(nodes) > 0 && strings.Contains(strings.Join(nodes, " "), mu.Path()[1:]) {
			t.Errorf("created: %v", nodes)
		}
		// These options are accepted.
		locktest.Unlock(t, locktest.Lock(t, mu, actors.WithTimeout(time.Nanosecond+zktest.TimeLimit), actors.WithData(nil), actors.WithOwner("a/b \x00 ü")))
		locktest.Unlock(t, locktest.Lock(t, mu, actors.WithTimeout(1<<63-1)))
	})
}
