package actors_test

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
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// ---- the tests of Curator's semaphore, by their names

func TestSemaphoreSimple(t *testing.T) {
	each(t, func(b *testLock) {
		s := b.semaphore(1)
		g := lock(b, s)
		_, err := s.Lock(within(b), actors.WithTimeout(50*time.Millisecond))
		is(b, err, actors.ErrTimedOut)
		b.waitSemaphore(0, 1)
		unlock(b, g)
	})
}

func TestSemaphoreSimple2(t *testing.T) {
	each(t, func(b *testLock) {
		s, other := b.semaphore(3), b.semaphore(3)
		var grants []*actors.Grant
		for i := range 3 {
			g := lock(b, []*actors.Semaphore{s, other}[i%2])
			grants = append(grants, g)
			if !strings.HasPrefix(g.Node(), b.path+"/leases/_c_") || !strings.Contains(g.Node(), "-lease-") || !slices.Equal(g.Nodes(), []string{g.Node()}) {
				b.Errorf("node %s, nodes %v", g.Node(), g.Nodes())
			}
		}
		for _, s := range []*actors.Semaphore{s, other} {
			_, err := s.Lock(within(b), actors.WithTimeout(50*time.Millisecond))
			is(b, err, actors.ErrTimedOut)
			_, err = s.Lock(within(b), actors.Try())
			is(b, err, actors.ErrNotAcquired)
		}
		unlock(b, grants[0])
		unlock(b, lock(b, s))
		unlock(b, grants[1])
		unlock(b, grants[2])
	})
}

func TestSemaphoreThreads(t *testing.T) {
	each(t, func(b *testLock) { contendForPermits(b, 4, 10, 10, func() int { return 1 }) })
}

func TestSemaphoreMaxPerSession(t *testing.T) {
	each(t, func(b *testLock) { contendForPermits(b, 5, 10, 20, func() int { return 1 + rand.IntN(5) }) })
}

func TestSemaphoreReleaseInChunks(t *testing.T) {
	each(t, func(b *testLock) { contendForPermits(b, 11, 100, 3, func() int { return 1 + rand.IntN(4) }) })
}

// contendForPermits has many goroutines on three connections acquire and release permits. The
// ledger checks them.
func contendForPermits(b *testLock, max, goroutines, rounds int, want func() int) {
	ss := []*actors.Semaphore{b.semaphore(max), b.semaphore(max), b.semaphore(max)}
	l := newLedger(b)
	b.turns(goroutines, rounds, func(i int) turn {
		n := want()
		return turn{lock: ss[i%len(ss)], options: []actors.Option{actors.Permits(n)}, inside: func(g *actors.Grant) {
			l.enter("", g, share{b.path, max, n, true})
			if len(g.Nodes()) != n {
				b.Errorf("nodes %v for %d permits", g.Nodes(), n)
			}
			<-time.After(time.Millisecond) // in which others hold
			l.leave(g)
		}}
	})
	b.waitSemaphore(0, 0)
}

func TestSemaphoreRelease1AtATime(t *testing.T) {
	each(t, func(b *testLock) {
		const max = 10
		ss := []*actors.Semaphore{b.semaphore(max), b.semaphore(max)}
		var inside atomic.Int64
		full := make(chan struct{})
		var wg sync.WaitGroup
		for i := range max {
			wg.Go(func() {
				g, err := ss[i%2].Lock(within(b))
				if err != nil {
					b.Error(err)
					return
				}
				if inside.Add(1) == max {
					close(full)
				}
				closes(b, full, "the wait for all permits to be held")
				g.Release()
			})
		}
		wg.Wait()
	})
}

// The closing client's permits are free at once.
func TestSemaphoreClientClose(t *testing.T) {
	each(t, func(b *testLock) {
		one, s := b.locks(), b.semaphore(1)
		g := lock(b, one.Semaphore(b.path, 1))
		f := s.Acquire(within(b))
		b.waitSemaphore(1, 2)
		must(b, one.Close())
		is(b, g.Err(), actors.ErrClosed)
		unlock(b, result(b, f))
	})
}

