package actors_test

import (
	"sync"
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

func TestOneRoundTrip(t *testing.T) {
	each(t, func(b *testLock) {
		conn := b.Client(b)
		_, err := conn.Create(b.path, nil, 0, zk.WorldACL(zk.PermAll)) // ZooKeeper may remove a container at any time
		must(b, err)
		defer conn.Delete(b.path, -1)
		d := &dialer{}
		mu := b.mutex(d.config)
		unlock(b, lock(b, mu)) // which reads the directory
		for range 3 {
			var g *actors.Grant
			if n, ops := d.during(func() { g = lock(b, mu) }); n != 1 {
				b.Errorf("acquire takes %d requests: %v", n, ops)
			}
			if n, ops := d.during(func() { unlock(b, g) }); n != 1 || ops[embedded.OpDelete] != 1 {
				b.Errorf("release takes %d requests: %v", n, ops)
			}
		}
	})
}

func TestReentryNeedsNoRequest(t *testing.T) {
	each(t, func(b *testLock) {
		d := &dialer{}
		mu, me := b.mutex(d.config), actors.WithOwner("me")
		g := lock(b, mu, me)
		if n, ops := d.during(func() {
			unlock(b, lock(b, mu, me))
			_, err := mu.Lock(within(b), actors.Try())
			is(b, err, actors.ErrNotAcquired)
		}); n != 0 {
			b.Errorf("%d requests: %v", n, ops)
		}
		unlock(b, g)
	})
}

// A request that the actor of an idle lock can grant at once is granted when Acquire returns.
func TestAcquireOfAnIdleLock(t *testing.T) {
	t.Parallel()
	bubble(t, func(v *virtual) {
		mu := v.mutex()
		me := actors.WithOwner("me")
		g := lock(v, mu, me)
		for range 100 {
			synctest.Wait()
			again := mu.Acquire(v.Context(), me)
			select {
			case <-again.Done():
			default:
				v.Fatal("the request is not done when Acquire returns")
			}
			unlock(v, result(v, again))
		}
		unlock(v, g)
	})
}

// A waiter of the same process is granted before ZooKeeper has answered the release.
func TestHandOffWithoutAnswer(t *testing.T) {
	onEmbedded(t, func(b *testLock) {
		mu := b.mutex()
		g := lock(b, mu)
		var fs []*actors.Future[*actors.Grant]
		for i := range 10 {
			fs = append(fs, mu.Acquire(within(b)))
			b.waitNodes(i + 2)
		}
		// When a try behind the last request is refused, the process knows that this one waits.
		_, err := mu.Lock(within(b), actors.Try())
		is(b, err, actors.ErrNotAcquired)
		b.Embedded().Pause()
		last := g
		released := []*actors.Future[struct{}]{g.Release()}
		for _, f := range fs {
			g := result(b, f)
			expectIncreasing(b, last.Token(), g.Token())
			released, last = append(released, g.Release()), g
		}
		for _, f := range released {
			if isClosed(f.Done()) {
				b.Error("a release is confirmed by a server that does not answer")
			}
		}
		b.Embedded().Resume()
		for _, f := range released {
			result(b, f)
		}
	})
}

// Waiters of one process share one list and one watch.
func TestWaitersShare(t *testing.T) {
	each(t, func(b *testLock) {
		d := &dialer{}
		holder, mu := b.mutex(), b.mutex(d.config)
		unlock(b, lock(b, mu))
		g := lock(b, holder)
		var fs []*actors.Future[*actors.Grant]
		const n = 100
		total, ops := d.during(func() {
			for range n {
				fs = append(fs, mu.Acquire(within(b)))
			}
			b.waitNodes(n + 1)
			zktest.Eventually(b, timeLimit, func() bool { return b.watches() > 0 }, "the process watches")
		})
		b.Logf("%d requests for %d waiters: %v", total, n, ops)
		if reads := ops[embedded.OpGetChildren2] + ops[embedded.OpGetData] + ops[embedded.OpSetWatches] + ops[embedded.OpExists] + ops[embedded.OpGetChildren]; reads > 6 {
			b.Errorf("%d reads: %v", reads, ops)
		}
		if w := b.watches(); w > 2 {
			b.Errorf("%d watches", w)
		}
		// The hand-offs need at most one request for each delete.
		total, ops = d.during(func() {
			unlock(b, g)
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
			b.waitNodes(0)
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
	each(t, func(b *testLock) {
		d := &dialer{}
		first, second, third, last := b.mutex(), b.mutex(), b.mutex(), b.mutex(d.config)
		sent := func(op embedded.Op) int { return count(d.requests(), op) }
		unlock(b, lock(b, last))
		b.waitNodes(0)
		// At first the process of last reads what it watches. Then it has read nodes of the others,
		// and one message sets all watches.
		for _, op := range []embedded.Op{embedded.OpGetData, embedded.OpSetWatches} {
			g := lock(b, first)
			var waiting []*actors.Future[*actors.Grant]
			for i, mu := range []*actors.Mutex{second, third, last} {
				d.takeRequests()
				waiting = append(waiting, mu.Acquire(within(b)))
				b.waitNodes(2 + i)
			}
			zktest.Eventually(b, timeLimit, func() bool { return sent(op) > 0 }, "the waiter watches by %v", op)
			zktest.Eventually(b, timeLimit, func() bool { return b.watches() >= 8 }, "all waiters watch")
			if n := sent(embedded.OpSetWatches); op == embedded.OpGetData && n > 0 {
				b.Errorf("%d messages set watches on nodes that may not be readable", n)
			}
			unlock(b, g) // the waiter does not notice that
			g = result(b, waiting[0])
			d.takeRequests()
			unlock(b, g)
			g = result(b, waiting[1])
			zktest.Eventually(b, timeLimit, func() bool { return sent(embedded.OpGetChildren2) == 1 }, "the waiter lists the directory")
			n, ops := d.during(func() {
				unlock(b, g)
				g = result(b, waiting[2])
			})
			if n != 0 {
				b.Errorf("the hand-off needs %d requests: %v", n, ops)
			}
			unlock(b, g)
			b.waitNodes(0)
		}
	})
}

// The first waiter holds as soon as its process notices the deletion of the node ahead, without a
// request.
func TestHandOffWithoutARequest(t *testing.T) {
	each(t, func(b *testLock) {
		d := &dialer{}
		holder, mu := b.mutex(), b.mutex(d.config)
		g := lock(b, holder)
		f := mu.Acquire(within(b))
		b.waitNodes(2)
		zktest.Eventually(b, timeLimit, func() bool { return b.watches() >= 2 }, "the waiter watches")
		n, ops := d.during(func() {
			unlock(b, g)
			result(b, f)
		})
		if n != 0 {
			b.Errorf("the hand-off needs %d requests: %v", n, ops)
		}
		h, err := f.Result()
		must(b, err)
		unlock(b, h)
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
