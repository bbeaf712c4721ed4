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

	"github.com/actorlock/actorlock/actors/internal/shell"
	"github.com/actorlock/actorlock/actors/queue"
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
	*shell.Manager
}

type dialer = func(context.Context, string, string) (net.Conn, error)

func newFixture(t *testing.T, address string, dial dialer) fixture {
	t.Helper()
	system := host.NewSystem(nil, nil)
	bridge, err := zkbridge.Open(system, zkbridge.Config{Servers: address, Dial: dial})
	if err != nil {
		t.Fatal(err)
	}
	m := shell.NewManager(system, bridge, shell.Settings{Log: slog.New(slog.DiscardHandler)})
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

func (f fixture) entry(path string, r *shell.Recipe) *shell.Entry {
	f.Helper()
	e, err := f.Find(path, r)
	if err != nil {
		f.Fatal(err)
	}
	return e
}

// acquire acquires a lock, and fails the test if that is not granted.
func (f fixture) acquire(e *shell.Entry, msg *messages.Acquire) {
	f.Helper()
	if _, err := (messages.LockRef{To: e.Self}).Acquire(msg).Wait(f.Context()); err != nil {
		f.Fatal(err)
	}
}

// refused checks that a request is refused.
func (f fixture) refused(e *shell.Entry, msg *messages.Acquire) {
	f.Helper()
	if _, err := (messages.LockRef{To: e.Self}).Acquire(msg).Wait(f.Context()); err == nil {
		f.Errorf("granted: %v", msg)
	}
}

func (f fixture) release(e *shell.Entry, owner string, id uint64) {
	f.Helper()
	if _, err := (messages.LockRef{To: e.Self}).Release(&messages.Release{Owner: owner, RequestId: id}).Wait(f.Context()); err != nil {
		f.Error(err)
	}
}

func multiLockOf(members ...shell.Dependency) *shell.Recipe {
	return MultiLock("multi-lock", members, make([]queue.Kind, len(members)))
}

// Requests that fail, in any way, leave nothing in the actors of the multi-lock and of its members.
func TestMultiLockLeavesNothingBehind(t *testing.T) {
	s := zktest.Embedded(t)
	f := newFixture(t, s.Addr(), nil)
	x, y, permit := shell.Dependency{Path: "/x", Recipe: Mutex}, shell.Dependency{Path: "/y", Recipe: Mutex},
		shell.Dependency{Path: "/s", Recipe: Semaphore(1, "")}
	xEntry, permitEntry := f.entry(x.Path, x.Recipe), f.entry(permit.Path, permit.Recipe)
	blockedMember := map[*shell.Entry]*shell.Entry{ // of each multi-lock
		f.entry("x, y", multiLockOf(x, y)):                 xEntry,
		f.entry("y, x, permit", multiLockOf(y, x, permit)): xEntry,
		f.entry("x, permit", multiLockOf(x, permit)):       permitEntry,
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
	for _, dep := range permitEntry.Deps {
		actors = append(actors, dep.Self.Actor())
	}
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
			left = []int{len(a.atomicCreates), len(maps.Collect(a.Requests()))}
		case *semaphoreActor:
			left = []int{len(maps.Collect(a.Requests()))}
			if !a.state.Idle() || a.create != nil {
				t.Errorf("the semaphore %s is not idle", a.Path)
			}
		case *multiLockActor:
			left = []int{len(a.attempts), len(a.byRequest), len(a.byOwner), len(maps.Collect(a.Requests()))}
		}
		if slices.Max(left) > 0 {
			t.Errorf("a %T has entries left: %v", a, left)
		}
	}
}

// wholes are the locks of two parts: two members or two leases. Each has the number of the first part of its first request.
var wholes = map[string]uint64{"multi-lock": 1 << memberBits, "semaphore": 2}

// whole returns a lock of wholes, and a request for it.
func (f fixture) whole(name string) (*shell.Entry, *messages.Acquire) {
	f.Helper()
	if name == "multi-lock" {
		return f.entry("/whole", multiLockOf(shell.Dependency{Path: "/a", Recipe: Mutex}, shell.Dependency{Path: "/b", Recipe: Mutex})), &messages.Acquire{Owner: "me"}
	}
	return f.entry("/whole", Semaphore(2, "")), &messages.Acquire{Owner: "me", Permits: 2}
}

// releasingWhole is a lock of wholes during its release, which the server does not answer.
type releasingWhole struct {
	fixture
	name     string
	part     uint64 // number of the first part
	entry    *shell.Entry
	acquire  *messages.Acquire
	released *ask.Future[*messages.Released]
	server   *embedded.Server
}

// eachReleasingWhole runs test with each lock of wholes, in virtual time.
func eachReleasingWhole(t *testing.T, test func(t *testing.T, w releasingWhole)) {
	for name, part := range wholes {
		t.Run(name, func(t *testing.T) {
			zktest.Bubble(t, func(t *testing.T) {
				s := embedded.Run(t, embedded.ServerConfig{MemoryOnly: true, TickTime: 100 * time.Millisecond, MaxSessionTimeout: time.Minute})
				w := releasingWhole{fixture: newFixture(t, "embedded:1", s.Dial), name: name, part: part, server: s}
				w.entry, w.acquire = w.whole(name)
				w.fixture.acquire(w.entry, w.acquire)
				s.Pause()
				w.released = messages.LockRef{To: w.entry.Self}.Release(&messages.Release{Owner: "me"})
				synctest.Wait()
				test(t, w)
			})
		})
	}
}

// checkReusable acquires and releases the whole by an actor, and closes all.
func (w releasingWhole) checkReusable(e *shell.Entry, acquire *messages.Acquire) {
	w.Helper()
	w.fixture.acquire(e, acquire)
	w.release(e, "me", 0)
	if err := w.Close(); err != nil {
		w.Error(err)
	}
}

// The parts are lost during the release of the whole. The release fails with the reason of the loss once all parts have
// answered it, and nothing is left.
func TestLossCrossesRelease(t *testing.T) {
	eachReleasingWhole(t, func(t *testing.T, w releasingWhole) {
		for _, id := range []uint64{w.part, w.part + 1} {
			ask.Send(w.entry.Self, &messages.Lost{RequestId: id, Reason: messages.Reason_NODE_DELETED}, nil)
		}
		synctest.Wait()
		select {
		case <-w.released.Done():
			t.Error("the release is answered before the parts have answered")
		default:
		}
		w.server.Resume()
		if _, err := w.released.Wait(t.Context()); !errors.Is(err, messages.Reason_NODE_DELETED) {
			t.Errorf("the release ended with %v", err)
		}
		w.acquire.Try = true
		w.checkReusable(w.entry, w.acquire)
	})
}

// The actor of a part fails during the release of the whole. The actor of the whole stops, too, and the next request finds new
// actors.
func TestPartFailsDuringRelease(t *testing.T) {
	eachReleasingWhole(t, func(t *testing.T, w releasingWhole) {
		ask.Send(w.entry.Self, &messages.Refused{RequestId: w.part, Reason: messages.Reason_INTERNAL}, nil)
		if _, err := w.released.Wait(t.Context()); !errors.Is(err, messages.Reason_INTERNAL) {
			t.Errorf("the release ended with %v", err)
		}
		w.server.Resume()
		again, acquire := w.whole(w.name)
		if again == w.entry {
			t.Error("the next request has the same actor")
		}
		w.checkReusable(again, acquire)
	})
}
