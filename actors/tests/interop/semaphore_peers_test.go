package interop

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Clients of Curator and of this library hold one semaphore in turn.
func TestSemaphoreWithCurator(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		const max = 3
		ours := []*actors.Semaphore{b.Semaphore(max), b.Semaphore(max)}
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
			theirs := b.CuratorSemaphore(max)
			wg.Go(func() {
				for range 15 {
					leases, err := theirs.Acquire(locktest.Within(b), 1)
					if err != nil {
						b.Error("Curator: ", err)
						return
					}
					enter(1)
					inside.Add(-1)
					theirs.Release(leases...)
				}
			})
		}
		for i := range 6 {
			wg.Go(func() {
				n := int64(1 + i%max)
				for range 15 {
					g, err := ours[i%2].Lock(locktest.Within(b), actors.Permits(int(n)))
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
		b.WaitSemaphore(0, 0)
	})
}

// Each process waits for the other, and holds when permits are free.
func TestSemaphoreTurnsWithCurator(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		s, theirs := b.Semaphore(2), b.CuratorSemaphore(2)
		first, err := theirs.Acquire(locktest.Within(b), 1)
		locktest.Must(b, err)
		g := locktest.Lock(b, s)
		f := s.Acquire(locktest.Within(b)) // first in the queue, waits for a permit
		b.WaitSemaphore(1, 3)
		acquired := make(chan []string)
		go func() {
			leases, err := theirs.Acquire(locktest.Within(b), 1)
			if err != nil {
				b.Error(err)
			}
			acquired <- leases
		}()
		b.WaitSemaphore(2, 3)
		h := s.Acquire(locktest.Within(b)) // behind the other
		b.WaitSemaphore(3, 3)
		theirs.Release(first...)
		k := locktest.Result(b, f)
		b.WaitSemaphore(2, 3) // now the other process waits for a permit
		locktest.Pending(b, h)
		locktest.Unlock(b, g)
		second := <-acquired
		b.WaitSemaphore(1, 3)
		locktest.Pending(b, h)
		locktest.Unlock(b, k)
		g = locktest.Result(b, h)
		theirs.Release(second...)
		locktest.Unlock(b, g)
	})
}

