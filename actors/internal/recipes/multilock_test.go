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

// acquire holds the lock, or fails the test if that is not granted.
func (f fixture) acquire(e *shell.Entry, msg *messages.Acquire) {
	f.Helper()
	if _, err := (messages.LockRef{To: e.Self}).Acquire(msg).Wait(f.Context()); err != nil {
		f.Fatal(err)
	}
}

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

// Requests that have failed leave nothing behind in the actors: not in the multi-lock's, nor
// in those of its members, in whatever way they have failed.
func TestMultiLockLeavesNothingBehind(t *testing.T) {
	s := zktest.Embedded(t)
	f := newFixture(t, s.Addr(), nil)
	x, y, permit := shell.Dependency{Path: "/x", Recipe: Mutex}, shell.Dependency{Path: "/y", Recipe: Mutex},
		shell.Dependency{Path: "/s", Recipe: Semaphore(1, "")}
	xEntry, permitEntry := f.entry(x.Path, x.Recipe), f.entry(permit.Path, permit.Recipe)
	all := map[*shell.Entry]*shell.Entry{
		f.entry("x, y", multiLockOf(x, y)):                 xEntry,
		f.entry("y, x, permit", multiLockOf(y, x, permit)): xEntry,
		f.entry("x, permit", multiLockOf(x, permit)):       permitEntry,
	}
	for multi, blocked := range all {
		f.acquire(blocked, &messages.Acquire{Owner: "me"})
		for range 5 {
			asked := messages.LockRef{To: multi.Self}.Acquire(&messages.Acquire{Owner: "you"})
			asked.Cancel()
			if _, err := asked.Wait(t.Context()); err == nil {
				t.Error("granted")
			}
			for _, msg := range []*messages.Acquire{{Owner: "other", Try: true}, {Owner: "me", WaitNanos: int64(time.Minute)}, {Owner: "late", WaitNanos: int64(time.Millisecond)}} {
				f.refused(multi, msg)
			}
		}
		f.release(blocked, "me", 0)
		for range 2 {
			f.acquire(multi, &messages.Acquire{Owner: "me"})
			f.release(multi, "me", 0)
		}
	}
	actors := []host.Actor{xEntry.Self.Actor(), f.entry(y.Path, y.Recipe).Self.Actor(), permitEntry.Self.Actor()}
	for _, dep := range permitEntry.Deps {
		actors = append(actors, dep.Self.Actor())
	}
	for multi := range all {
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
				t.Errorf("%s: it is not idle", a.Path)
			}
		case *multiLockActor:
			left = []int{len(a.attempts), len(a.byRequest), len(a.byOwner), len(maps.Collect(a.Requests()))}
		}
		if slices.Max(left) > 0 {
			t.Errorf("a %T has entries left: %v", a, left)
		}
	}
}

// A request waits for the node of another request of its owner, for a larger multi-lock. That
// one ends before its nodes are made: the first has not been cancelled, and begins anew.
func TestMultiLockOutlivesAnother(t *testing.T) {
	zktest.Bubble(t, func(t *testing.T) {
		s := embedded.Run(t, embedded.ServerConfig{MemoryOnly: true, TickTime: 100 * time.Millisecond, MaxSessionTimeout: time.Minute})
		f := newFixture(t, "embedded:1", s.Dial)
		lock := f.entry("/a", Mutex)
		larger := &atomicCreate{bridge: f.Bridge.Bridge, number: lastAtomicCreate.Add(1), owner: "me", members: 2, unreported: 2}
		ask.Send(lock.Self, acquireMember{&messages.Acquire{RequestId: 1, Owner: "me"}, larger, false}, f.Manager)
		synctest.Wait() // that member has handed in its node, the other has not
		multi := f.entry("multi", multiLockOf(shell.Dependency{Path: "/a", Recipe: Mutex}))
		waiting := messages.LockRef{To: multi.Self}.Acquire(&messages.Acquire{Owner: "me"})
		synctest.Wait()
		larger.abort()
		ask.Send(lock.Self, &messages.Cancel{RequestId: 1, Owner: "me"}, f.Manager)
		if _, err := waiting.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.release(multi, "me", 0)
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
}

// wholes are locks that consist of two parts, and the number of the first part in the first request: the
// first attempt's first member, and the first lease.
var wholes = map[string]uint64{"multi-lock": 1 << memberBits, "semaphore": 2}

func (f fixture) whole(name string) (*shell.Entry, *messages.Acquire) {
	f.Helper()
	if name == "multi-lock" {
		return f.entry("/whole", multiLockOf(shell.Dependency{Path: "/a", Recipe: Mutex}, shell.Dependency{Path: "/b", Recipe: Mutex})), &messages.Acquire{Owner: "me"}
	}
	return f.entry("/whole", Semaphore(2, "")), &messages.Acquire{Owner: "me", Permits: 2}
}

// releasingWhole is a lock of wholes that is held and being released, while the server does not answer.
type releasingWhole struct {
	fixture
	name     string
	part     uint64 // the first of its two
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

// acquiredAgain acquires and releases the whole by the actor of an entry, and closes all.
func (w releasingWhole) acquiredAgain(e *shell.Entry, acquire *messages.Acquire) {
	w.Helper()
	w.fixture.acquire(e, acquire)
	w.release(e, "me", 0)
	if err := w.Close(); err != nil {
		w.Error(err)
	}
}

// The loss of the parts and the release of the whole cross: the owner gets the reason of the loss once all
// parts have answered the release, and nothing is left.
func TestLossCrossesRelease(t *testing.T) {
	eachReleasingWhole(t, func(t *testing.T, w releasingWhole) {
		for _, id := range []uint64{w.part, w.part + 1} {
			ask.Send(w.entry.Self, &messages.Lost{RequestId: id, Reason: messages.Reason_NODE_DELETED}, nil)
		}
		synctest.Wait()
		select {
		case <-w.released.Done():
			t.Error("the release is answered before its parts are")
		default:
		}
		w.server.Resume()
		if _, err := w.released.Wait(t.Context()); !errors.Is(err, messages.Reason_NODE_DELETED) {
			t.Errorf("the release ended with %v", err)
		}
		w.acquire.Try = true
		w.acquiredAgain(w.entry, w.acquire)
	})
}

// The actor of a part has failed when its answer to the release comes. The actor of the whole stops, too, and the
// next request finds new actors.
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
		w.acquiredAgain(again, acquire)
	})
}