func TestSemaphoreGetParticipantNodes(t *testing.T) {
	each(t, func(b *testLock) {
		s := b.semaphore(10)
		var grants []*actors.Grant
		var nodes []string
		for i := range 5 {
			if n, err := s.Remaining(within(b)); err != nil || n != 10-i {
				b.Errorf("%d remain of 10 less %d, %v", n, i, err)
			}
			g := lock(b, s, actors.WithData([]byte(fmt.Sprint("holder ", i))))
			data, stat, err := b.Client(b).Get(g.Node())
			if err != nil || string(data) != fmt.Sprint("holder ", i) || stat.Czxid != g.Token().Czxid || stat.EphemeralOwner != g.Session() {
				b.Errorf("%q, %+v, %v", data, stat, err)
			}
			grants, nodes = append(grants, g), append(nodes, strings.TrimPrefix(g.Node(), b.path+"/leases/"))
		}
		slices.Sort(nodes)
		if got := b.leases(); !slices.Equal(got, nodes) {
			b.Errorf("leases %v, want %v", got, nodes)
		}
		for _, g := range grants {
			unlock(b, g)
		}
	})
}

// Another client deletes a node of a waiter.
func TestSemaphoreNoOrphanedNodes(t *testing.T) {
	each(t, func(b *testLock) {
		s, other, conn := b.semaphore(1), b.semaphore(1), b.Client(b)
		g := lock(b, s)
		held := b.leases()
		for _, directory := range []string{"/leases/", "/locks/"} {
			f := other.Acquire(within(b))
			b.waitSemaphore(1, 2)
			waiting := b.queue()
			if directory == "/leases/" {
				waiting = slices.DeleteFunc(b.leases(), func(name string) bool { return name == held[0] })
			}
			must(b, conn.Delete(b.path+directory+waiting[0], -1))
			zktest.Eventually(b, timeLimit, func() bool {
				return !slices.Contains(append(b.leases(), b.queue()...), waiting[0]) && len(b.leases()) == 2 && len(b.queue()) == 1
			}, "the request waits again")
			pending(b, f)
			unlock(b, g)
			g = result(b, f)
			b.waitSemaphore(0, 1)
			held = b.leases()
			s, other = other, s
		}
		unlock(b, g)
	})
}

// A cancelled waiter leaves no lease, at whichever stage.
func TestSemaphoreInterruptAcquire(t *testing.T) {
	each(t, func(b *testLock) {
		s, other := b.semaphore(1), b.semaphore(1)
		g := lock(b, s)
		for _, waiting := range []int{0, 1, 3} {
			ctx, cancel := context.WithCancel(b.Context())
			var fs []*actors.Future[*actors.Grant]
			for range waiting {
				fs = append(fs, other.Acquire(ctx))
			}
			b.waitSemaphore(waiting, 1+waiting)
			cancel()
			late := other.Acquire(within(b))
			late.Cancel()
			for _, f := range fs {
				is(b, failure(b, f), context.Canceled)
			}
			b.waitSemaphore(0, 1)
		}
		unlock(b, g)
		unlock(b, lock(b, other))
	})
}

// The server is stopped while ten requests wait.
func TestSemaphoreAcquireAfterLostServer(t *testing.T) {
	t.Parallel()
	b := lockOn(t, zktest.Own(t))
	one, two := b.locks(), b.locks()
	g := lock(b, one.Semaphore(b.path, 1))
	var fs []*actors.Future[*actors.Grant]
	for i := range 10 {
		fs = append(fs, []*actors.Locks{one, two}[i%2].Semaphore(b.path, 1).Acquire(context.Background()))
	}
	b.Stop(t)
	waitState(b, one, messages.SessionState_SUSPENDED)
	waitState(b, two, messages.SessionState_SUSPENDED)
	release := g.Release()
	fs = append(fs, one.Semaphore(b.path, 1).Acquire(context.Background()))
	b.Start(t)
	result(b, release)
	l := newLedger(b)
	var wg sync.WaitGroup
	for _, f := range fs {
		wg.Go(func() {
			g, err := f.Wait(within(b))
			if err != nil {
				b.Error(err)
				return
			}
			l.enter("", g, share{b.path, 1, 1, true})
			l.leave(g)
			g.Release()
		})
	}
	wg.Wait()
	b.waitSemaphore(0, 0)
}
