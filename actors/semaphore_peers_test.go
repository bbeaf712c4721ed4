package actors_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Clients of Curator and of this library hold one semaphore in turn.
func TestSemaphoreWithCurator(t *testing.T) {
	each(t, func(b *testLock) {
		const max = 3
		ours := []*actors.Semaphore{b.semaphore(max), b.semaphore(max)}
		var inside, most atomic.Int64
		enter := func(n int64) {
			now := inside.Add(n)
			if now > max {
				b.Errorf("%d of %d permits are held", now, max)
			}
			for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
			}
		}
		var wg sync.WaitGroup
		for range 3 {
			theirs := b.curatorSemaphore(max)
			wg.Go(func() {
				for range 15 {
					leases, err := theirs.acquire(within(b), 1)
					if err != nil {
						b.Error("Curator: ", err)
						return
					}
					enter(1)
					inside.Add(-1)
					theirs.release(leases...)
				}
			})
		}
		for i := range 6 {
			wg.Go(func() {
				n := int64(1 + i%max)
				for range 15 {
					g, err := ours[i%2].Lock(within(b), actors.Permits(int(n)))
					if err != nil {
						b.Error(err)
						return
					}
					enter(n)
					inside.Add(-n)
					g.Release()
				}
			})
		}
		wg.Wait()
		b.Logf("%d of %d permits were held at most", most.Load(), max)
		b.waitSemaphore(0, 0)
	})
}

// Each process waits for the other, and holds when permits are free.
func TestSemaphoreTurnsWithCurator(t *testing.T) {
	each(t, func(b *testLock) {
		s, theirs := b.semaphore(2), b.curatorSemaphore(2)
		first, err := theirs.acquire(within(b), 1)
		must(b, err)
		g := lock(b, s)
		f := s.Acquire(within(b)) // first in the queue, waits for a permit
		b.waitSemaphore(1, 3)
		acquired := make(chan []string)
		go func() {
			leases, err := theirs.acquire(within(b), 1)
			if err != nil {
				b.Error(err)
			}
			acquired <- leases
		}()
		b.waitSemaphore(2, 3)
		h := s.Acquire(within(b)) // behind the other
		b.waitSemaphore(3, 3)
		theirs.release(first...)
		k := result(b, f)
		b.waitSemaphore(2, 3) // now the other process waits for a permit
		pending(b, h)
		unlock(b, g)
		second := <-acquired
		b.waitSemaphore(1, 3)
		pending(b, h)
		unlock(b, k)
		g = result(b, h)
		theirs.release(second...)
		unlock(b, g)
	})
}

// Curator acquires several leases one by one: two clients that request three of four block each
// other until one ends its request.
func TestSemaphoreAcquireOfSeveralIsAtomic(t *testing.T) {
	each(t, func(b *testLock) {
		var both, done sync.WaitGroup
		both.Add(2)
		ctx, cancel := context.WithCancel(b.Context())
		defer cancel()
		done.Go(func() {
			both.Wait()
			<-time.After(2 * shortWait)
			cancel()
		})
		var failed atomic.Int32
		for range 2 {
			c := b.curatorSemaphore(4)
			c.onLease = func(leases int) {
				if leases == 2 {
					both.Done()
					both.Wait()
				}
			}
			done.Go(func() {
				leases, err := c.acquire(ctx, 3)
				if err != nil {
					failed.Add(1)
				}
				c.release(leases...)
			})
		}
		done.Wait()
		if failed.Load() == 0 || ctx.Err() == nil {
			b.Fatal("the model does not show the defect")
		}
		b.waitSemaphore(0, 0)

		ours := []*actors.Semaphore{b.semaphore(4), b.semaphore(4)}
		var inside atomic.Int32
		for i := range 6 { // three each of two processes: within one, and between them
			done.Go(func() {
				for range 15 {
					g, err := ours[i%2].Lock(within(b), actors.Permits(3))
					if err != nil {
						b.Errorf("three of four: %v", err)
						return
					}
					if n := inside.Add(1); n > 1 {
						b.Errorf("%d hold three of four", n)
					}
					inside.Add(-1)
					g.Release()
				}
			})
		}
		done.Wait()
	})
}

