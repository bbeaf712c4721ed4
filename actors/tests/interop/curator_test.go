package interop

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge/zktest"
	"github.com/actorlock/actorlock/zkbridge/zktest/interop"
)

// contendRounds is how often each contender holds.
var contendRounds = func() int {
	if zktest.Exhaustive() {
		return 40
	}
	return 15
}()

// contendWith has a lock of ours and locks of other libraries contend on one path. Each contender must
// come to hold, and none holds beside one that its mode excludes.
func contendWith(b *locktest.Fixture, permits int, ours map[string]lockClient, theirs map[string]*interop.Lock) {
	b.Helper()
	resource := interop.NewResource(b)
	var all []<-chan error
	for name, l := range theirs {
		all = append(all, l.Contend(resource, name, contendRounds))
	}
	for name, c := range ours {
		done := make(chan error, 1)
		go func() {
			done <- resource.Contend(name, c.mode, contendRounds, func() (func() error, error) {
				g, err := c.lock.Lock(locktest.Within(b), c.options...)
				if err != nil {
					return nil, err
				}
				return func() error { return g.Unlock(locktest.Within(b)) }, nil
			})
		}()
		all = append(all, done)
	}
	var errs []error
	for _, done := range all {
		errs = append(errs, <-done)
	}
	if err := errors.Join(append(errs, resource.Verify(permits))...); err != nil {
		b.Error(err)
	}
}

// curator starts a Java process with Curator. The process ends before watches are counted: Curator
// has a watch of its own.
func curator(b *locktest.Fixture, options ...interop.PeerOption) *interop.CuratorClient {
	c := interop.Curator(b, b.Addr(), options...)
	b.Cleanups = append(b.Cleanups, c.Kill)
	return c
}

func kazoo(b *locktest.Fixture) *interop.KazooClient {
	k := interop.Kazoo(b, b.Addr())
	b.Cleanups = append(b.Cleanups, k.Kill)
	return k
}

type lockClient struct {
	lock    locktest.Handle
	mode    interop.Mode
	options []actors.Option
}

func exclusiveClient(l locktest.Handle) lockClient {
	return lockClient{lock: l, mode: interop.Exclusive}
}

func sharedClient(l locktest.Handle, options ...actors.Option) lockClient {
	return lockClient{lock: l, mode: interop.Shared, options: options}
}

// A mutex of ours, Curator's and kazoo's on one path.
func TestMutexBesideCurator(t *testing.T) {
	locktest.OnOneServer(t, func(b *locktest.Fixture) {
		curator := curator(b)
		contendWith(b, 0, map[string]lockClient{"go": exclusiveClient(b.Mutex()), "go too": exclusiveClient(b.Mutex())},
			map[string]*interop.Lock{"java": curator.Mutex(b.LockPath), "java too": curator.Mutex(b.LockPath)})
	})
}

func TestMutexBesideKazoo(t *testing.T) {
	locktest.OnOneServer(t, func(b *locktest.Fixture) {
		kazoo := kazoo(b)
		keepDirectories(b, "")
		contendWith(b, 0, map[string]lockClient{"go": exclusiveClient(b.Mutex()), "go too": exclusiveClient(b.Mutex())},
			map[string]*interop.Lock{"python": kazoo.Lock(b.LockPath, "-lock-"), "python too": kazoo.Lock(b.LockPath, "-lock-")})
	})
}

func TestReadWriteBesideCurator(t *testing.T) {
	locktest.OnOneServer(t, func(b *locktest.Fixture) {
		curator, rw := curator(b), b.RWMutex()
		contendWith(b, 0, map[string]lockClient{"go reads": sharedClient(rw.Read()), "go writes": exclusiveClient(rw.Write()), "go reads too": sharedClient(b.RWMutex().Read())},
			map[string]*interop.Lock{"java reads": curator.ReadLock(b.LockPath), "java writes": curator.WriteLock(b.LockPath)})
	})
}

