package costs

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// An acquire takes one request, and its release another. The first acquire also reads the names in the
// directory, and the second the directory itself, which sets a watch on it.
func TestOneRoundTrip(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		conn := b.Client(b)
		_, err := conn.Create(b.LockPath, nil, 0, zk.WorldACL(zk.PermAll)) // ZooKeeper may remove a container at any time
		locktest.Must(b, err)
		defer conn.Delete(b.LockPath, -1)
		d := &locktest.Network{}
		mu := b.Mutex(d.Config)
		_, ops := d.During(func() { locktest.Unlock(b, locktest.Lock(b, mu)) })
		if ops[embedded.OpGetChildren2] != 1 {
			b.Errorf("the first acquire takes %v", ops)
		}
		since := time.Now()
		_, ops = d.During(func() { locktest.Unlock(b, locktest.Lock(b, mu)) })
		if n := locktest.WithoutTickReads(ops, since, 1); n > 3 || ops[embedded.OpGetChildren2] > 0 {
			b.Errorf("the second acquire and its release take %d requests: %v", n, ops)
		}
		for range 3 {
			since := time.Now()
			var g *actors.Grant
			if n, ops := d.During(func() { g = locktest.Lock(b, mu) }); n != 1 {
				b.Errorf("acquire takes %d requests: %v", n, ops)
			}
			_, ops := d.During(func() { locktest.Unlock(b, g) })
			if n := locktest.WithoutTickReads(ops, since, 1); n != 1 || ops[embedded.OpDelete] != 1 {
				b.Errorf("release takes %d requests: %v", n, ops)
			}
		}
	})
}

func TestReentryNeedsNoRequest(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		d := &locktest.Network{}
		mu, me := b.Mutex(d.Config), actors.WithOwner("me")
		since := time.Now()
		g := locktest.Lock(b, mu, me)
		if _, ops := d.During(func() {
			locktest.Unlock(b, locktest.Lock(b, mu, me))
			_, err := mu.Lock(locktest.Within(b), actors.Try())
			locktest.Is(b, err, actors.ErrNotAcquired)
		}); locktest.WithoutTickReads(ops, since, 1) > 0 {
			b.Errorf("requests: %v", ops)
		}
		locktest.Unlock(b, g)
	})
}

// A request that the actor of an idle lock can grant at once is granted when Acquire returns.
func TestAcquireOfAnIdleLock(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		mu := v.Mutex()
		me := actors.WithOwner("me")
		g := locktest.Lock(v, mu, me)
		for range 100 {
			synctest.Wait()
			again := mu.Acquire(v.Context(), me)
			select {
			case <-again.Done():
			default:
				v.Fatal("the request is not done when Acquire returns")
			}
			locktest.Unlock(v, locktest.Result(v, again))
		}
		locktest.Unlock(v, g)
	})
}

// A waiter of the same process is granted before ZooKeeper has answered the release.
func TestHandOffWithoutAnswer(t *testing.T) {
	locktest.OnEmbedded(t, func(b *locktest.Fixture) {
		mu := b.Mutex()
		g := locktest.Lock(b, mu)
		var fs []*actors.Future[*actors.Grant]
		for i := range 10 {
			fs = append(fs, mu.Acquire(locktest.Within(b)))
			b.WaitNodes(i + 2)
		}
		// When a try behind the last request is refused, the process knows that this one waits.
		_, err := mu.Lock(locktest.Within(b), actors.Try())
		locktest.Is(b, err, actors.ErrNotAcquired)
		b.Embedded().Pause()
		last := g
		released := []*actors.Future[struct{}]{g.Release()}
		for _, f := range fs {
			g := locktest.Result(b, f)
			locktest.ExpectIncreasing(b, last.Token(), g.Token())
			released, last = append(released, g.Release()), g
		}
		for _, f := range released {
			if locktest.IsClosed(f.Done()) {
				b.Error("a release is confirmed by a server that does not answer")
			}
		}
		b.Embedded().Resume()
		for _, f := range released {
			locktest.Result(b, f)
		}
	})
}

