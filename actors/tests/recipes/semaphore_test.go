package recipes

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// ---- the tests of Curator's semaphore, by their names

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

// Curator's testThreads, testMaxPerSession and testReleaseInChunks, and its mutex of one permit.
func TestSemaphoreThreads(t *testing.T) {
	one, upToFour, upToFive := func() int { return 1 }, func() int { return 1 + rand.IntN(4) }, func() int { return 1 + rand.IntN(5) }
	locktest.Each(t, func(b *locktest.Fixture) {
		contendForPermits(b, 1, 12, 15, one)
		contendForPermits(b, 4, 10, 10, one)
		contendForPermits(b, 5, 10, 20, upToFive)
		contendForPermits(b, 11, 100, 3, upToFour)
	})
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