// Curator waits for this library, and this library for Curator. Each lists the participants of the
// other.
func TestCuratorWaitsForUs(t *testing.T) {
	locktest.OnOneServer(t, func(b *locktest.Fixture) {
		theirs := curator(b).Mutex(b.LockPath)
		mu := b.Mutex()
		g := locktest.Lock(b, mu, actors.WithData([]byte("me")))
		if held, err := theirs.TryAcquire(); held || err != nil {
			b.Fatalf("Curator holds what we hold: %v", err)
		}
		theirTurn := theirs.Begin(zktest.TimeLimit)
		b.WaitNodes(2)
		next := mu.Acquire(locktest.Within(b))
		b.WaitNodes(3)
		all, err := mu.Participants(locktest.Within(b))
		if err != nil || len(all) != 3 || !all[0].Local || all[1].Local || all[1].Holds || !all[2].Local {
			b.Errorf("%+v, %v", all, err)
		}
		locktest.Unlock(b, g)
		if r := <-theirTurn; !r.Held || r.Err != nil {
			b.Fatalf("Curator does not get the lock: %v", r.Err)
		}
		locktest.Pending(b, next)
		if nodes, err := theirs.Participants(); err != nil || len(nodes) != 2 {
			b.Errorf("Curator sees %v, %v", nodes, err)
		}
		_, err = mu.Lock(locktest.Within(b), actors.WithTimeout(50*time.Millisecond))
		locktest.Is(b, err, actors.ErrTimedOut)
		locktest.Must(b, theirs.Release())
		locktest.Unlock(b, locktest.Result(b, next))
	})
}

// The same with a process whose readers and writers share nodes.
func TestLocalReadWriteBesideCurator(t *testing.T) {
	locktest.OnOneServer(t, func(b *locktest.Fixture) {
		curator := curator(b)
		rw := b.LocalRWMutex(actors.LocalQueue(actors.LocalQueueConfig{Grants: 3, Linger: 10 * time.Millisecond}))
		contendWith(b, 0, map[string]lockClient{"go reads": sharedClient(rw.Read()), "go writes": exclusiveClient(rw.Write()), "go reads too": sharedClient(rw.Read())},
			map[string]*interop.Lock{"java reads": curator.ReadLock(b.LockPath), "java writes": curator.WriteLock(b.LockPath)})
		// Our reader, beside a write node that is kept, does not block Curator's reader.
		locktest.Unlock(b, locktest.Lock(b, rw.Write()))
		r := locktest.Lock(b, rw.Read())
		theirs := curator.ReadLock(b.LockPath)
		if held := <-theirs.Begin(zktest.TimeLimit); !held.Held {
			b.Error("Curator does not read: ", held.Err)
		}
		if ok, err := curator.WriteLock(b.LockPath).TryAcquire(); ok || err != nil {
			b.Errorf("Curator writes while we read: %v", err)
		}
		locktest.Must(b, theirs.Release())
		locktest.Unlock(b, r)
	})
}

// We downgrade: a writer of Curator's waits on, and a reader of Curator's holds.
func TestDowngradeBesideCurator(t *testing.T) {
	locktest.OnOneServer(t, func(b *locktest.Fixture) {
		curator, rw := curator(b), b.RWMutex()
		w := locktest.Lock(b, rw.Write(), actors.WithOwner("me"))
		writer := curator.WriteLock(b.LockPath)
		held := writer.Begin(zktest.TimeLimit)
		b.WaitNodes(2)
		r := locktest.Lock(b, rw.Read(), actors.WithOwner("me"))
		locktest.Unlock(b, w)
		if ok, err := curator.WriteLock(b.LockPath).TryAcquire(); ok || err != nil {
			b.Errorf("Curator writes while we read: %v", err)
		}
		select {
		case <-held:
			b.Error("Curator's writer holds during our downgrade")
		default:
		}
		locktest.Unlock(b, r)
		if r := <-held; !r.Held {
			b.Fatal(r.Err)
		}
		locktest.Must(b, writer.Release())
		reader := curator.ReadLock(b.LockPath)
		if ok, err := reader.TryAcquire(); !ok {
			b.Error("Curator does not read: ", err)
		}
		locktest.Unlock(b, locktest.Lock(b, rw.Read()))
		_, err := rw.Write().Lock(locktest.Within(b), actors.Try())
		locktest.Is(b, err, actors.ErrNotAcquired)
		locktest.Must(b, reader.Release())
	})
}

