package recipes

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// ---- the tests of Curator's semaphore, by their names

func TestSemaphoreSimple(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		s := b.Semaphore(1)
		g := locktest.Lock(b, s)
		_, err := s.Lock(locktest.Within(b), actors.WithTimeout(50*time.Millisecond))
		locktest.Is(b, err, actors.ErrTimedOut)
		b.WaitSemaphore(0, 1)
		locktest.Unlock(b, g)
	})
}

func TestSemaphoreSimple2(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		s, other := b.Semaphore(3), b.Semaphore(3)
		var grants []*actors.Grant
		for i := range 3 {
			g := locktest.Lock(b, []*actors.Semaphore{s, other}[i%2])
			grants = append(grants, g)
			if !strings.HasPrefix(g.Node(), b.LockPath+"/leases/_c_") || !strings.Contains(g.Node(), "-lease-") || !slices.Equal(g.Nodes(), []string{g.Node()}) {
				b.Errorf("node %s, nodes %v", g.Node(), g.Nodes())
			}
		}
		for _, s := range []*actors.Semaphore{s, other} {
			_, err := s.Lock(locktest.Within(b), actors.WithTimeout(50*time.Millisecond))
			locktest.Is(b, err, actors.ErrTimedOut)
			_, err = s.Lock(locktest.Within(b), actors.Try())
			locktest.Is(b, err, actors.ErrNotAcquired)
		}
		locktest.Unlock(b, grants[0])
		locktest.Unlock(b, locktest.Lock(b, s))
		locktest.Unlock(b, grants[1])
		locktest.Unlock(b, grants[2])
	})
}

func TestSemaphoreThreads(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) { contendForPermits(b, 4, 10, 10, func() int { return 1 }) })
}

func TestSemaphoreMaxPerSession(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) { contendForPermits(b, 5, 10, 20, func() int { return 1 + rand.IntN(5) }) })
}

func TestSemaphoreReleaseInChunks(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) { contendForPermits(b, 11, 100, 3, func() int { return 1 + rand.IntN(4) }) })
}

// contendForPermits has many goroutines on three connections acquire and release permits. The
// ledger checks them.
func contendForPermits(b *locktest.Fixture, max, goroutines, rounds int, want func() int) {
	ss := []*actors.Semaphore{b.Semaphore(max), b.Semaphore(max), b.Semaphore(max)}
	l := locktest.NewLedger(b)
	b.Turns(goroutines, rounds, func(i int) locktest.Turn {
		n := want()
		return locktest.Turn{Lock: ss[i%len(ss)], Options: []actors.Option{actors.Permits(n)}, Inside: func(g *actors.Grant) {
			l.Enter("", g, locktest.Share{LockPath: b.LockPath, Room: max, Weight: n, Permits: true})
			if len(g.Nodes()) != n {
				b.Errorf("nodes %v for %d permits", g.Nodes(), n)
			}
			<-time.After(time.Millisecond) // in which others hold
			l.Leave(g)
		}}
	})
	b.WaitSemaphore(0, 0)
}

func TestSemaphoreRelease1AtATime(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		const max = 10
		ss := []*actors.Semaphore{b.Semaphore(max), b.Semaphore(max)}
		var inside atomic.Int64
		full := make(chan struct{})
		var wg sync.WaitGroup
		for i := range max {
			wg.Go(func() {
				g, err := ss[i%2].Lock(locktest.Within(b))
				if err != nil {
					b.Error(err)
					return
				}
				if inside.Add(1) == max {
					close(full)
				}
				locktest.Closes(b, full, "the wait for all permits to be held")
				g.Release()
			})
		}
		wg.Wait()
	})
}

// The closing client's permits are free at once.
func TestSemaphoreClientClose(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		one, s := b.Locks(), b.Semaphore(1)
		g := locktest.Lock(b, one.Semaphore(b.LockPath, 1))
		f := s.Acquire(locktest.Within(b))
		b.WaitSemaphore(1, 2)
		locktest.Must(b, one.Close())
		locktest.Is(b, g.Err(), actors.ErrClosed)
		locktest.Unlock(b, locktest.Result(b, f))
	})
}

