package recipes

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge/embedded"
)

func TestCancelBeforeAnything(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		mu := b.Mutex()
		for range 20 {
			f := mu.Acquire(locktest.Within(b))
			f.Cancel()
			if g, err := f.Result(); err == nil && g.Err() == nil {
				b.Fatal("granted after Cancel")
			}
		}
		locktest.Unlock(b, locktest.Lock(b, mu))
	})
}

// Cancel releases a grant that no call has returned, and the future does not return it afterwards.
func TestCancelGivesBack(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		mu := b.Mutex()
		f := mu.Acquire(locktest.Within(b))
		locktest.Closes(b, f.Done(), "the request")
		b.WaitNodes(1)
		f.Cancel()
		b.WaitNodes(0)
		if g, err := f.Result(); err == nil {
			b.Errorf("Result returns a grant without an error, which has ended: %v", g.Err())
		} else {
			locktest.Is(b, err, actors.ErrCancelled)
		}
		locktest.Unlock(b, locktest.Lock(b, mu))
	})
}

func TestCancelAfterResult(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		f := b.Mutex().Acquire(locktest.Within(b))
		g := locktest.Result(b, f)
		f.Cancel()
		again, err := f.Result()
		if err != nil || again != g || g.Err() != nil || len(b.LockNodes()) != 1 {
			b.Errorf("%v, %v; %v; nodes %v", again, err, g.Err(), b.LockNodes())
		}
		locktest.Unlock(b, g)
	})
}

// Contexts end at the moment at which the lock is granted. A call that returns a grant without an
// error holds the lock.
func TestContextRacesGrant(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		var log locktest.Log
		mu := b.Mutex(log.Config)
		var wg sync.WaitGroup
		granted := 0
		for range 8 {
			wg.Go(func() {
				for range 150 {
					ctx, cancel := context.WithTimeout(b.Context(), rand.N(4*time.Millisecond))
					g, err := mu.Lock(ctx)
					if err == nil {
						granted++ // under the lock
						if g.Err() != nil {
							b.Errorf("granted without an error, and ended: %v", g.Err())
						}
						if err := g.Unlock(locktest.Within(b)); err != nil {
							b.Errorf("unlock: %v", err)
						}
					} else {
						locktest.Is(b, err, context.DeadlineExceeded)
					}
					cancel()
				}
			})
		}
		wg.Wait()
		b.Logf("%d of %d granted", granted, 8*150)
		locktest.Unlock(b, locktest.Lock(b, mu))
		// The log does not warn of a grant that was released in time.
		for range 5 {
			runtime.GC()
			runtime.Gosched()
		}
		if lines := log.With("dropped"); len(lines) != 0 {
			b.Errorf("the log has %d dropped grants: %s", len(lines), lines[0])
		}
	})
}

// The context ends when the request is complete, during the call of Result.
func TestContextRacesResult(t *testing.T) {
	locktest.OnEmbedded(t, func(b *locktest.Fixture) {
		mu := b.Mutex()
		for range 300 {
			ctx, cancel := context.WithCancel(b.Context())
			f := mu.Acquire(ctx)
			go func() {
				<-f.Done()
				cancel()
			}()
			if g, err := f.Result(); err == nil {
				if g.Err() != nil {
					b.Fatalf("granted without an error, and ended: %v", g.Err())
				}
				locktest.Unlock(b, g)
			}
		}
		locktest.Unlock(b, locktest.Lock(b, mu))
	})
}

func TestCancelRacesGrant(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		mu := b.Mutex()
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 60 {
					f := mu.Acquire(locktest.Within(b))
					stop := make(chan struct{})
					go func() {
						<-time.After(rand.N(3 * time.Millisecond))
						f.Cancel()
						close(stop)
					}()
					if g, err := f.Result(); err == nil {
						if g.Err() != nil {
							b.Errorf("granted without an error, and ended: %v", g.Err())
						}
						g.Release()
					}
					<-stop
				}
			})
		}
		wg.Wait()
		locktest.Unlock(b, locktest.Lock(b, mu))
	})
}

