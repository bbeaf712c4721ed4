package recipes

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
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// onSharedCount runs f with the path of a count, on both servers. f may leave watches of the count,
// which end with their connections.
func onSharedCount(t *testing.T, f func(b *locktest.Fixture, count string)) {
	t.Helper()
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		b := locktest.NewFixture(t, s)
		f(b, b.LockPath+"-config/permits")
		b.WaitNoContender()
	})
}

// setCount writes the count as Curator does, in big-endian order.
func setCount(b *locktest.Fixture, conn *zk.Conn, path string, value int32) {
	b.Helper()
	_, err := conn.Set(path, binary.BigEndian.AppendUint32(nil, uint32(value)), -1)
	locktest.Must(b, err)
}

func TestSharedCount(t *testing.T) {
	onSharedCount(t, func(b *locktest.Fixture, path string) {
		conn, locks := b.Client(b), b.Locks()
		c, seeded := locks.SharedCount(path, 7), b.Locks().SharedCount(path, 9)
		get := func(c *actors.SharedCount, value int, version int32) actors.Count {
			b.Helper()
			got, err := c.Get(locktest.Within(b))
			if err != nil || got != (actors.Count{Value: value, Version: version}) {
				b.Fatalf("%+v, %v; want %d of version %d", got, err, value, version)
			}
			return got
		}
		none := get(c, 7, -1)
		get(seeded, 9, -1)
		try := func(c *actors.SharedCount, seen actors.Count, value int, want bool) {
			b.Helper()
			if ok, err := c.TrySet(locktest.Within(b), seen, value); ok != want || err != nil {
				b.Fatalf("set %d if %+v: %v, %v", value, seen, ok, err)
			}
		}
		try(c, none, 3, true) // which makes the directory, too
		try(seeded, none, 4, false)
		first := get(seeded, 3, 0)
		locktest.Must(b, c.Set(locktest.Within(b), 5))
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
		locktest.Must(b, err)
		if _, err := c.Get(locktest.Within(b)); !errors.Is(err, actors.ErrInvalid) || !strings.Contains(err.Error(), "5 bytes") {
			b.Errorf("%v", err)
		}
		locktest.Must(b, conn.Delete(path, -1))
		try(c, last, 1, false)
		locktest.Must(b, c.Set(locktest.Within(b), 2)) // which makes the node again
		get(c, 2, 0)
	})
}

// A count is not created at the path of a contender's node, or below one: it would block the lock for ever.
func TestSharedCountNamedAsAContender(t *testing.T) {
	onSharedCount(t, func(b *locktest.Fixture, path string) {
		locks := b.Locks()
		for _, name := range []string{"_c_988c78be-f272-8860-8000-000000000001-lock-0000000000", "x-lease-0000000007", "__READ__0000000003/count"} {
			c := locks.SharedCount(path+"/"+name, 0)
			_, err := c.TrySet(locktest.Within(b), actors.Count{Version: -1}, 1)
			for what, err := range map[string]error{"Set": c.Set(locktest.Within(b), 1), "TrySet": err} {
				if !errors.Is(err, actors.ErrInvalid) || !strings.Contains(err.Error(), "contender") {
					b.Errorf("%s at %s: %v", what, name, err)
				}
			}
		}
		if g, err := locks.Mutex(path).Lock(locktest.Within(b)); err != nil {
			b.Error(err)
		} else {
			locktest.Must(b, g.Unlock(locktest.Within(b)))
		}
	})
}

