package actors_test

import (
	"encoding/binary"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// onSharedCount runs f with the path of a count, on both servers. f may leave watches of the count,
// which end with their connections.
func onSharedCount(t *testing.T, f func(b *testLock, count string)) {
	t.Helper()
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		b := lockOn(t, s)
		f(b, b.path+"-config/permits")
		b.waitNodes(0)
	})
}

// setCount writes the count as Curator does, in big-endian order.
func setCount(b *testLock, conn *zk.Conn, path string, value int32) {
	b.Helper()
	_, err := conn.Set(path, binary.BigEndian.AppendUint32(nil, uint32(value)), -1)
	must(b, err)
}

func TestSharedCount(t *testing.T) {
	onSharedCount(t, func(b *testLock, path string) {
		conn, locks := b.Client(b), b.locks()
		c, seeded := locks.SharedCount(path, 7), b.locks().SharedCount(path, 9)
		get := func(c *actors.SharedCount, value int, version int32) actors.Count {
			b.Helper()
			got, err := c.Get(within(b))
			if err != nil || got != (actors.Count{Value: value, Version: version}) {
				b.Fatalf("%+v, %v; want %d of version %d", got, err, value, version)
			}
			return got
		}
		none := get(c, 7, -1)
		get(seeded, 9, -1)
		try := func(c *actors.SharedCount, seen actors.Count, value int, want bool) {
			b.Helper()
			if ok, err := c.TrySet(within(b), seen, value); ok != want || err != nil {
				b.Fatalf("set %d if %+v: %v, %v", value, seen, ok, err)
			}
		}
		try(c, none, 3, true) // which makes the directory, too
		try(seeded, none, 4, false)
		first := get(seeded, 3, 0)
		must(b, c.Set(within(b), 5))
		try(seeded, first, 6, false)
		try(seeded, get(seeded, 5, 1), -6, true)
		get(c, -6, 2)
		data, _, err := conn.Get(path)
		if err != nil || string(data) != "\xff\xff\xff\xfa" {
			b.Errorf("%q, %v", data, err)
		}
		setCount(b, conn, path, 1<<30)
		last := get(c, 1<<30, 3)
		_, err = conn.Set(path, []byte("five!"), -1)
		must(b, err)
		if _, err := c.Get(within(b)); !errors.Is(err, actors.ErrInvalid) || !strings.Contains(err.Error(), "5 bytes") {
			b.Errorf("%v", err)
		}
		must(b, conn.Delete(path, -1))
		try(c, last, 1, false)
		must(b, c.Set(within(b), 2)) // which makes the node again
		get(c, 2, 0)
	})
}

// The directory of a count is a container, as with Curator, and is deleted after the count.
func TestSharedCountDirectoryIsContainer(t *testing.T) {
	onSharedCount(t, func(b *testLock, path string) {
		conn := b.Client(b)
		must(b, b.locks().SharedCount(path, 7).Set(within(b), 2))
		must(b, conn.Delete(path, -1))
		zktest.Eventually(b, timeLimit, func() bool {
			there, _, err := conn.Exists(filepath.Dir(path))
			return err == nil && !there
		}, "the directory is deleted")
	})
}

