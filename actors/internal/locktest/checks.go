package locktest

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Within returns a context that ends when an event that must come is overdue.
func Within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), zktest.TimeLimit)
	t.Cleanup(cancel)
	return ctx
}

// Handle is a handle of any recipe.
type Handle interface {
	Path() string
	PID() (*actor.PID, error)
	Acquire(context.Context, ...actors.Option) *actors.Future[*actors.Grant]
	Lock(context.Context, ...actors.Option) (*actors.Grant, error)
}

// Lock acquires the lock, which must succeed.
func Lock(t testing.TB, mu Handle, options ...actors.Option) *actors.Grant {
	t.Helper()
	g, err := mu.Lock(Within(t), options...)
	if err != nil {
		t.Fatalf("lock %s: %v", mu.Path(), err)
	}
	return g
}

// Result waits for the future, which must have no error.
func Result[T any](t testing.TB, f *actors.Future[T]) T {
	t.Helper()
	v, err := f.Wait(Within(t))
	if err != nil {
		t.Fatalf("future: %v", err)
	}
	return v
}

// Failure waits for the future, which must have an error, and returns the error.
func Failure[T any](t testing.TB, f *actors.Future[T]) error {
	t.Helper()
	Closes(t, f.Done(), "the future")
	_, err := f.Result()
	if err == nil {
		t.Fatal("future: no error")
	}
	return err
}

// Unlock releases the grant, which must succeed.
func Unlock(t testing.TB, g *actors.Grant) {
	t.Helper()
	if err := g.Unlock(Within(t)); err != nil {
		t.Fatalf("unlock: %v", err)
	}
}

// Closes waits until a channel is closed.
func Closes(t testing.TB, c <-chan struct{}, what string) {
	t.Helper()
	Receive(t, c, "the end of "+what)
}

// Receive waits for a value that must come, or for the end of the channel.
func Receive[T any](t testing.TB, c <-chan T, what string) (v T, open bool) {
	t.Helper()
	select {
	case v, open = <-c:
	case <-Within(t).Done():
		t.Fatalf("%s does not come", what)
	}
	return v, open
}

// IsClosed reports whether a channel is closed.
func IsClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Is checks that an error is the wanted one.
func Is(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
}

// Must ends the test at an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Pending checks that the futures are not complete.
func Pending(t testing.TB, fs ...*actors.Future[*actors.Grant]) {
	t.Helper()
	for i, f := range fs {
		if IsClosed(f.Done()) {
			_, err := f.Result()
			t.Errorf("future %d is complete: %v", i, err)
		}
	}
}

// BySequence compares nodes by their sequence numbers.
func BySequence(x, y string) int { return strings.Compare(x[len(x)-10:], y[len(y)-10:]) }

// ExpectIncreasing checks that each token is greater than the one before it.
func ExpectIncreasing(t testing.TB, tokens ...actors.Token) {
	t.Helper()
	for i, token := range tokens[1:] {
		if token.Compare(tokens[i]) <= 0 {
			t.Errorf("token %v after %v", token, tokens[i])
		}
	}
}

// WaitState waits until the session is in a state.
func WaitState(t testing.TB, locks *actors.Locks, want messages.SessionState) {
	t.Helper()
	zktest.Eventually(t, zktest.TimeLimit, func() bool { return locks.Session().State == want }, "session is %v", want)
}

// CollectUntil collects garbage until cond returns true.
func CollectUntil(t testing.TB, cond func() bool, what string) {
	t.Helper()
	zktest.Eventually(t, zktest.TimeLimit, func() bool { runtime.GC(); return cond() }, "%s", what)
}

// ExpectClear checks that an error is ErrInvalid, names the value, and says which values are
// accepted.
func ExpectClear(t *testing.T, err error, value string) {
	t.Helper()
	Is(t, err, actors.ErrInvalid)
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

// ErrOf returns the error of a call with two results.
func ErrOf[T any](_ T, err error) error { return err }

// ExpectParts checks that a text has all of the parts.
func ExpectParts(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s has no %q", text, part)
		}
	}
}

// ErrEnough is a cause for which a test ends a context.
var ErrEnough = errors.New("enough")