// No data that are no count are overwritten, whatever version they are said to have.
func TestSharedCountKeepsOtherData(t *testing.T) {
	onSharedCount(t, func(b *locktest.Fixture, path string) {
		conn, locks := b.Client(b), b.Locks()
		c := locks.SharedCount(path, 7)
		locktest.Must(b, c.Set(locktest.Within(b), 1))
		seen, err := c.Get(locktest.Within(b))
		locktest.Must(b, err)
		for _, data := range []string{"", "one", "a configuration of 29 bytes\n\n", strings.Repeat("x", 1<<10)} {
			_, err := conn.Multi(&zk.DeleteRequest{Path: path, Version: -1}, &zk.CreateRequest{Path: path, Data: []byte(data), Acl: zk.WorldACL(zk.PermAll)})
			locktest.Must(b, err)
			for what, set := range map[string]func() error{
				"Set":       func() error { return c.Set(locktest.Within(b), 2) },
				"TrySet":    func() error { _, err := c.TrySet(locktest.Within(b), seen, 2); return err },
				"TrySet -1": func() error { _, err := c.TrySet(locktest.Within(b), actors.Count{Version: -1}, 2); return err },
			} {
				if err := set(); !errors.Is(err, actors.ErrInvalid) || !strings.Contains(err.Error(), "bytes") {
					b.Errorf("%s over %.40q: %v", what, data, err)
				}
			}
			if got, stat, err := conn.Get(path); err != nil || string(got) != data || stat.Version != 0 {
				b.Errorf("%.40q became %.40q, %v", data, got, err)
			}
		}
	})
}

// The directory of a count is a container, as with Curator, and is deleted after the count.
func TestSharedCountDirectoryIsContainer(t *testing.T) {
	t.Parallel()
	onSharedCount(t, func(b *locktest.Fixture, path string) {
		b.NeedsContainers()
		conn := b.Client(b)
		locktest.Must(b, b.Locks().SharedCount(path, 7).Set(locktest.Within(b), 2))
		locktest.Must(b, conn.Delete(path, -1))
		zktest.Eventually(b, zktest.TimeLimit, func() bool {
			there, _, err := conn.Exists(filepath.Dir(path))
			return err == nil && !there
		}, "the directory is deleted")
	})
}