// Many clients set one count at one time. Each TrySet that returns true has counted.
func TestSharedCountMultiClient(t *testing.T) {
	onSharedCount(t, func(b *testLock, path string) {
		const clients, rounds = 5, 10
		var wg sync.WaitGroup
		for range clients {
			c := b.locks().SharedCount(path, 0)
			wg.Go(func() {
				for done := 0; done < rounds; {
					seen, err := c.Get(within(b))
					if err == nil {
						var ok bool
						if ok, err = c.TrySet(within(b), seen, seen.Value+1); ok {
							done++
						}
					}
					if err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		if got, err := b.locks().SharedCount(path, 0).Get(within(b)); err != nil || got.Value != clients*rounds {
			b.Errorf("%+v, %v", got, err)
		}
	})
}

// Curator's testThreadedLeaseIncrease: a waiter holds as soon as there are more permits.
func TestSemaphoreThreadedLeaseIncrease(t *testing.T) {
	t.Parallel()
	onSharedCount(t, func(b *testLock, count string) {
		conn, one, two := b.Client(b), b.locks(), b.locks()
		must(b, one.SharedCount(count, 0).Set(within(b), 1))
		s, other := one.Semaphore(b.path, 99, actors.SharedPermits(count)), two.Semaphore(b.path, 99, actors.SharedPermits(count))
		g := lock(b, s)
		f := other.Acquire(within(b))
		b.waitSemaphore(1, 2)
		h := s.Acquire(within(b), actors.Permits(2))
		b.waitSemaphore(2, 2)
		pending(b, f, h)
		must(b, one.SharedCount(count, 0).Set(within(b), 2))
		k := result(b, f)
		pending(b, h)
		if n, err := s.Remaining(within(b)); n != 0 || err != nil {
			b.Errorf("%d remain, %v", n, err)
		}
		setCount(b, conn, count, 4)
		m := result(b, h)
		b.waitSemaphore(0, 4)

		// Fewer permits: holders go on to hold. A new request waits until fewer leases exist than
		// that.
		unlock(b, m)
		setCount(b, conn, count, 1)
		waitFull(b, s)
		waitFull(b, other)
		f = other.Acquire(within(b))
		b.waitSemaphore(1, 3)
		unlock(b, k)
		b.waitSemaphore(1, 2)
		pending(b, f)
		must(b, g.Err())
		unlock(b, g)
		unlock(b, result(b, f))
	})
}

// waitFull waits until the semaphore has no free permit.
func waitFull(b *testLock, s *actors.Semaphore) {
	b.Helper()
	zktest.Eventually(b, timeLimit, func() bool {
		g, err := s.Lock(within(b), actors.Try())
		if err == nil {
			unlock(b, g)
		}
		return errors.Is(err, actors.ErrNotAcquired)
	}, "no permit is free")
}

// Without permits all requests wait, without an error, until there are some.
func TestSharedPermitsPause(t *testing.T) {
	t.Parallel()
	onSharedCount(t, func(b *testLock, count string) {
		conn, locks := b.Client(b), b.locks()
		s := locks.Semaphore(b.path, 2, actors.SharedPermits(count)) // which makes the count, with 2
		g := lock(b, s, actors.Permits(2))
		if data, _, err := conn.Get(count); err != nil || string(data) != "\x00\x00\x00\x02" {
			b.Errorf("%q, %v", data, err)
		}
		for _, value := range []int32{0, -5} {
			setCount(b, conn, count, value)
			zktest.Eventually(b, timeLimit, func() bool { n, err := s.Remaining(within(b)); return n == 0 && err == nil }, "no permit remains")
			unlock(b, g)
			waitFull(b, s)
			f := s.Acquire(within(b))
			b.waitSemaphore(1, 1)
			big := s.Acquire(within(b), actors.Permits(3))
			_, err := s.Lock(within(b), actors.WithTimeout(50*time.Millisecond))
			is(b, err, actors.ErrTimedOut)
			pending(b, f, big)
			setCount(b, conn, count, 3)
			unlock(b, result(b, f))
			g = result(b, big)
		}
		unlock(b, g)
	})
}

// The count's node has no valid data, or is deleted.
func TestSharedPermitsInvalidCount(t *testing.T) {
	t.Parallel()
	onSharedCount(t, func(b *testLock, count string) {
		conn, locks := b.Client(b), b.locks()
		must(b, locks.SharedCount(count, 0).Set(within(b), 1))
		_, err := conn.Set(count, []byte("one"), -1)
		must(b, err)
		s := locks.Semaphore(b.path, 2, actors.SharedPermits(count))
		for range 2 {
			_, err = s.Lock(within(b))
			if is(b, err, actors.ErrInvalid); err == nil || !strings.Contains(err.Error(), count+": its data are 3 bytes") {
				b.Errorf("%v", err)
			}
		}
		setCount(b, conn, count, 1)
		var g *actors.Grant
		zktest.Eventually(b, timeLimit, func() bool { g, err = s.Lock(within(b)); return err == nil }, "the count is read")
		_, err = conn.Set(count, nil, -1) // which does not change the count
		must(b, err)
		f := s.Acquire(within(b))
		b.waitSemaphore(1, 2)
		pending(b, f)
		must(b, conn.Delete(count, -1)) // the semaphore makes it again, with 2
		h := result(b, f)
		unlock(b, g)
		unlock(b, h)
	})
}

// The semaphore follows the count after the loss of its connection and its session.
func TestSharedPermitsReconnect(t *testing.T) {
	t.Parallel()
	onSharedCount(t, func(b *testLock, count string) {
		proxy := zktest.Proxy(b, b.Addr())
		locks, steady := connect(b.T, proxy.Addr()), b.locks()
		s := locks.Semaphore(b.path, 1, actors.SharedPermits(count))
		g := lock(b, s)
		f := s.Acquire(within(b))
		b.waitSemaphore(1, 2)
		proxy.Refuse(true)
		proxy.Cut()
		waitState(b, locks, messages.SessionState_SUSPENDED)
		must(b, steady.SharedCount(count, 0).Set(within(b), 2))
		proxy.Refuse(false)
		h := result(b, f)
		b.expire(locks)
		closes(b, g.Done(), "the grant")
		closes(b, h.Done(), "the grant")
		must(b, steady.SharedCount(count, 0).Set(within(b), 3))
		unlock(b, lock(b, s, actors.Permits(3)))
	})
}

// Requests are refused while the process may not read the count.
func TestSharedPermitsDenied(t *testing.T) {
	t.Parallel()
	onEmbedded(t, func(b *testLock) {
		conn, locks := b.Client(b), b.locks()
		count := b.path + "-count"
		must(b, locks.SharedCount(count, 0).Set(within(b), 1))
		_, err := conn.SetACL(count, zk.WorldACL(zk.PermAdmin|zk.PermWrite), -1)
		must(b, err)
		s := locks.Semaphore(b.path, 1, actors.SharedPermits(count))
		_, err = s.Lock(within(b))
		if is(b, err, actors.ErrNoAuth); err == nil || !strings.Contains(err.Error(), count) {
			b.Errorf("%v", err)
		}
		_, err = s.Remaining(within(b))
		is(b, err, actors.ErrNoAuth)
		_, err = conn.SetACL(count, zk.WorldACL(zk.PermAll), -1)
		must(b, err)
		zktest.Eventually(b, timeLimit, func() bool {
			g, err := s.Lock(within(b))
			if err == nil {
				unlock(b, g)
			}
			return err == nil
		}, "the count is read again")
		must(b, locks.Close())
	})
}

// Requests wait until the count is read.
func TestSharedPermitsReadLate(t *testing.T) {
	t.Parallel()
	onEmbedded(t, func(b *testLock) {
		locks := b.locks()
		count := b.path + "-count"
		must(b, locks.SharedCount(count, 0).Set(within(b), 2))
		fault := b.Embedded().Inject(embedded.Fault{Op: embedded.OpGetData, Path: count, Action: embedded.DelayReply, Delay: shortWait})
		s := locks.Semaphore(b.path, 9, actors.SharedPermits(count))
		fs := []*actors.Future[*actors.Grant]{s.Acquire(within(b)), s.Acquire(within(b), actors.Try()), s.Acquire(within(b), actors.Try())}
		closes(b, fault.Fired(), "the read")
		g, h := result(b, fs[0]), result(b, fs[1])
		is(b, failure(b, fs[2]), actors.ErrNotAcquired)
		unlock(b, g)
		unlock(b, h)
		must(b, locks.Close())
	})
}

// The first count makes the chroot.
func TestSharedCountInAMissingChroot(t *testing.T) {
	onChroot(t, func(b *testLock) {
		c := b.chroot().SharedCount("/config/permits", 7)
		must(b, c.Set(within(b), 5))
		if got, err := c.Get(within(b)); err != nil || got.Value != 5 {
			b.Errorf("%+v, %v", got, err)
		}
	})
}