// A Curator process is killed while it holds: we get the lock when its session is over.
func TestCuratorDies(t *testing.T) {
	zktest.OneRunIn(t, 8)
	locktest.Each(t, func(b *locktest.Fixture) {
		b.NeedsContainers() // which Curator creates
		curator := curator(b, interop.SessionTimeout(8*time.Second))
		theirs := curator.Mutex(b.LockPath)
		if held, err := theirs.TryAcquire(); !held {
			b.Fatal(err)
		}
		f := b.Mutex().Acquire(context.Background())
		b.WaitNodes(2)
		locktest.Pending(b, f)
		curator.Kill()
		locktest.Unlock(b, locktest.Result(b, f))
	})
}

// A semaphore of ours and one of Curator's have the same permits.
func TestSemaphoreBesideCurator(t *testing.T) {
	locktest.OnOneServer(t, func(b *locktest.Fixture) {
		const permits = 3
		curator := curator(b)
		ours, theirs := map[string]lockClient{}, map[string]*interop.Lock{}
		for i := range 3 {
			ours[fmt.Sprintf("go %d", i)] = sharedClient(b.Locks().Semaphore(b.LockPath, permits))
			theirs[fmt.Sprintf("java %d", i)] = curator.Semaphore(b.LockPath, permits)
		}
		contendWith(b, permits, ours, theirs)
	})
}

// We acquire several permits at once, and Curator the others. Each waits for the other.
func TestPermitsBesideCurator(t *testing.T) {
	locktest.OnOneServer(t, func(b *locktest.Fixture) {
		const permits = 4
		theirs, ours := curator(b).Semaphore(b.LockPath, permits), b.Locks().Semaphore(b.LockPath, permits)
		g := locktest.Lock(b, ours, actors.Permits(3))
		if held, err := theirs.Acquire(zktest.TimeLimit); !held || err != nil {
			b.Fatalf("Curator holds: %v, %v", held, err)
		}
		if held, err := theirs.Acquire(100 * time.Millisecond); held || err != nil {
			b.Fatalf("Curator holds: %v, %v", held, err)
		}
		if n, err := ours.Remaining(locktest.Within(b)); n != 0 || err != nil {
			b.Errorf("%d remain, %v", n, err)
		}
		next := ours.Acquire(locktest.Within(b), actors.Permits(4))
		locktest.Unlock(b, g)
		locktest.Pending(b, next)
		locktest.Must(b, theirs.Release())
		g = locktest.Result(b, next)
		if held, err := theirs.TryAcquire(); held || err != nil {
			b.Errorf("Curator holds what we hold: %v", err)
		}
		locktest.Unlock(b, g)
	})
}

// A client of Curator that acquires two leases gets the first while we wait for both permits.
// From then on it waits behind us, and we for its lease: the timeout of either ends that, and
// the other gets all.
func TestPermitsBesideCuratorsAcquireOfSeveral(t *testing.T) {
	t.Parallel()
	for _, ours := range []bool{true, false} {
		t.Run(fmt.Sprintf("our timeout %v", ours), func(t *testing.T) {
			locktest.OnOneServer(t, func(b *locktest.Fixture) {
				const permits = 2
				leases, s := curator(b).SemaphoreOfSeveral(b.LockPath, permits, 2), b.Locks().Semaphore(b.LockPath, permits)
				g := locktest.Lock(b, s, actors.Permits(2))
				limits := map[bool]time.Duration{true: 4 * time.Second, false: zktest.TimeLimit}
				theirs := leases.Begin(limits[!ours])
				b.WaitSemaphore(1, 3)
				f := s.Acquire(locktest.Within(b), actors.Permits(2), actors.WithTimeout(limits[ours]))
				b.WaitSemaphore(2, 3)
				locktest.Unlock(b, g)
				if ours {
					locktest.Is(b, locktest.Failure(b, f), actors.ErrTimedOut)
				} else {
					locktest.Unlock(b, locktest.Result(b, f))
				}
				if r := <-theirs; r.Held != ours || r.Err != nil {
					b.Fatalf("Curator's acquire: %+v", r)
				}
				if ours {
					locktest.Must(b, leases.Release())
				}
				b.WaitSemaphore(0, 0)
			})
		})
	}
}

// Requests for two of three permits, ours with timeouts, exclude each other and Curator's.
func TestSeveralPermitsBesideCurator(t *testing.T) {
	locktest.OnOneServer(t, func(b *locktest.Fixture) {
		const permits = 3
		ours := map[string]lockClient{}
		for _, name := range []string{"go", "go too"} {
			ours[name] = sharedClient(retrying{b.Locks().Semaphore(b.LockPath, permits)}, actors.Permits(2))
		}
		contendWith(b, 1, ours, map[string]*interop.Lock{"java": curator(b).SemaphoreOfSeveral(b.LockPath, permits, 2)})
	})
}