// Waiters of one process share one list and one watch.
func TestWaitersShare(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		d := &locktest.Network{}
		holder, mu := b.Mutex(), b.Mutex(d.Config)
		locktest.Unlock(b, locktest.Lock(b, mu))
		g := locktest.Lock(b, holder)
		var fs []*actors.Future[*actors.Grant]
		const n = 100
		total, ops := d.During(func() {
			for range n {
				fs = append(fs, mu.Acquire(locktest.Within(b)))
			}
			b.WaitNodes(n + 1)
			zktest.Eventually(b, zktest.TimeLimit, func() bool { return b.LockWatches() > 0 }, "the process watches")
		})
		b.Logf("%d requests for %d waiters: %v", total, n, ops)
		if reads := ops[embedded.OpGetChildren2] + ops[embedded.OpGetData] + ops[embedded.OpSetWatches] + ops[embedded.OpExists] + ops[embedded.OpGetChildren]; reads > 6 {
			b.Errorf("%d reads: %v", reads, ops)
		}
		if w := b.LockWatches(); w > 2 {
			b.Errorf("%d watches", w)
		}
		// The hand-offs need at most one request for each delete.
		total, ops = d.During(func() {
			locktest.Unlock(b, g)
			var wg sync.WaitGroup
			for _, f := range fs {
				wg.Go(func() {
					if g, err := f.Result(); err != nil {
						b.Error(err)
					} else {
						g.Release()
					}
				})
			}
			wg.Wait()
			b.WaitNodes(0)
		})
		b.Logf("%d requests to pass the lock on %d times: %v", total, n, ops)
		if reads := ops[embedded.OpGetChildren2] + ops[embedded.OpGetData] + ops[embedded.OpSetWatches]; reads > 4 {
			b.Errorf("%d reads: %v", reads, ops)
		}
	})
}

// With several processes ahead, the departure of the last but one has the waiter list the
// directory, while the last one holds. So the waiter holds without a request once its process
// notices the last departure.
func TestHandOffAmongMany(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		if !b.Knows(26, 1) {
			b.Skip("the server knows no setWatches")
		}
		d := &locktest.Network{}
		first, second, third, last := b.Mutex(), b.Mutex(), b.Mutex(), b.Mutex(d.Config)
		sent := func(op embedded.Op) int { return count(d.Requests(), op) }
		locktest.Unlock(b, locktest.Lock(b, last))
		b.WaitNodes(0)
		// At first the process of last reads what it watches. Then it has read nodes of the others,
		// and a message that sets all watches suffices.
		for _, op := range []embedded.Op{embedded.OpMultiRead, embedded.OpSetWatches} {
			g := locktest.Lock(b, first)
			var waiting []*actors.Future[*actors.Grant]
			for i, mu := range []*actors.Mutex{second, third, last} {
				d.TakeRequests()
				waiting = append(waiting, mu.Acquire(locktest.Within(b)))
				b.WaitNodes(2 + i)
			}
			zktest.Eventually(b, zktest.TimeLimit, func() bool { return sent(op) > 0 }, "the waiter watches by %v", op)
			zktest.Eventually(b, zktest.TimeLimit, func() bool { return b.LockWatches() >= 8 }, "all waiters watch")
			if n := sent(embedded.OpMultiRead) + sent(embedded.OpGetData); op == embedded.OpSetWatches && n > 0 {
				b.Errorf("%d messages read nodes that are readable", n)
			}
			locktest.Unlock(b, g) // the waiter does not notice that
			g = locktest.Result(b, waiting[0])
			d.TakeRequests()
			locktest.Unlock(b, g)
			g = locktest.Result(b, waiting[1])
			zktest.Eventually(b, zktest.TimeLimit, func() bool { return sent(embedded.OpGetChildren2) == 1 }, "the waiter lists the directory")
			n, ops := d.During(func() {
				locktest.Unlock(b, g)
				g = locktest.Result(b, waiting[2])
			})
			if n != 0 {
				b.Errorf("the hand-off needs %d requests: %v", n, ops)
			}
			locktest.Unlock(b, g)
			b.WaitNodes(0)
		}
	})
}

// The first waiter holds as soon as its process notices the deletion of the node ahead, without a
// request.
func TestHandOffWithoutARequest(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		d := &locktest.Network{}
		holder, mu := b.Mutex(), b.Mutex(d.Config)
		g := locktest.Lock(b, holder)
		f := mu.Acquire(locktest.Within(b))
		b.WaitNodes(2)
		zktest.Eventually(b, zktest.TimeLimit, func() bool { return b.LockWatches() >= 2 }, "the waiter watches")
		n, ops := d.During(func() {
			locktest.Unlock(b, g)
			locktest.Result(b, f)
		})
		if n != 0 {
			b.Errorf("the hand-off needs %d requests: %v", n, ops)
		}
		h, err := f.Result()
		locktest.Must(b, err)
		locktest.Unlock(b, h)
	})
}

func count(ops []embedded.Op, of embedded.Op) (n int) {
	for _, op := range ops {
		if op == of {
			n++
		}
	}
	return n
}
