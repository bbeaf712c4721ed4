package actors_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

func TestMain(m *testing.M) {
	if how := os.Getenv(asProcess); how != "" {
		beProcess(how)
	}
	zktest.Main(m)
}

const (
	// patience is how long a test waits for what must come, on the slowest machine.
	patience = time.Minute
	// calm is the longest session that the servers grant. A machine that is busy with other
	// things does not lose it.
	calm = time.Minute
	// session is the session timeout of tests in virtual time.
	session = 6 * time.Second
	// heldMarker ends the path of a lock's held marker.
	heldMarker = "-__held__"
)

// testLock is one server and one lock's path on it.
type testLock struct {
	*testing.T
	*zktest.Server
	path     string
	parallel bool
	before   []func() // to be done before clean
}

// clean waits until nothing is left of the lock on the server.
func (b *testLock) clean() {
	b.Helper()
	for _, f := range b.before {
		f()
	}
	b.waitNodes(0)
	b.noMarkerNorWatch()
}

func (b *testLock) noMarkerNorWatch() {
	b.Helper()
	directory, name := filepath.Split(b.path)
	if slices.Contains(b.Nodes(b, directory[:max(len(directory)-1, 1)]), name+heldMarker) {
		b.Errorf("a held marker is left: %s%s", b.path, heldMarker)
	}
	if b.parallel && b.Real() {
		return
	}
	zktest.Eventually(b, b.limit(), func() bool { return b.Watches(b) == 0 }, "no watch is left")
}

// limit is how long a test waits for nodes and watches.
func (b *testLock) limit() time.Duration {
	if b.Virtual() {
		return time.Hour
	}
	return patience
}

// nodes are the children of the lock's path, or of the path that begins with it and has an end, without the
// library's own directory if that path is a chroot.
func (b *testLock) nodes(end ...string) []string {
	return slices.DeleteFunc(b.Nodes(b, b.path+strings.Join(end, "")), func(name string) bool { return name == "actorlock" })
}

// waitNodes waits until the lock's directory has n children. With ends, each directory whose path is the lock's
// and one of them has n children.
func (b *testLock) waitNodes(n int, ends ...string) {
	b.Helper()
	if len(ends) == 0 {
		ends = []string{""}
	}
	for _, end := range ends {
		var nodes []string
		zktest.Eventually(b, b.limit(), func() bool { nodes = b.nodes(end); return len(nodes) == n },
			"%d nodes under %s: %v", n, b.path+end, &nodes)
	}
}

// locks connects, until the test ends.
func (b *testLock) locks(configure ...func(*actors.Config)) *actors.Locks {
	b.Helper()
	if b.Virtual() {
		configure = append([]func(*actors.Config){func(cfg *actors.Config) { cfg.SessionTimeout, cfg.Dial = session, b.Dial }}, configure...)
	}
	return connect(b.T, b.Addr(), configure...)
}

func connect(t *testing.T, addr string, configure ...func(*actors.Config)) *actors.Locks {
	t.Helper()
	cfg := actors.Config{SessionTimeout: calm}
	for _, f := range configure {
		f(&cfg)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	locks, err := actors.Connect(ctx, addr, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { locks.Close() })
	return locks
}

// onBridge returns Locks of actors.New and their bridge, which live as long as the test.
func (b *testLock) onBridge(configure ...func(*zkbridge.Config)) (*actors.Locks, *zkbridge.Bridge) {
	b.Helper()
	cfg := zkbridge.Config{Servers: b.Addr(), SessionTimeout: calm, Dial: b.Dial}
	if b.Virtual() {
		cfg.SessionTimeout = session
	}
	for _, f := range configure {
		f(&cfg)
	}
	system := host.NewSystem(nil, nil)
	bridge, err := zkbridge.Open(system, cfg)
	must(b, err)
	locks := actors.New(system, bridge, actors.Config{})
	b.Cleanup(func() {
		locks.Close()
		bridge.Close()
		system.Close()
	})
	must(b, bridge.Connected(within(b)))
	return locks, bridge
}

// mutex is the lock on a connection of its own.
func (b *testLock) mutex(configure ...func(*actors.Config)) *actors.Mutex {
	b.Helper()
	return b.locks(configure...).Mutex(b.path)
}

// within is a context for what must come soon.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// handle is a lock of any recipe.
type handle interface {
	Path() string
	PID() (*actor.PID, error)
	Acquire(context.Context, ...actors.Option) *actors.Future[*actors.Grant]
	Lock(context.Context, ...actors.Option) (*actors.Grant, error)
}

func lock(t testing.TB, mu handle, options ...actors.Option) *actors.Grant {
	t.Helper()
	g, err := mu.Lock(within(t), options...)
	if err != nil {
		t.Fatalf("lock %s: %v", mu.Path(), err)
	}
	return g
}

// result waits for what must come.
func result[T any](t testing.TB, f *actors.Future[T]) T {
	t.Helper()
	v, err := f.Wait(within(t))
	if err != nil {
		t.Fatalf("future: %v", err)
	}
	return v
}

// failure waits for an error that must come.
func failure[T any](t testing.TB, f *actors.Future[T]) error {
	t.Helper()
	closes(t, f.Done(), "the future")
	_, err := f.Result()
	if err == nil {
		t.Fatal("future: no error")
	}
	return err
}

func unlock(t testing.TB, g *actors.Grant) {
	t.Helper()
	if err := g.Unlock(within(t)); err != nil {
		t.Fatalf("unlock: %v", err)
	}
}

func closes(t testing.TB, c <-chan struct{}, what string) {
	t.Helper()
	receive(t, c, "the end of "+what)
}

// receive waits for a value that must come, or for the end of the channel.
func receive[T any](t testing.TB, c <-chan T, what string) (v T, open bool) {
	t.Helper()
	select {
	case v, open = <-c:
	case <-within(t).Done():
		t.Fatalf("%s does not come", what)
	}
	return v, open
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func is(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// pending checks that nothing has come of the requests yet.
func pending(t testing.TB, fs ...*actors.Future[*actors.Grant]) {
	t.Helper()
	for i, f := range fs {
		if isClosed(f.Done()) {
			_, err := f.Result()
			t.Errorf("future %d is complete: %v", i, err)
		}
	}
}

// state waits for a state of the session.
func state(t testing.TB, locks *actors.Locks, want messages.SessionState) {
	t.Helper()
	zktest.Eventually(t, patience, func() bool { return locks.Session().State == want }, "session is %v", want)
}

// remove deletes nodes in one transaction, as another client.
func (b *testLock) remove(nodes ...string) {
	b.Helper()
	var deletes []any
	for _, node := range nodes {
		deletes = append(deletes, &zk.DeleteRequest{Path: node, Version: -1})
	}
	_, err := b.Client(b).Multi(deletes...)
	must(b, err)
}

// expire ends the session and waits until the next one is up.
func (b *testLock) expire(locks *actors.Locks) {
	b.Helper()
	old := locks.Session()
	b.Expire(b, old.ID)
	b.renewed(locks, old)
}

// renewed waits until the session after an old one is up.
func (b *testLock) renewed(locks *actors.Locks, old zkbridge.Session) {
	b.Helper()
	zktest.Eventually(b, patience, func() bool {
		s := locks.Session()
		return s.State == messages.SessionState_CONNECTED && s.Epoch > old.Epoch
	}, "a new session")
}

// collected collects garbage until cond holds.
func collected(t testing.TB, cond func() bool, what string) {
	t.Helper()
	zktest.Eventually(t, patience, func() bool { runtime.GC(); return cond() }, "%s", what)
}