// A waiter of Curator's first semaphore watches one holder, and does not wake when another one
// leaves.
func TestSemaphoreWakesForAnyHolder(t *testing.T) {
	each(t, func(b *testLock) {
		const max = 2
		c := b.curatorSemaphore(max)
		nodes := []string{}
		for range 3 {
			nodes = append(nodes, c.create("/leases", "-lease-"))
		}
		index := func() int {
			names := b.leases()
			slices.SortFunc(names, bySequence)
			return slices.Index(names, nodes[2][len(b.path+"/leases/"):])
		}
		if index() != max {
			b.Fatalf("the model's index is %d", index())
		}
		_, _, wake, err := c.conn.GetW(nodes[index()-max])
		must(b, err)
		c.release(nodes[1])
		select {
		case <-wake:
			b.Fatal("the model does not show the defect")
		case <-time.After(shortWait):
		}
		if index() >= max {
			b.Fatal("the model's waiter may not hold")
		}
		c.release(nodes[0], nodes[2])

		for _, leaves := range []int{0, 1} {
			holders := []string{c.create("/leases", "-lease-"), c.create("/leases", "-lease-")}
			f := b.semaphore(max).Acquire(within(b))
			b.waitSemaphore(1, 3)
			pending(b, f)
			c.release(holders[leaves])
			unlock(b, result(b, f))
			c.release(holders[1-leaves])
		}
	})
}

// A child of the leases with any name takes a permit, as it does for Curator.
func TestSemaphoreForeignNodes(t *testing.T) {
	each(t, func(b *testLock) {
		conn := b.Client(b)
		var log logs
		s, other := b.semaphore(2, log.config), b.semaphore(2)
		first := lock(b, s) // which makes the directories
		foreign := func(name string) string {
			node, err := conn.Create(b.path+"/leases/"+name, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
			must(b, err)
			return node
		}
		one := foreign("zz")
		_, err := s.Lock(within(b), actors.Try())
		is(b, err, actors.ErrNotAcquired)
		_, err = other.Lock(within(b), actors.Try())
		is(b, err, actors.ErrNotAcquired)
		if n, err := other.Remaining(within(b)); n != 0 || err != nil {
			b.Errorf("%d remain, %v", n, err)
		}
		f := other.Acquire(within(b), actors.Permits(2))
		b.waitSemaphore(1, 4)
		unlock(b, first)
		b.waitSemaphore(1, 3)
		pending(b, f)
		must(b, conn.Delete(one, -1))
		g := result(b, f)
		// A foreign node that comes later is behind the present holders and waiters, and ahead of
		// the next request.
		f = s.Acquire(within(b))
		b.waitSemaphore(1, 3)
		two := foreign("0-foreign")
		unlock(b, g)
		g = result(b, f)
		f = other.Acquire(within(b))
		b.waitSemaphore(1, 3)
		pending(b, f)
		must(b, conn.Delete(two, -1))
		unlock(b, result(b, f))
		unlock(b, g)
		if n := len(log.with("name=zz")); n != 1 {
			b.Errorf("the log has the name %d times", n)
		}
	})
}

// A waiting node of ours never gives a client of Curator more permits than there are. A try of such
// a client fails only while another contender holds or waits.
func TestSemaphoreLeavesRoomForCurator(t *testing.T) {
	each(t, func(b *testLock) {
		s, theirs := b.semaphore(3), b.curatorSemaphore(3)
		g := lock(b, s, actors.Permits(2))
		b.waitSemaphore(0, 2) // the request queue is empty
		lease, err := theirs.acquire(within(b), 1)
		must(b, err)
		ctx, cancel := context.WithTimeout(b.Context(), shortWait)
		defer cancel()
		if _, err := theirs.acquire(ctx, 1); err == nil {
			b.Error("a fourth permit of three was acquired")
		}
		b.waitSemaphore(0, 3)
		f := s.Acquire(within(b))
		b.waitSemaphore(1, 4)
		f.Cancel()
		b.waitSemaphore(0, 3)
		theirs.release(lease...)
		zktest.Eventually(b, timeLimit, func() bool { n, err := s.Remaining(within(b)); return err == nil && n == 1 }, "one permit remains")
		unlock(b, g)
	})
}
