package recipes

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// fixture starts actors by their recipes, without the public handles.
type fixture struct {
	*testing.T
	*manager.Manager
}

type dialer = func(context.Context, string, string) (net.Conn, error)

func newFixture(t *testing.T, address string, dial dialer) fixture {
	t.Helper()
	system := host.NewSystem(nil, nil)
	bridge, err := zkbridge.Open(system, zkbridge.Config{Servers: address, Dial: dial})
	if err != nil {
		t.Fatal(err)
	}
	m := manager.New(system, bridge, manager.Settings{Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() {
		if err := bridge.Close(); err != nil {
			t.Error(err)
		}
		system.Close()
	})
	if err := bridge.Connected(t.Context()); err != nil {
		t.Fatal(err)
	}
	return fixture{t, m}
}

func (f fixture) entry(path string, r *manager.Recipe) *manager.Entry {
	f.Helper()
	e, err := f.Find(path, r)
	if err != nil {
		f.Fatal(err)
	}
	return e
}

// acquire acquires a lock, and fails the test if that is not granted.
func (f fixture) acquire(e *manager.Entry, msg *messages.Acquire) {
	f.Helper()
	if _, err := (messages.LockRef{To: e.Self}).Acquire(msg).Wait(f.Context()); err != nil {
		f.Fatal(err)
	}
}

// refused checks that a request is refused.
func (f fixture) refused(e *manager.Entry, msg *messages.Acquire) {
	f.Helper()
	if _, err := (messages.LockRef{To: e.Self}).Acquire(msg).Wait(f.Context()); err == nil {
		f.Errorf("granted: %v", msg)
	}
}

func (f fixture) release(e *manager.Entry, owner string, id uint64) {
	f.Helper()
	if _, err := (messages.LockRef{To: e.Self}).Release(&messages.Release{Owner: owner, RequestId: id}).Wait(f.Context()); err != nil {
		f.Error(err)
	}
}

func multiLockOf(t *testing.T, members ...manager.Member) *manager.Recipe {
	t.Helper()
	r, err := MultiLock(members)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Requests that fail, in any way, leave nothing in the actors of the multi-lock and of its members.
func TestMultiLockLeavesNothingBehind(t *testing.T) {
	s := zktest.Embedded(t)
	f := newFixture(t, s.Addr(), nil)
	x, y, permit := manager.Member{Path: "/x", Recipe: Mutex}, manager.Member{Path: "/y", Recipe: Mutex},
		manager.Member{Path: "/s", Recipe: Semaphore(1, "")}
	xEntry, permitEntry := f.entry(x.Path, x.Recipe), f.entry(permit.Path, permit.Recipe)
	blockedMember := map[*manager.Entry]*manager.Entry{ // of each multi-lock
		f.entry("x, y", multiLockOf(t, x, y)):                 xEntry,
		f.entry("y, x, permit", multiLockOf(t, y, x, permit)): xEntry,
		f.entry("x, permit", multiLockOf(t, x, permit)):       permitEntry,
	}
	for multi, member := range blockedMember {
		f.acquire(member, &messages.Acquire{Owner: "me"})
		for range 5 {
			future := messages.LockRef{To: multi.Self}.Acquire(&messages.Acquire{Owner: "you"})
			future.Cancel()
			if _, err := future.Wait(t.Context()); err == nil {
				t.Error("a cancelled request is granted")
			}
			for _, msg := range []*messages.Acquire{{Owner: "other", Try: true}, {Owner: "me", WaitNanos: int64(time.Minute)}, {Owner: "late", WaitNanos: int64(time.Millisecond)}} {
				f.refused(multi, msg)
			}
		}
		f.release(member, "me", 0)
		for range 2 {
			f.acquire(multi, &messages.Acquire{Owner: "me"})
			f.release(multi, "me", 0)
		}
	}
	actors := []host.Actor{xEntry.Self.Actor(), f.entry(y.Path, y.Recipe).Self.Actor(), permitEntry.Self.Actor()}
	for multi := range blockedMember {
		actors = append(actors, multi.Self.Actor())
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	for _, a := range actors {
		var left []int
		switch a := a.(type) {
		case *lockActor:
			left = []int{len(a.queue.creates), len(maps.Collect(a.Requests()))}
		case *semaphoreActor:
			left = []int{len(a.queue.creates), len(a.leases.creates), len(maps.Collect(a.Requests()))}
			if !a.state.Idle() || a.create != nil {
				t.Errorf("the semaphore %s is not idle", a.Path)
			}
		case *multiLockActor:
			left = []int{len(a.attempts), a.byRequest.Len(), len(a.byOwner), len(maps.Collect(a.Requests()))}
		}
		if slices.Max(left) > 0 {
			t.Errorf("a %T has entries left: %v", a, left)
		}
	}
}

// firstMember is the number of the first member of a multi-lock's first request.
const firstMember = 1 << memberBits

// ofTwo returns a multi-lock of two, and a request for it.
func (f fixture) ofTwo() (*manager.Entry, *messages.Acquire) {
	f.Helper()
	return f.entry("/whole", multiLockOf(f.T, manager.Member{Path: "/a", Recipe: Mutex}, manager.Member{Path: "/b", Recipe: Mutex})), &messages.Acquire{Owner: "me"}
}

// whileReleasing runs test during the release of a multi-lock, which the server does not answer.
func whileReleasing(t *testing.T, test func(f fixture, multi *manager.Entry, released *ask.Future[*messages.Released], s *embedded.Server)) {
	zktest.Bubble(t, func(t *testing.T) {
		s := embedded.Run(t, embedded.ServerConfig{MemoryOnly: true, TickTime: 100 * time.Millisecond, MaxSessionTimeout: time.Minute})
		f := newFixture(t, "embedded:1", s.Dial)
		multi, acquire := f.ofTwo()
		f.acquire(multi, acquire)
		s.Pause()
		released := messages.LockRef{To: multi.Self}.Release(&messages.Release{Owner: "me"})
		synctest.Wait()
		test(f, multi, released, s)
	})
}

// checkReusable acquires and releases the lock of an actor, and closes all.
func (f fixture) checkReusable(e *manager.Entry, acquire *messages.Acquire) {
	f.Helper()
	f.acquire(e, acquire)
	f.release(e, "me", 0)
	if err := f.Close(); err != nil {
		f.Error(err)
	}
}

// The members are lost during the release of the multi-lock. The release fails with the reason of
// the loss once all members have answered it, and nothing is left.
func TestLossCrossesRelease(t *testing.T) {
	whileReleasing(t, func(f fixture, multi *manager.Entry, released *ask.Future[*messages.Released], s *embedded.Server) {
		for _, id := range []uint64{firstMember, firstMember + 1} {
			ask.Send(multi.Self, &messages.Lost{RequestId: id, Reason: messages.Reason_NODE_DELETED}, nil)
		}
		synctest.Wait()
		select {
		case <-released.Done():
			f.Error("the release is answered before the members have answered")
		default:
		}
		s.Resume()
		if _, err := released.Wait(f.Context()); !errors.Is(err, messages.Reason_NODE_DELETED) {
			f.Errorf("the release ended with %v", err)
		}
		f.checkReusable(multi, &messages.Acquire{Owner: "me", Try: true})
	})
}

// The actor of a member fails during the release of the multi-lock, whose actor stops, too. The
// next request finds new actors.
func TestMemberFailsDuringRelease(t *testing.T) {
	whileReleasing(t, func(f fixture, multi *manager.Entry, released *ask.Future[*messages.Released], s *embedded.Server) {
		ask.Send(multi.Self, &messages.Refused{RequestId: firstMember, Reason: messages.Reason_INTERNAL}, nil)
		if _, err := released.Wait(f.Context()); !errors.Is(err, messages.Reason_INTERNAL) {
			f.Errorf("the release ended with %v", err)
		}
		s.Resume()
		again, acquire := f.ofTwo()
		if again == multi {
			f.Error("the next request has the same actor")
		}
		f.checkReusable(again, acquire)
	})
}