// Curator acquires several leases one by one: two clients that request three of four block each
// other until one ends its request.
func TestSemaphoreAcquireOfSeveralIsAtomic(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		var both, done sync.WaitGroup
		both.Add(2)
		ctx, cancel := context.WithCancel(b.Context())
		defer cancel()
		done.Go(func() {
			both.Wait()
			<-time.After(2 * locktest.ShortWait)
			cancel()
		})
		var failed atomic.Int32
		for range 2 {
			c := b.CuratorSemaphore(4)
			c.OnLease = func(leases int) {
				if leases == 2 {
					both.Done()
					both.Wait()
				}
			}
			done.Go(func() {
				leases, err := c.Acquire(ctx, 3)
				if err != nil {
					failed.Add(1)
				}
				c.Release(leases...)
			})
		}
		done.Wait()
		if failed.Load() == 0 || ctx.Err() == nil {
			b.Fatal("the model does not show the defect")
		}
		b.WaitSemaphore(0, 0)

		ours := []*actors.Semaphore{b.Semaphore(4), b.Semaphore(4)}
		var inside atomic.Int32
		for i := range 6 { // three each of two processes: within one, and between them
			done.Go(func() {
				for range 15 {
					g, err := ours[i%2].Lock(locktest.Within(b), actors.Permits(3))
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
	locktest.Each(t, func(b *locktest.Fixture) {
		const max = 2
		c := b.CuratorSemaphore(max)
		nodes := []string{}
		for range 3 {
			nodes = append(nodes, c.Create("/leases", "-lease-"))
		}
		index := func() int {
			names := b.Leases()
			slices.SortFunc(names, locktest.BySequence)
			return slices.Index(names, nodes[2][len(b.LockPath+"/leases/"):])
		}
		if index() != max {
			b.Fatalf("the model's index is %d", index())
		}
		_, _, wake, err := c.Conn.GetW(nodes[index()-max])
		locktest.Must(b, err)
		c.Release(nodes[1])
		select {
		case <-wake:
			b.Fatal("the model does not show the defect")
		case <-time.After(locktest.ShortWait):
		}
		if index() >= max {
			b.Fatal("the model's waiter may not hold")
		}
		c.Release(nodes[0], nodes[2])

		for _, leaves := range []int{0, 1} {
			holders := []string{c.Create("/leases", "-lease-"), c.Create("/leases", "-lease-")}
			f := b.Semaphore(max).Acquire(locktest.Within(b))
			b.WaitSemaphore(1, 3)
			locktest.Pending(b, f)
			c.Release(holders[leaves])
			locktest.Unlock(b, locktest.Result(b, f))
			c.Release(holders[1-leaves])
		}
	})
}

// A child of the leases with any name takes a permit, as it does for Curator.
func TestSemaphoreForeignNodes(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		conn := b.Client(b)
		var log locktest.Log
		s, other := b.Semaphore(2, log.Config), b.Semaphore(2)
		first := locktest.Lock(b, s) // which makes the directories
		foreign := func(name string) string {
			node, err := conn.Create(b.LockPath+"/leases/"+name, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
			locktest.Must(b, err)
			return node
		}
		one := foreign("zz")
		_, err := s.Lock(locktest.Within(b), actors.Try())
		locktest.Is(b, err, actors.ErrNotAcquired)
		_, err = other.Lock(locktest.Within(b), actors.Try())
		locktest.Is(b, err, actors.ErrNotAcquired)
		if n, err := other.Remaining(locktest.Within(b)); n != 0 || err != nil {
			b.Errorf("%d remain, %v", n, err)
		}
		f := other.Acquire(locktest.Within(b), actors.Permits(2))
		b.WaitSemaphore(1, 4)
		locktest.Unlock(b, first)
		b.WaitSemaphore(1, 3)
		locktest.Pending(b, f)
		locktest.Must(b, conn.Delete(one, -1))
		g := locktest.Result(b, f)
		// A foreign node that comes later is behind the present holders and waiters, and ahead of
		// the next request.
		f = s.Acquire(locktest.Within(b))
		b.WaitSemaphore(1, 3)
		two := foreign("0-foreign")
		locktest.Unlock(b, g)
		g = locktest.Result(b, f)
		f = other.Acquire(locktest.Within(b))
		b.WaitSemaphore(1, 3)
		locktest.Pending(b, f)
		locktest.Must(b, conn.Delete(two, -1))
		locktest.Unlock(b, locktest.Result(b, f))
		locktest.Unlock(b, g)
		if n := len(log.With("name=zz")); n != 1 {
			b.Errorf("the log has the name %d times", n)
		}
	})
}

// A waiting node of ours never gives a client of Curator more permits than there are. A try of such
// a client fails only while another contender holds or waits.
func TestSemaphoreLeavesRoomForCurator(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		s, theirs := b.Semaphore(3), b.CuratorSemaphore(3)
		g := locktest.Lock(b, s, actors.Permits(2))
		b.WaitSemaphore(0, 2) // the request queue is empty
		lease, err := theirs.Acquire(locktest.Within(b), 1)
		locktest.Must(b, err)
		ctx, cancel := context.WithTimeout(b.Context(), locktest.ShortWait)
		defer cancel()
		if _, err := theirs.Acquire(ctx, 1); err == nil {
			b.Error("a fourth permit of three was acquired")
		}
		b.WaitSemaphore(0, 3)
		f := s.Acquire(locktest.Within(b))
		b.WaitSemaphore(1, 4)
		f.Cancel()
		b.WaitSemaphore(0, 3)
		theirs.Release(lease...)
		zktest.Eventually(b, zktest.TimeLimit, func() bool { n, err := s.Remaining(locktest.Within(b)); return err == nil && n == 1 }, "one permit remains")
		locktest.Unlock(b, g)
	})
}
