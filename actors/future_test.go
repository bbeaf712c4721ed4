package actors_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

func TestCancelWhileWaiting(t *testing.T) {
	each(t, func(b *testLock) {
		locks := b.locks()
		mu, elsewhere := locks.Mutex(b.path), b.mutex()
		g := lock(b, mu)
		for _, other := range []*actors.Mutex{mu, elsewhere} {
			f := other.Acquire(within(b))
			b.waitNodes(2)
			f.Cancel()
			f.Cancel()
			is(b, failure(b, f), actors.ErrCancelled)
			contains(b, failure(b, f).Error(), b.path+": future was cancelled")
			b.waitNodes(1)
		}
		unlock(b, g)
	})
}

// The request in the middle of the queue is cancelled. The next does not hold while the first
// holds.
func TestCancelInTheMiddle(t *testing.T) {
	each(t, func(b *testLock) {
		first, second, third := b.mutex(), b.mutex(), b.mutex()
		g := lock(b, first)
		middle := second.Acquire(within(b))
		b.waitNodes(2)
		last := third.Acquire(within(b))
		b.waitNodes(3)
		middle.Cancel()
		b.waitNodes(2)
		pending(b, last)
		unlock(b, g)
		unlock(b, result(b, last))
	})
}

func TestCancelBeforeAnything(t *testing.T) {
	each(t, func(b *testLock) {
		mu := b.mutex()
		for range 20 {
			f := mu.Acquire(within(b))
			f.Cancel()
			if g, err := f.Result(); err == nil && g.Err() == nil {
				b.Fatal("granted after Cancel")
			}
		}
		unlock(b, lock(b, mu))
	})
}

// Cancel releases a grant that no call has returned, and the future does not return it afterwards.
func TestCancelGivesBack(t *testing.T) {
	each(t, func(b *testLock) {
		mu := b.mutex()
		f := mu.Acquire(within(b))
		closes(b, f.Done(), "the request")
		b.waitNodes(1)
		f.Cancel()
		b.waitNodes(0)
		if g, err := f.Result(); err == nil {
			b.Errorf("Result returns a grant without an error, which has ended: %v", g.Err())
		} else {
			is(b, err, actors.ErrCancelled)
		}
		unlock(b, lock(b, mu))
	})
}

func TestCancelAfterResult(t *testing.T) {
	each(t, func(b *testLock) {
		f := b.mutex().Acquire(within(b))
		g := result(b, f)
		f.Cancel()
		again, err := f.Result()
		if err != nil || again != g || g.Err() != nil || len(b.nodes()) != 1 {
			b.Errorf("%v, %v; %v; nodes %v", again, err, g.Err(), b.nodes())
		}
		unlock(b, g)
	})
}

// Contexts end at the moment at which the lock is granted. A call that returns a grant without an
// error holds the lock.
func TestContextRacesGrant(t *testing.T) {
	each(t, func(b *testLock) {
		var log logs
		mu := b.mutex(log.config)
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
						if err := g.Unlock(within(b)); err != nil {
							b.Errorf("unlock: %v", err)
						}
					} else {
						is(b, err, context.DeadlineExceeded)
					}
					cancel()
				}
			})
		}
		wg.Wait()
		b.Logf("%d of %d granted", granted, 8*150)
		unlock(b, lock(b, mu))
		// The log does not warn of a grant that was released in time.
		for range 5 {
			runtime.GC()
			runtime.Gosched()
		}
		if lines := log.with("dropped"); len(lines) != 0 {
			b.Errorf("the log has %d dropped grants: %s", len(lines), lines[0])
		}
	})
}

// The context ends when the request is complete, during the call of Result.
func TestContextRacesResult(t *testing.T) {
	onEmbedded(t, func(b *testLock) {
		mu := b.mutex()
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
				unlock(b, g)
			}
		}
		unlock(b, lock(b, mu))
	})
}