func TestSemaphoreMutexBesideCurator(t *testing.T) {
	locktest.OnOneServer(t, func(b *locktest.Fixture) {
		curator := curator(b)
		contendWith(b, 0, map[string]lockClient{"go": exclusiveClient(b.Locks().SemaphoreMutex(b.LockPath)), "go too": exclusiveClient(b.Locks().SemaphoreMutex(b.LockPath))},
			map[string]*interop.Lock{"java": curator.SemaphoreMutex(b.LockPath), "java too": curator.SemaphoreMutex(b.LockPath)})
	})
}

// retrying is a handle that requests the lock again and again, each time for a moment.
type retrying struct{ locktest.Handle }

func (r retrying) Lock(ctx context.Context, options ...actors.Option) (*actors.Grant, error) {
	for {
		g, err := r.Handle.Lock(ctx, append(options, actors.WithTimeout(300*time.Millisecond))...)
		if !errors.Is(err, actors.ErrTimedOut) {
			return g, err
		}
	}
}

// A multi-lock of ours contends with one of Curator's. Curator's takes its members one after the
// other. So it may hold one member and wait for another behind ours, which then releases its
// members.
func TestMultiLockBesideCurator(t *testing.T) {
	locktest.OnOneServer(t, func(b *locktest.Fixture) {
		locks := b.Locks()
		one, two := b.LockPath+"/one", b.LockPath+"/two"
		contendWith(b, 0, map[string]lockClient{"go": exclusiveClient(retrying{locks.MultiLock(locks.Mutex(one), locks.Mutex(two))})},
			map[string]*interop.Lock{"java": curator(b).MultiLock(one, two)})
		conn := b.Client(b)
		for _, path := range []string{one, two} {
			conn.Delete(path, -1) // containers that are not collected yet
		}
	})
}

// Curator's Revoker asks our holder, and our Revoke asks Curator's.
func TestRevocationBesideCurator(t *testing.T) {
	locktest.OnOneServer(t, func(b *locktest.Fixture) {
		curator, locks := curator(b), b.Locks()
		g := locktest.Lock(b, locks.Mutex(b.LockPath), actors.Revocable(), actors.WithData([]byte("me")))
		theirs := curator.Mutex(b.LockPath)
		revoked, err := theirs.MakeRevocable()
		locktest.Must(b, err)
		held := theirs.Begin(zktest.TimeLimit)
		b.WaitNodes(2)
		locktest.Must(b, curator.Revoke(g.Node()))
		locktest.Closes(b, g.Revoked(), "the request to release")
		locktest.Unlock(b, g)
		if r := <-held; !r.Held {
			b.Fatal(r.Err)
		}
		node, err := theirs.Node()
		locktest.Must(b, err)
		done := make(chan error, 1)
		go func() {
			broken, err := locks.Revoke(locktest.Within(b), node, zktest.TimeLimit)
			if broken {
				err = errors.New("the node was deleted")
			}
			done <- err
		}()
		locktest.Receive(b, revoked, "the request to Curator's holder")
		locktest.Must(b, theirs.Release())
		locktest.Must(b, <-done)
	})
}

// The number of permits is a SharedCount, which either side changes.
func TestSharedCountBesideCurator(t *testing.T) {
	locktest.OnOneServer(t, func(b *locktest.Fixture) {
		locks := b.Locks()
		count := b.LockPath + "-count"
		s := locks.Semaphore(b.LockPath, 1, actors.SharedPermits(count))
		g := locktest.Lock(b, s)
		_, err := s.Lock(locktest.Within(b), actors.Try())
		locktest.Is(b, err, actors.ErrNotAcquired)
		theirs := curator(b).SharedCount(count, 1)
		waiting := s.Acquire(locktest.Within(b))
		if !theirs.TryAdd(1) {
			b.Fatal("Curator does not set the count")
		}
		locktest.Unlock(b, locktest.Result(b, waiting))
		locktest.Unlock(b, g)
		locktest.Must(b, locks.Close()) // a semaphore in use watches its count
		locktest.Must(b, b.Client(b).Delete(count, -1))
	})
}