// The request of a dropped future leaves the queue, also with a grant that no call has returned.
func TestDroppedFuture(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		var log locktest.Log
		mu := b.Mutex(log.Config, locktest.IdleTimeout(10*time.Millisecond)) // a tick finds what was dropped
		g := locktest.Lock(b, mu)
		f := mu.Acquire(context.Background())
		b.WaitNodes(2)
		runtime.KeepAlive(f)
		locktest.CollectUntil(b, func() bool { return len(b.LockNodes()) == 1 }, "the node of the dropped request is deleted")
		if len(log.With("dropped")) != 1 {
			b.Errorf("log: %v", log.With())
		}
		locktest.Unlock(b, g)
		mu.Acquire(context.Background()) // is granted
		locktest.CollectUntil(b, func() bool { return len(log.With("dropped")) == 2 }, "the log has the dropped grant")
		b.WaitNodes(0)
		locktest.Unlock(b, locktest.Lock(b, mu))
	})
}

// A future that a goroutine waits for does not count as dropped.
func TestWaitedForIsNotDropped(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]func(*actors.Mutex) (*actors.Grant, error){
		"Lock": func(mu *actors.Mutex) (*actors.Grant, error) { return mu.Lock(context.Background()) },
		"Wait": func(mu *actors.Mutex) (*actors.Grant, error) {
			return mu.Acquire(context.Background()).Wait(context.Background())
		},
		"Result": func(mu *actors.Mutex) (*actors.Grant, error) { return mu.Acquire(context.Background()).Result() },
	} {
		t.Run(name, func(t *testing.T) {
			locktest.OnEmbedded(t, func(b *locktest.Fixture) {
				mu := b.Mutex()
				g := locktest.Lock(b, mu)
				errs := make(chan error)
				go func() {
					g, err := wait(mu)
					if err == nil {
						g.Release()
					}
					errs <- err
				}()
				b.WaitNodes(2)
				for range 20 {
					runtime.GC()
					runtime.Gosched()
				}
				locktest.Unlock(b, g)
				if err := <-errs; err != nil {
					b.Errorf("while a goroutine waited for it: %v", err)
				}
			})
		})
	}
}

func TestDroppedGrant(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		for name, drop := range map[string]func(*actors.Grant){
			"as it is":      func(*actors.Grant) {},
			"after Done":    func(g *actors.Grant) { g.Done() },
			"after Context": func(g *actors.Grant) { g.Context(context.Background()) },
		} {
			b.Run(name, func(t *testing.T) {
				var log locktest.Log
				locks := locktest.Connect(t, b.Addr(), log.Config, locktest.IdleTimeout(10*time.Millisecond))
				drop(locktest.Lock(t, locks.Mutex(b.LockPath)))
				locktest.CollectUntil(t, func() bool { return len(log.With("dropped without Release")) > 0 }, "the log has the dropped grant")
				locktest.Must(t, locks.Close())
			})
		}
	})
}

// A grant whose context is in use does not count as dropped.
func TestGrantInContext(t *testing.T) {
	locktest.OnEmbedded(t, func(b *locktest.Fixture) {
		var log locktest.Log
		locks := b.Locks(log.Config)
		ctx := locktest.Lock(b, locks.Mutex(b.LockPath)).Context(b.Context())
		for range 20 {
			runtime.GC()
			runtime.Gosched()
		}
		if lines := log.With("dropped"); len(lines) != 0 || ctx.Err() != nil {
			b.Errorf("%v; %v", lines, ctx.Err())
		}
		locktest.Must(b, locks.Close())
		locktest.Closes(b, ctx.Done(), "the context")
		locktest.Is(b, context.Cause(ctx), actors.ErrClosed)
	})
}

// Cancel completes the future without an answer from ZooKeeper.
func TestCancelWithoutAnswer(t *testing.T) {
	t.Parallel()
	locktest.OnEmbedded(t, func(b *locktest.Fixture) {
		mu := b.Mutex()
		locktest.Unlock(b, locktest.Lock(b, mu))
		b.Embedded().Inject(embedded.Fault{Op: embedded.OpMulti, Action: embedded.DelayReply, Delay: 300 * time.Millisecond})
		f := mu.Acquire(locktest.Within(b))
		b.WaitNodes(1)
		f.Cancel()
		if !locktest.IsClosed(f.Done()) {
			b.Error("Cancel waits for ZooKeeper")
		}
		locktest.Is(b, locktest.Failure(b, f), actors.ErrCancelled)
		b.WaitNodes(0)
	})
}
