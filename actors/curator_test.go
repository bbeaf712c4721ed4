package actors_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/sample"
	"github.com/actorlock/actorlock/zkbridge/zktest"
	"github.com/actorlock/actorlock/zkbridge/zktest/interop"
)

// contendRounds is how often each contender holds.
var contendRounds = sample.Size(15, 40)

// contend has a lock of ours and locks of other libraries contend on one path. Each contender must
// come to hold, and none holds beside one that its mode excludes.
func (b *testLock) contend(permits int, ours map[string]lockClient, theirs map[string]*interop.Lock) {
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
				g, err := c.lock.Lock(within(b), c.options...)
				if err != nil {
					return nil, err
				}
				return func() error { return g.Unlock(within(b)) }, nil
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
func (b *testLock) curator(options ...interop.PeerOption) *interop.CuratorClient {
	c := interop.Curator(b, b.Addr(), options...)
	b.cleanups = append(b.cleanups, c.Kill)
	return c
}

func (b *testLock) kazoo() *interop.KazooClient {
	k := interop.Kazoo(b, b.Addr())
	b.cleanups = append(b.cleanups, k.Kill)
	return k
}

type lockClient struct {
	lock    handle
	mode    interop.Mode
	options []actors.Option
}

func exclusiveClient(l handle) lockClient { return lockClient{lock: l, mode: interop.Exclusive} }

func sharedClient(l handle, options ...actors.Option) lockClient {
	return lockClient{lock: l, mode: interop.Shared, options: options}
}

// A mutex of ours, Curator's and kazoo's on one path.
func TestMutexBesideCurator(t *testing.T) {
	onOneServer(t, func(b *testLock) {
		curator := b.curator()
		b.contend(0, map[string]lockClient{"go": exclusiveClient(b.mutex()), "go too": exclusiveClient(b.mutex())},
			map[string]*interop.Lock{"java": curator.Mutex(b.path), "java too": curator.Mutex(b.path)})
	})
}

func TestMutexBesideKazoo(t *testing.T) {
	onOneServer(t, func(b *testLock) {
		kazoo := b.kazoo()
		b.keepDirectories("")
		b.contend(0, map[string]lockClient{"go": exclusiveClient(b.mutex()), "go too": exclusiveClient(b.mutex())},
			map[string]*interop.Lock{"python": kazoo.Lock(b.path, "-lock-"), "python too": kazoo.Lock(b.path, "-lock-")})
	})
}

func TestReadWriteBesideCurator(t *testing.T) {
	onOneServer(t, func(b *testLock) {
		curator, rw := b.curator(), b.rw()
		b.contend(0, map[string]lockClient{"go reads": sharedClient(rw.Read()), "go writes": exclusiveClient(rw.Write()), "go reads too": sharedClient(b.rw().Read())},
			map[string]*interop.Lock{"java reads": curator.ReadLock(b.path), "java writes": curator.WriteLock(b.path)})
	})
}

// Curator waits for this library, and this library for Curator. Each lists the participants of the
// other.
func TestCuratorWaitsForUs(t *testing.T) {
	onOneServer(t, func(b *testLock) {
		theirs := b.curator().Mutex(b.path)
		mu := b.mutex()
		g := lock(b, mu, actors.WithData([]byte("me")))
		if held, err := theirs.TryAcquire(); held || err != nil {
			b.Fatalf("Curator holds what we hold: %v", err)
		}
		theirTurn := theirs.Begin(timeLimit)
		b.waitNodes(2)
		next := mu.Acquire(within(b))
		b.waitNodes(3)
		all, err := mu.Participants(within(b))
		if err != nil || len(all) != 3 || !all[0].Mine || all[1].Mine || all[1].Holds || !all[2].Mine {
			b.Errorf("%+v, %v", all, err)
		}
		unlock(b, g)
		if r := <-theirTurn; !r.Held || r.Err != nil {
			b.Fatalf("Curator does not get the lock: %v", r.Err)
		}
		pending(b, next)
		if nodes, err := theirs.Participants(); err != nil || len(nodes) != 2 {
			b.Errorf("Curator sees %v, %v", nodes, err)
		}
		_, err = mu.Lock(within(b), actors.WithTimeout(50*time.Millisecond))
		is(b, err, actors.ErrTimedOut)
		must(b, theirs.Release())
		unlock(b, result(b, next))
	})
}

// The same with a process whose readers and writers share nodes.
func TestLocalReadWriteBesideCurator(t *testing.T) {
	onOneServer(t, func(b *testLock) {
		curator := b.curator()
		rw := b.localRW(actors.LocalQueue(actors.LocalQueueConfig{Grants: 3, Linger: 10 * time.Millisecond}))
		b.contend(0, map[string]lockClient{"go reads": sharedClient(rw.Read()), "go writes": exclusiveClient(rw.Write()), "go reads too": sharedClient(rw.Read())},
			map[string]*interop.Lock{"java reads": curator.ReadLock(b.path), "java writes": curator.WriteLock(b.path)})
		// Our reader, beside a write node that is kept, does not block Curator's reader.
		unlock(b, lock(b, rw.Write()))
		r := lock(b, rw.Read())
		theirs := curator.ReadLock(b.path)
		if held := <-theirs.Begin(timeLimit); !held.Held {
			b.Error("Curator does not read: ", held.Err)
		}
		if ok, err := curator.WriteLock(b.path).TryAcquire(); ok || err != nil {
			b.Errorf("Curator writes while we read: %v", err)
		}
		must(b, theirs.Release())
		unlock(b, r)
	})
}

// We downgrade: a writer of Curator's waits on, and a reader of Curator's holds.
func TestDowngradeBesideCurator(t *testing.T) {
	onOneServer(t, func(b *testLock) {
		curator, rw := b.curator(), b.rw()
		w := lock(b, rw.Write(), actors.WithOwner("me"))
		writer := curator.WriteLock(b.path)
		held := writer.Begin(timeLimit)
		b.waitNodes(2)
		r := lock(b, rw.Read(), actors.WithOwner("me"))
		unlock(b, w)
		if ok, err := curator.WriteLock(b.path).TryAcquire(); ok || err != nil {
			b.Errorf("Curator writes while we read: %v", err)
		}
		select {
		case <-held:
			b.Error("Curator's writer holds during our downgrade")
		default:
		}
		unlock(b, r)
		if r := <-held; !r.Held {
			b.Fatal(r.Err)
		}
		must(b, writer.Release())
		reader := curator.ReadLock(b.path)
		if ok, err := reader.TryAcquire(); !ok {
			b.Error("Curator does not read: ", err)
		}
		unlock(b, lock(b, rw.Read()))
		_, err := rw.Write().Lock(within(b), actors.Try())
		is(b, err, actors.ErrNotAcquired)
		must(b, reader.Release())
	})
}

// A Curator process is killed while it holds: we get the lock when its session is over.
func TestCuratorDies(t *testing.T) {
	zktest.OneRunIn(t, 8)
	each(t, func(b *testLock) {
		curator := b.curator(interop.SessionTimeout(8 * time.Second))
		theirs := curator.Mutex(b.path)
		if held, err := theirs.TryAcquire(); !held {
			b.Fatal(err)
		}
		f := b.mutex().Acquire(context.Background())
		b.waitNodes(2)
		pending(b, f)
		curator.Kill()
		unlock(b, result(b, f))
	})
}

// A semaphore of ours and one of Curator's have the same permits.
func TestSemaphoreBesideCurator(t *testing.T) {
	onOneServer(t, func(b *testLock) {
		const permits = 3
		curator := b.curator()
		ours, theirs := map[string]lockClient{}, map[string]*interop.Lock{}
		for i := range 3 {
			ours[fmt.Sprintf("go %d", i)] = sharedClient(b.locks().Semaphore(b.path, permits))
			theirs[fmt.Sprintf("java %d", i)] = curator.Semaphore(b.path, permits)
		}
		b.contend(permits, ours, theirs)
	})
}

// We acquire several permits at once, and Curator the others. Each waits for the other.
func TestPermitsBesideCurator(t *testing.T) {
	onOneServer(t, func(b *testLock) {
		const permits = 4
		theirs, ours := b.curator().Semaphore(b.path, permits), b.locks().Semaphore(b.path, permits)
		g := lock(b, ours, actors.Permits(3))
		if held, err := theirs.Acquire(timeLimit); !held || err != nil {
			b.Fatalf("Curator holds: %v, %v", held, err)
		}
		if held, err := theirs.Acquire(100 * time.Millisecond); held || err != nil {
			b.Fatalf("Curator holds: %v, %v", held, err)
		}
		if n, err := ours.Remaining(within(b)); n != 0 || err != nil {
			b.Errorf("%d remain, %v", n, err)
		}
		next := ours.Acquire(within(b), actors.Permits(4))
		unlock(b, g)
		pending(b, next)
		must(b, theirs.Release())
		g = result(b, next)
		if held, err := theirs.TryAcquire(); held || err != nil {
			b.Errorf("Curator holds what we hold: %v", err)
		}
		unlock(b, g)
	})
}

// A client of Curator that acquires two leases gets the first while we wait for both permits.
// From then on it waits behind us, and we for its lease: the timeout of either ends that, and
// the other gets all.
func TestPermitsBesideCuratorsAcquireOfSeveral(t *testing.T) {
	t.Parallel()
	for _, ours := range []bool{true, false} {
		t.Run(fmt.Sprintf("our timeout %v", ours), func(t *testing.T) {
			onOneServer(t, func(b *testLock) {
				const permits = 2
				leases, s := b.curator().SemaphoreOfSeveral(b.path, permits, 2), b.locks().Semaphore(b.path, permits)
				g := lock(b, s, actors.Permits(2))
				limits := map[bool]time.Duration{true: 4 * time.Second, false: timeLimit}
				theirs := leases.Begin(limits[!ours])
				b.waitSemaphore(1, 3)
				f := s.Acquire(within(b), actors.Permits(2), actors.WithTimeout(limits[ours]))
				b.waitSemaphore(2, 3)
				unlock(b, g)
				if ours {
					is(b, failure(b, f), actors.ErrTimedOut)
				} else {
					unlock(b, result(b, f))
				}
				if r := <-theirs; r.Held != ours || r.Err != nil {
					b.Fatalf("Curator's acquire: %+v", r)
				}
				if ours {
					must(b, leases.Release())
				}
				b.waitSemaphore(0, 0)
			})
		})
	}
}

// Requests for two of three permits, ours with timeouts, exclude each other and Curator's.
func TestSeveralPermitsBesideCurator(t *testing.T) {
	onOneServer(t, func(b *testLock) {
		const permits = 3
		ours := map[string]lockClient{}
		for _, name := range []string{"go", "go too"} {
			ours[name] = sharedClient(retrying{b.locks().Semaphore(b.path, permits)}, actors.Permits(2))
		}
		b.contend(1, ours, map[string]*interop.Lock{"java": b.curator().SemaphoreOfSeveral(b.path, permits, 2)})
	})
}

func TestSemaphoreMutexBesideCurator(t *testing.T) {
	onOneServer(t, func(b *testLock) {
		curator := b.curator()
		b.contend(0, map[string]lockClient{"go": exclusiveClient(b.locks().SemaphoreMutex(b.path)), "go too": exclusiveClient(b.locks().SemaphoreMutex(b.path))},
			map[string]*interop.Lock{"java": curator.SemaphoreMutex(b.path), "java too": curator.SemaphoreMutex(b.path)})
	})
}

// retrying is a handle that requests the lock again and again, each time for a moment.
type retrying struct{ handle }

func (r retrying) Lock(ctx context.Context, options ...actors.Option) (*actors.Grant, error) {
	for {
		g, err := r.handle.Lock(ctx, append(options, actors.WithTimeout(300*time.Millisecond))...)
		if !errors.Is(err, actors.ErrTimedOut) {
			return g, err
		}
	}
}

// A multi-lock of ours contends with one of Curator's. Curator's takes its members one after the
// other. So it may hold one member and wait for another behind ours, which then releases its
// members.
func TestMultiLockBesideCurator(t *testing.T) {
	onOneServer(t, func(b *testLock) {
		locks := b.locks()
		one, two := b.path+"/one", b.path+"/two"
		b.contend(0, map[string]lockClient{"go": exclusiveClient(retrying{locks.MultiLock(locks.Mutex(one), locks.Mutex(two))})},
			map[string]*interop.Lock{"java": b.curator().MultiLock(one, two)})
		conn := b.Client(b)
		for _, path := range []string{one, two} {
			conn.Delete(path, -1) // containers that are not collected yet
		}
	})
}

// Curator's Revoker asks our holder, and our Revoke asks Curator's.
func TestRevocationBesideCurator(t *testing.T) {
	onOneServer(t, func(b *testLock) {
		curator, locks := b.curator(), b.locks()
		g := lock(b, locks.Mutex(b.path), actors.Revocable(), actors.WithData([]byte("me")))
		theirs := curator.Mutex(b.path)
		revoked, err := theirs.MakeRevocable()
		must(b, err)
		held := theirs.Begin(timeLimit)
		b.waitNodes(2)
		must(b, curator.Revoke(g.Node()))
		closes(b, g.Revoked(), "the request to release")
		unlock(b, g)
		if r := <-held; !r.Held {
			b.Fatal(r.Err)
		}
		node, err := theirs.Node()
		must(b, err)
		done := make(chan error, 1)
		go func() {
			broken, err := locks.Revoke(within(b), node, timeLimit)
			if broken {
				err = errors.New("the node was deleted")
			}
			done <- err
		}()
		receive(b, revoked, "the request to Curator's holder")
		must(b, theirs.Release())
		must(b, <-done)
	})
}

// The number of permits is a SharedCount, which either side changes.
func TestSharedCountBesideCurator(t *testing.T) {
	onOneServer(t, func(b *testLock) {
		locks := b.locks()
		count := b.path + "-count"
		s := locks.Semaphore(b.path, 1, actors.SharedPermits(count))
		g := lock(b, s)
		_, err := s.Lock(within(b), actors.Try())
		is(b, err, actors.ErrNotAcquired)
		theirs := b.curator().SharedCount(count, 1)
		waiting := s.Acquire(within(b))
		if !theirs.TryAdd(1) {
			b.Fatal("Curator does not set the count")
		}
		unlock(b, result(b, waiting))
		unlock(b, g)
		must(b, locks.Close()) // a semaphore in use watches its count
		must(b, b.Client(b).Delete(count, -1))
	})
}