func TestCancelRacesGrant(t *testing.T) {
	each(t, func(b *testLock) {
		mu := b.mutex()
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 60 {
					f := mu.Acquire(within(b))
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
		unlock(b, lock(b, mu))
	})
}

// The request of a dropped future leaves the queue, also with a grant that no call has returned.
func TestDroppedFuture(t *testing.T) {
	each(t, func(b *testLock) {
		var log logs
		mu := b.mutex(log.config)
		g := lock(b, mu)
		f := mu.Acquire(context.Background())
		b.waitNodes(2)
		runtime.KeepAlive(f)
		collectUntil(b, func() bool { return len(b.nodes()) == 1 }, "the node of the dropped request is deleted")
		if len(log.with("dropped")) != 1 {
			b.Errorf("log: %v", log.with())
		}
		unlock(b, g)
		mu.Acquire(context.Background()) // is granted
		collectUntil(b, func() bool { return len(log.with("dropped")) == 2 }, "the log has the dropped grant")
		b.waitNodes(0)
		unlock(b, lock(b, mu))
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
			onEmbedded(t, func(b *testLock) {
				mu := b.mutex()
				g := lock(b, mu)
				errs := make(chan error)
				go func() {
					g, err := wait(mu)
					if err == nil {
						g.Release()
					}
					errs <- err
				}()
				b.waitNodes(2)
				for range 20 {
					runtime.GC()
					runtime.Gosched()
				}
				unlock(b, g)
				if err := <-errs; err != nil {
					b.Errorf("while a goroutine waited for it: %v", err)
				}
			})
		})
	}
}

func TestDroppedGrant(t *testing.T) {
	each(t, func(b *testLock) {
		for name, drop := range map[string]func(*actors.Grant){
			"as it is":      func(*actors.Grant) {},
			"after Done":    func(g *actors.Grant) { g.Done() },
			"after Context": func(g *actors.Grant) { g.Context(context.Background()) },
		} {
			b.Run(name, func(t *testing.T) {
				var log logs
				locks := connect(t, b.Addr(), log.config)
				drop(lock(t, locks.Mutex(b.path)))
				begun := time.Now()
				for len(log.with("dropped without Release")) == 0 {
					runtime.GC()
					runtime.Gosched()
					if time.Since(begun) > timeLimit {
						t.Error("the log does not say that the grant was dropped")
						break
					}
				}
				must(t, locks.Close())
			})
		}
	})
}

// A grant whose context is in use does not count as dropped.
func TestGrantInContext(t *testing.T) {
	onEmbedded(t, func(b *testLock) {
		var log logs
		locks := b.locks(log.config)
		ctx := lock(b, locks.Mutex(b.path)).Context(b.Context())
		for range 20 {
			runtime.GC()
			runtime.Gosched()
		}
		if lines := log.with("dropped"); len(lines) != 0 || ctx.Err() != nil {
			b.Errorf("%v; %v", lines, ctx.Err())
		}
		must(b, locks.Close())
		closes(b, ctx.Done(), "the context")
		is(b, context.Cause(ctx), actors.ErrClosed)
	})
}

// Cancel completes the future without an answer from ZooKeeper.
func TestCancelWithoutAnswer(t *testing.T) {
	t.Parallel()
	onEmbedded(t, func(b *testLock) {
		mu := b.mutex()
		unlock(b, lock(b, mu))
		b.Embedded().Inject(embedded.Fault{Op: embedded.OpMulti, Action: embedded.DelayReply, Delay: 300 * time.Millisecond})
		f := mu.Acquire(within(b))
		b.waitNodes(1)
		f.Cancel()
		if !isClosed(f.Done()) {
			b.Error("Cancel waits for ZooKeeper")
		}
		is(b, failure(b, f), actors.ErrCancelled)
		b.waitNodes(0)
	})
}

func TestManyHandlesOneContext(t *testing.T) {
	each(t, func(b *testLock) {
		mu := b.mutex()
		ctx, cancel := context.WithCancelCause(b.Context())
		g := lock(b, mu)
		var fs []*actors.Future[*actors.Grant]
		for range 50 {
			fs = append(fs, mu.Acquire(ctx))
		}
		b.waitNodes(51)
		why := errors.New("over")
		cancel(why)
		for _, f := range fs {
			is(b, failure(b, f), why)
		}
		b.waitNodes(1)
		unlock(b, g)
		zktest.Eventually(b, timeLimit, func() bool { return b.watches() == 0 }, "no watch is left")
	})
}