// Many clients set one count at one time. Each TrySet that returns true has counted.
func TestSharedCountMultiClient(t *testing.T) {
	onSharedCount(t, func(b *locktest.Fixture, path string) {
		const clients, rounds = 5, 10
		var wg sync.WaitGroup
		for range clients {
			c := b.Locks().SharedCount(path, 0)
			wg.Go(func() {
				for done := 0; done < rounds; {
					seen, err := c.Get(locktest.Within(b))
					if err == nil {
						var ok bool
						if ok, err = c.TrySet(locktest.Within(b), seen, seen.Value+1); ok {
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
		if got, err := b.Locks().SharedCount(path, 0).Get(locktest.Within(b)); err != nil || got.Value != clients*rounds {
			b.Errorf("%+v, %v", got, err)
		}
	})
}

// Curator's testThreadedLeaseIncrease: a waiter holds as soon as there are more permits.
func TestSemaphoreThreadedLeaseIncrease(t *testing.T) {
	t.Parallel()
	onSharedCount(t, func(b *locktest.Fixture, count string) {
		conn, one, two := b.Client(b), b.Locks(), b.Locks()
		locktest.Must(b, one.SharedCount(count, 0).Set(locktest.Within(b), 1))
		s, other := one.Semaphore(b.LockPath, 99, actors.SharedPermits(count)), two.Semaphore(b.LockPath, 99, actors.SharedPermits(count))
		g := locktest.Lock(b, s)
		f := other.Acquire(locktest.Within(b))
		b.WaitSemaphore(1, 2)
		h := s.Acquire(locktest.Within(b), actors.Permits(2))
		b.WaitSemaphore(2, 2)
		locktest.Pending(b, f, h)
		locktest.Must(b, one.SharedCount(count, 0).Set(locktest.Within(b), 2))
		k := locktest.Result(b, f)
		locktest.Pending(b, h)
		if n, err := s.Remaining(locktest.Within(b)); n != 0 || err != nil {
			b.Errorf("%d remain, %v", n, err)
		}
		setCount(b, conn, count, 4)
		m := locktest.Result(b, h)
		b.WaitSemaphore(0, 4)

		// Fewer permits: holders go on to hold. A new request waits until fewer leases exist than
		// that.
		locktest.Unlock(b, m)
		setCount(b, conn, count, 1)
		waitFull(b, s)
		waitFull(b, other)
		f = other.Acquire(locktest.Within(b))
		b.WaitSemaphore(1, 3)
		locktest.Unlock(b, k)
		b.WaitSemaphore(1, 2)
		locktest.Pending(b, f)
		locktest.Must(b, g.Err())
		locktest.Unlock(b, g)
		locktest.Unlock(b, locktest.Result(b, f))
	})
}

// waitFull waits until the semaphore has no free permit.
func waitFull(b *locktest.Fixture, s *actors.Semaphore) {
	b.Helper()
	zktest.Eventually(b, zktest.TimeLimit, func() bool {
		g, err := s.Lock(locktest.Within(b), actors.Try())
		if err == nil {
			locktest.Unlock(b, g)
		}
		return errors.Is(err, actors.ErrNotAcquired)
	}, "no permit is free")
}

// Without permits all requests wait, without an error, until there are some.
func TestSharedPermitsPause(t *testing.T) {
	t.Parallel()
	onSharedCount(t, func(b *locktest.Fixture, count string) {
		conn, locks := b.Client(b), b.Locks()
		s := locks.Semaphore(b.LockPath, 2, actors.SharedPermits(count)) // which makes the count, with 2
		g := locktest.Lock(b, s, actors.Permits(2))
		if data, _, err := conn.Get(count); err != nil || string(data) != "\x00\x00\x00\x02" {
			b.Errorf("%q, %v", data, err)
		}
		for _, value := range []int32{0, -5} {
			setCount(b, conn, count, value)
			zktest.Eventually(b, zktest.TimeLimit, func() bool { n, err := s.Remaining(locktest.Within(b)); return n == 0 && err == nil }, "no permit remains")
			locktest.Unlock(b, g)
			waitFull(b, s)
			f := s.Acquire(locktest.Within(b))
			b.WaitSemaphore(1, 1)
			big := s.Acquire(locktest.Within(b), actors.Permits(3))
			_, err := s.Lock(locktest.Within(b), actors.WithTimeout(50*time.Millisecond))
			locktest.Is(b, err, actors.ErrTimedOut)
			locktest.Pending(b, f, big)
			setCount(b, conn, count, 3)
			locktest.Unlock(b, locktest.Result(b, f))
			g = locktest.Result(b, big)
		}
		locktest.Unlock(b, g)
	})
}

// The count's node has no valid data, or is deleted.
func TestSharedPermitsInvalidCount(t *testing.T) {
	t.Parallel()
	onSharedCount(t, func(b *locktest.Fixture, count string) {
		conn, locks := b.Client(b), b.Locks()
		locktest.Must(b, locks.SharedCount(count, 0).Set(locktest.Within(b), 1))
		_, err := conn.Set(count, []byte("one"), -1)
		locktest.Must(b, err)
		s := locks.Semaphore(b.LockPath, 2, actors.SharedPermits(count))
		for range 2 {
			_, err = s.Lock(locktest.Within(b))
			if locktest.Is(b, err, actors.ErrInvalid); err == nil || !strings.Contains(err.Error(), count+": its data are 3 bytes") {
				b.Errorf("%v", err)
			}
		}
		setCount(b, conn, count, 1)
		var g *actors.Grant
		zktest.Eventually(b, zktest.TimeLimit, func() bool { g, err = s.Lock(locktest.Within(b)); return err == nil }, "the count is read")
		_, err = conn.Set(count, nil, -1) // which does not change the count
		locktest.Must(b, err)
		f := s.Acquire(locktest.Within(b))
		b.WaitSemaphore(1, 2)
		locktest.Pending(b, f)
		locktest.Must(b, conn.Delete(count, -1)) // the semaphore makes it again, with 2
		h := locktest.Result(b, f)
		locktest.Unlock(b, g)
		locktest.Unlock(b, h)
	})
}

// The semaphore follows the count after the loss of its connection and its session.
func TestSharedPermitsReconnect(t *testing.T) {
	locktest.NeedsZooKeeper(t, "a connection to ZooKeeper that the test breaks")
	t.Parallel()
	onSharedCount(t, func(b *locktest.Fixture, count string) {
		proxy := zktest.Proxy(b, b.Addr())
		locks, steady := locktest.Connect(b.T, proxy.Addr()), b.Locks()
		s := locks.Semaphore(b.LockPath, 1, actors.SharedPermits(count))
		g := locktest.Lock(b, s)
		f := s.Acquire(locktest.Within(b))
		b.WaitSemaphore(1, 2)
		proxy.Refuse(true)
		proxy.Cut()
		locktest.WaitState(b, locks, messages.SessionState_SUSPENDED)
		locktest.Must(b, steady.SharedCount(count, 0).Set(locktest.Within(b), 2))
		proxy.Refuse(false)
		h := locktest.Result(b, f)
		b.ExpireSession(locks)
		locktest.Closes(b, g.Done(), "the grant")
		locktest.Closes(b, h.Done(), "the grant")
		locktest.Must(b, steady.SharedCount(count, 0).Set(locktest.Within(b), 3))
		locktest.Unlock(b, locktest.Lock(b, s, actors.Permits(3)))
	})
}

// Requests are refused while the process may not read the count.
func TestSharedPermitsDenied(t *testing.T) {
	locktest.NeedsZooKeeper(t, "a connection to ZooKeeper that the test breaks")
	t.Parallel()
	locktest.OnEmbedded(t, func(b *locktest.Fixture) {
		conn, locks := b.Client(b), b.Locks()
		count := b.LockPath + "-count"
		locktest.Must(b, locks.SharedCount(count, 0).Set(locktest.Within(b), 1))
		_, err := conn.SetACL(count, zk.WorldACL(zk.PermAdmin|zk.PermWrite), -1)
		locktest.Must(b, err)
		s := locks.Semaphore(b.LockPath, 1, actors.SharedPermits(count))
		_, err = s.Lock(locktest.Within(b))
		if locktest.Is(b, err, actors.ErrNoAuth); err == nil || !strings.Contains(err.Error(), count) {
			b.Errorf("%v", err)
		}
		_, err = s.Remaining(locktest.Within(b))
		locktest.Is(b, err, actors.ErrNoAuth)
		_, err = conn.SetACL(count, zk.WorldACL(zk.PermAll), -1)
		locktest.Must(b, err)
		zktest.Eventually(b, zktest.TimeLimit, func() bool {
			g, err := s.Lock(locktest.Within(b))
			if err == nil {
				locktest.Unlock(b, g)
			}
			return err == nil
		}, "the count is read again")
		locktest.Must(b, locks.Close())
	})
}

// Requests wait until the count is read.
func TestSharedPermitsReadLate(t *testing.T) {
	locktest.NeedsZooKeeper(t, "a connection to ZooKeeper that the test breaks")
	t.Parallel()
	locktest.OnEmbedded(t, func(b *locktest.Fixture) {
		locks := b.Locks()
		count := b.LockPath + "-count"
		locktest.Must(b, locks.SharedCount(count, 0).Set(locktest.Within(b), 2))
		fault := b.Embedded().Inject(embedded.Fault{Op: embedded.OpGetData, Path: count, Action: embedded.DelayReply, Delay: locktest.ShortWait})
		s := locks.Semaphore(b.LockPath, 9, actors.SharedPermits(count))
		fs := []*actors.Future[*actors.Grant]{s.Acquire(locktest.Within(b)), s.Acquire(locktest.Within(b), actors.Try()), s.Acquire(locktest.Within(b), actors.Try())}
		locktest.Closes(b, fault.Fired(), "the read")
		g, h := locktest.Result(b, fs[0]), locktest.Result(b, fs[1])
		locktest.Is(b, locktest.Failure(b, fs[2]), actors.ErrNotAcquired)
		locktest.Unlock(b, g)
		locktest.Unlock(b, h)
		locktest.Must(b, locks.Close())
	})
}

// The first count makes the chroot.
func TestSharedCountInAMissingChroot(t *testing.T) {
	locktest.OnChroot(t, func(b *locktest.Fixture) {
		c := b.Chroot().SharedCount("/config/permits", 7)
		locktest.Must(b, c.Set(locktest.Within(b), 5))
		if got, err := c.Get(locktest.Within(b)); err != nil || got.Value != 5 {
			b.Errorf("%+v, %v", got, err)
		}
	})
}
