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
	if arguments := os.Getenv(childArguments); arguments != "" {
		childMain(arguments)
	}
	zktest.Main(m)
}

const (
	// timeLimit is how long a test waits for an event that must come, on the slowest machine.
	timeLimit = zktest.TimeLimit
	// longSession is the longest session timeout that the servers grant. A busy machine does not
	// lose such a session.
	longSession = time.Minute
	// shortWait is how long a test waits for an event that must not come.
	shortWait = 300 * time.Millisecond
	// noticeLimit is how long a process may go on with a lock after the deletion of its nodes.
	noticeLimit = 3 * time.Second
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
	cleanups []func() // that clean calls first
}

// clean waits until nothing is left of the lock on the server.
func (b *testLock) clean() {
	b.Helper()
	for _, f := range b.cleanups {
		f()
	}
	b.waitNodes(0)
	b.expectNoMarkerOrWatch()
}

func (b *testLock) expectNoMarkerOrWatch() {
	b.Helper()
	directory, name := filepath.Split(b.path)
	if slices.Contains(b.Nodes(b, directory[:max(len(directory)-1, 1)]), name+heldMarker) {
		b.Errorf("a held marker is left: %s%s", b.path, heldMarker)
	}
	zktest.Eventually(b, b.limit(), func() bool { return b.watches() == 0 }, "no watch is left")
}

// watches returns the number of the test's watches at the server, which on a real server are those
// below the lock's path.
func (b *testLock) watches() int {
	b.Helper()
	if b.Real() {
		return b.WatchesBelow(b, b.path)
	}
	return b.Watches(b)
}

// limit is how long a test waits for nodes and watches.
func (b *testLock) limit() time.Duration {
	if b.Virtual() {
		return time.Hour
	}
	return timeLimit
}

// nodes returns the children of the lock's path, or of that path with an end appended. It leaves
// out the library's own directory, which a chroot has.
func (b *testLock) nodes(end ...string) []string {
	return slices.DeleteFunc(b.Nodes(b, b.path+strings.Join(end, "")), func(name string) bool { return name == "actorlock" })
}

// waitNodes waits until the lock's directory has n children or, with ends, until each directory has
// n whose path is the lock's with one of the ends appended.
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

// locks returns Locks on a connection of their own, which the end of the test closes.
func (b *testLock) locks(configure ...func(*actors.Config)) *actors.Locks {
	b.Helper()
	if b.Virtual() {
		configure = append([]func(*actors.Config){func(cfg *actors.Config) { cfg.SessionTimeout, cfg.Dial = session, b.Dial }}, configure...)
	}
	return connect(b.T, b.Addr(), configure...)
}

func connect(t *testing.T, addr string, configure ...func(*actors.Config)) *actors.Locks {
	t.Helper()
	cfg := actors.Config{SessionTimeout: longSession}
	for _, f := range configure {
		f(&cfg)
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeLimit)
	defer cancel()
	locks, err := actors.Connect(ctx, addr, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { locks.Close() })
	return locks
}

// onBridge returns Locks of actors.New and their bridge, which the end of the test closes.
func (b *testLock) onBridge(configure ...func(*zkbridge.Config)) (*actors.Locks, *zkbridge.Bridge) {
	b.Helper()
	cfg := zkbridge.Config{Servers: b.Addr(), SessionTimeout: longSession, Dial: b.Dial}
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

// idle returns a configuration with an IdleTimeout.
func idle(d time.Duration) func(*actors.Config) {
	return func(cfg *actors.Config) { cfg.IdleTimeout = d }
}

// within returns a context that ends when an event that must come is overdue.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), timeLimit)
	t.Cleanup(cancel)
	return ctx
}

// handle is a handle of any recipe.
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

// result waits for the future, which must have no error.
func result[T any](t testing.TB, f *actors.Future[T]) T {
	t.Helper()
	v, err := f.Wait(within(t))
	if err != nil {
		t.Fatalf("future: %v", err)
	}
	return v
}

// failure waits for the future, which must have an error, and returns the error.
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

// closes waits until a channel is closed.
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

// pending checks that the futures are not complete.
func pending(t testing.TB, fs ...*actors.Future[*actors.Grant]) {
	t.Helper()
	for i, f := range fs {
		if isClosed(f.Done()) {
			_, err := f.Result()
			t.Errorf("future %d is complete: %v", i, err)
		}
	}
}

// bySequence compares nodes by their sequence numbers.
func bySequence(x, y string) int { return strings.Compare(x[len(x)-10:], y[len(y)-10:]) }

// expectIncreasing checks that each token is greater than the one before it.
func expectIncreasing(t testing.TB, tokens ...actors.Token) {
	t.Helper()
	for i, token := range tokens[1:] {
		if token.Compare(tokens[i]) <= 0 {
			t.Errorf("token %v after %v", token, tokens[i])
		}
	}
}

// waitState waits until the session is in a state.
func waitState(t testing.TB, locks *actors.Locks, want messages.SessionState) {
	t.Helper()
	zktest.Eventually(t, timeLimit, func() bool { return locks.Session().State == want }, "session is %v", want)
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

// expire ends the session, and waits for the next one.
func (b *testLock) expire(locks *actors.Locks) {
	b.Helper()
	old := locks.Session()
	b.Expire(b, old.ID)
	b.waitNewSession(locks, old)
}

// waitNewSession waits until the process has a session after an old one.
func (b *testLock) waitNewSession(locks *actors.Locks, old zkbridge.Session) {
	b.Helper()
	zktest.Eventually(b, timeLimit, func() bool {
		s := locks.Session()
		return s.State == messages.SessionState_CONNECTED && s.Epoch > old.Epoch
	}, "a new session")
}

// collectUntil collects garbage until cond returns true.
func collectUntil(t testing.TB, cond func() bool, what string) {
	t.Helper()
	zktest.Eventually(t, timeLimit, func() bool { runtime.GC(); return cond() }, "%s", what)
}

// isClear checks that an error is ErrInvalid, names the value, and says which values are accepted.
func isClear(t *testing.T, err error, value string) {
	t.Helper()
	is(t, err, actors.ErrInvalid)
	if err == nil {
		t.Errorf("%q is accepted", value)
		return
	}
	text := err.Error()
	printable := strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' })
	if !printable && !strings.Contains(text, value) {
		t.Errorf("the error does not name %q: %v", value, err)
	}
	if !strings.Contains(text, "must") && !strings.Contains(text, "limit") && !strings.Contains(text, "use ") && !strings.Contains(text, "not supported") &&
		!strings.Contains(text, "accepted") && !strings.Contains(text, "not allowed") && !strings.Contains(text, "missing") && !strings.Contains(text, "cannot") && !strings.Contains(text, "stands in brackets") {
		t.Errorf("the error does not say what is accepted: %v", err)
	}
}

// errOf returns the error of a call with two results.
func errOf[T any](_ T, err error) error { return err }

// contains checks that a text has all of the parts.
func contains(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s has no %q", text, part)
		}
	}
}