func TestSemaphoreGetParticipantNodes(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		s := b.Semaphore(10)
		var grants []*actors.Grant
		var nodes []string
		for i := range 5 {
			if n, err := s.Remaining(locktest.Within(b)); err != nil || n != 10-i {
				b.Errorf("%d remain of 10 less %d, %v", n, i, err)
			}
			g := locktest.Lock(b, s, actors.WithData([]byte(fmt.Sprint("holder ", i))))
			data, stat, err := b.Client(b).Get(g.Node())
			if err != nil || string(data) != fmt.Sprint("holder ", i) || stat.Czxid != g.Token().Czxid || stat.EphemeralOwner != g.Session() {
				b.Errorf("%q, %+v, %v", data, stat, err)
			}
			grants, nodes = append(grants, g), append(nodes, strings.TrimPrefix(g.Node(), b.LockPath+"/leases/"))
		}
		slices.Sort(nodes)
		if got := b.Leases(); !slices.Equal(got, nodes) {
			b.Errorf("leases %v, want %v", got, nodes)
		}
		for _, g := range grants {
			locktest.Unlock(b, g)
		}
	})
}

// Another client deletes a node of a waiter.
func TestSemaphoreNoOrphanedNodes(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		s, other, conn := b.Semaphore(1), b.Semaphore(1), b.Client(b)
		g := locktest.Lock(b, s)
		held := b.Leases()
		for _, directory := range []string{"/leases/", "/locks/"} {
			f := other.Acquire(locktest.Within(b))
			b.WaitSemaphore(1, 2)
			waiting := b.Queue()
			if directory == "/leases/" {
				waiting = slices.DeleteFunc(b.Leases(), func(name string) bool { return name == held[0] })
			}
			locktest.Must(b, conn.Delete(b.LockPath+directory+waiting[0], -1))
			zktest.Eventually(b, zktest.TimeLimit, func() bool {
				return !slices.Contains(append(b.Leases(), b.Queue()...), waiting[0]) && len(b.Leases()) == 2 && len(b.Queue()) == 1
			}, "the request waits again")
			locktest.Pending(b, f)
			locktest.Unlock(b, g)
			g = locktest.Result(b, f)
			b.WaitSemaphore(0, 1)
			held = b.Leases()
			s, other = other, s
		}
		locktest.Unlock(b, g)
	})
}

// A cancelled waiter leaves no lease, at whichever stage.
func TestSemaphoreInterruptAcquire(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		s, other := b.Semaphore(1), b.Semaphore(1)
		g := locktest.Lock(b, s)
		for _, waiting := range []int{0, 1, 3} {
			ctx, cancel := context.WithCancel(b.Context())
			var fs []*actors.Future[*actors.Grant]
			for range waiting {
				fs = append(fs, other.Acquire(ctx))
			}
			b.WaitSemaphore(waiting, 1+waiting)
			cancel()
			late := other.Acquire(locktest.Within(b))
			late.Cancel()
			for _, f := range fs {
				locktest.Is(b, locktest.Failure(b, f), context.Canceled)
			}
			b.WaitSemaphore(0, 1)
		}
		locktest.Unlock(b, g)
		locktest.Unlock(b, locktest.Lock(b, other))
	})
}

// The server is stopped while ten requests wait.
func TestSemaphoreAcquireAfterLostServer(t *testing.T) {
	t.Parallel()
	b := locktest.NewFixture(t, zktest.Own(t))
	one, two := b.Locks(), b.Locks()
	g := locktest.Lock(b, one.Semaphore(b.LockPath, 1))
	var fs []*actors.Future[*actors.Grant]
	for i := range 10 {
		fs = append(fs, []*actors.Locks{one, two}[i%2].Semaphore(b.LockPath, 1).Acquire(context.Background()))
	}
	b.Stop(t)
	locktest.WaitState(b, one, messages.SessionState_SUSPENDED)
	locktest.WaitState(b, two, messages.SessionState_SUSPENDED)
	release := g.Release()
	fs = append(fs, one.Semaphore(b.LockPath, 1).Acquire(context.Background()))
	b.Start(t)
	locktest.Result(b, release)
	l := locktest.NewLedger(b)
	var wg sync.WaitGroup
	for _, f := range fs {
		wg.Go(func() {
			g, err := f.Wait(locktest.Within(b))
			if err != nil {
				b.Error(err)
				return
			}
			l.Enter("", g, locktest.Share{LockPath: b.LockPath, Room: 1, Weight: 1, Permits: true})
			l.Leave(g)
			g.Release()
		})
	}
	wg.Wait()
	b.WaitSemaphore(0, 0)
}
