package ask_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/actorlock/actorlock/gen/ask"
)

// timeLimit is how long a test waits for an event that must come, on the slowest machine.
const timeLimit = 3 * time.Minute

var errAnswer = errors.New("the answer is an error")

// hook is a Producer that counts the calls of Abandoned.
type hook struct {
	calls atomic.Int32
	value atomic.Pointer[string]
	cause atomic.Pointer[error]
}

func (h *hook) Abandoned(value *string, cause error) {
	h.calls.Add(1)
	h.value.Store(value)
	h.cause.Store(&cause)
}

// errCancelledOrder is ErrCancelled with the name of what was cancelled.
var errCancelledOrder = fmt.Errorf("order 7: %w", ask.ErrCancelled)

func (h *hook) CancelError() error { return errCancelledOrder }

func (h *hook) expect(t *testing.T, calls int, value *string, cause error) {
	t.Helper()
	if n := h.calls.Load(); int(n) != calls {
		t.Fatalf("Abandoned was called %d times, not %d", n, calls)
	}
	if calls == 0 {
		return
	}
	if got := h.value.Load(); got != value {
		t.Errorf("Abandoned got the value %v, not %v", got, value)
	}
	if got := *h.cause.Load(); !errors.Is(got, cause) {
		t.Errorf("Abandoned got the cause %v, not %v", got, cause)
	}
}

func text(s string) *string { return &s }

func complete(f *ask.Future[*string]) bool {
	select {
	case <-f.Done():
		return true
	default:
		return false
	}
}

func TestCompletesOnce(t *testing.T) {
	p := ask.NewPromise[*string](nil)
	f := p.Future()
	if complete(f) {
		t.Fatal("complete before it has a value")
	}
	first := text("first")
	if !p.Complete(first, nil) || p.Complete(text("second"), nil) || p.Complete(nil, errAnswer) {
		t.Error("only the first Complete counts")
	}
	p.Tell(text("third"))
	for range 3 {
		if v, err := f.Result(); v != first || err != nil {
			t.Errorf("%v, %v", v, err)
		}
	}
	if v, err := f.Wait(t.Context()); v != first || err != nil {
		t.Errorf("%v, %v", v, err)
	}
}

func TestCompleteRace(t *testing.T) {
	for range 500 {
		var h hook
		p := ask.NewPromise[*string](&h)
		f := p.Future()
		var won atomic.Pointer[string]
		var winners atomic.Int32
		start := make(chan struct{})
		var wg sync.WaitGroup
		for _, s := range []string{"a", "b", "c", "d"} {
			wg.Go(func() {
				<-start
				if v := text(s); p.Complete(v, nil) {
					won.Store(v)
					winners.Add(1)
				}
			})
		}
		close(start)
		v, err := f.Result()
		wg.Wait()
		if winners.Load() != 1 || v != won.Load() || err != nil {
			t.Fatalf("%d winners; %v, %v", winners.Load(), v, err)
		}
		h.expect(t, 0, nil, nil)
	}
}

func TestCancel(t *testing.T) {
	t.Run("pending", func(t *testing.T) {
		var h hook
		p := ask.NewPromise[*string](&h)
		f := p.Future()
		f.Cancel()
		f.Cancel()
		if v, err := f.Result(); v != nil || !errors.Is(err, errCancelledOrder) {
			t.Errorf("%v, %v", v, err)
		}
		if p.Complete(text("late"), nil) {
			t.Error("a cancelled promise accepted a value")
		}
		h.expect(t, 1, nil, errCancelledOrder)
	})
	t.Run("with a value", func(t *testing.T) {
		var h hook
		p := ask.NewPromise[*string](&h)
		f, v := p.Future(), text("value")
		p.Complete(v, nil)
		f.Cancel()
		f.Cancel()
		h.expect(t, 1, v, errCancelledOrder)
	})
	t.Run("after Result", func(t *testing.T) {
		var h hook
		p := ask.NewPromise[*string](&h)
		f, v := p.Future(), text("value")
		p.Complete(v, nil)
		f.Result()
		f.Cancel()
		h.expect(t, 0, nil, nil)
		if got, err := f.Result(); got != v || err != nil {
			t.Errorf("%v, %v", got, err)
		}
	})
	t.Run("with an error", func(t *testing.T) {
		var h hook
		p := ask.NewPromise[*string](&h)
		f := p.Future()
		p.Complete(nil, errAnswer)
		f.Cancel()
		h.expect(t, 0, nil, nil)
		if _, err := f.Result(); !errors.Is(err, errAnswer) {
			t.Error(err)
		}
	})
	t.Run("without a producer", func(t *testing.T) {
		p := ask.NewPromise[*string](nil)
		f := p.Future()
		f.Cancel()
		if _, err := f.Result(); !errors.Is(err, ask.ErrCancelled) {
			t.Error(err)
		}
	})
}

// The completion of a promise wakes all goroutines that block in Take or wait for Done.
func TestManyTake(t *testing.T) {
	for name, complete := range map[string]func(*ask.Promise[*string]){
		"value":     func(p *ask.Promise[*string]) { p.Complete(text("value"), nil) },
		"error":     func(p *ask.Promise[*string]) { p.Tell(errAnswer) },
		"abandoned": func(p *ask.Promise[*string]) { p.Abandon(errAnswer) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := ask.NewPromise[*string](nil)
				var returned atomic.Int32
				for range 3 {
					go func() {
						if v, err := p.Take(); (v == nil) != (err != nil) {
							t.Errorf("%v, %v", v, err)
						}
						returned.Add(1)
					}()
					go func() {
						<-p.Done()
						returned.Add(1)
					}()
				}
				synctest.Wait()
				if n := returned.Load(); n != 0 {
					t.Errorf("%d goroutines returned before the promise was complete", n)
				}
				complete(p)
				synctest.Wait()
				if n := returned.Load(); n != 6 {
					t.Errorf("%d of 6 goroutines returned", n)
				}
			})
		})
	}
}

// Result does not return a value that was released.
func TestResultAfterRelease(t *testing.T) {
	var h hook
	p := ask.NewPromise[*string](&h)
	f := p.Future()
	p.Complete(text("value"), nil)
	f.Cancel()
	if v, err := f.Result(); err == nil {
		t.Errorf("the value was released, and Result returns %q without an error", *v)
	} else if !errors.Is(err, ask.ErrCancelled) {
		t.Error(err)
	}
}

// Exactly one of Take and Abandon gets a value.
func TestTakeRacesAbandon(t *testing.T) {
	for range 2000 {
		var h hook
		p := ask.NewPromise[*string](&h)
		f := p.Future()
		p.Complete(text("value"), nil)
		start := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() { <-start; p.Abandon(errAnswer) })
		close(start)
		_, err := f.Result()
		wg.Wait()
		if taken, released := err == nil, h.calls.Load() == 1; taken == released {
			t.Fatalf("taken: %v (%v), released: %v", taken, err, released)
		}
	}
}

// A value that races Cancel is released exactly once if the promise has accepted it.
func TestCompleteRacesCancel(t *testing.T) {
	for range 2000 {
		var h hook
		p := ask.NewPromise[*string](&h)
		f, v := p.Future(), text("value")
		start := make(chan struct{})
		var accepted bool
		var wg sync.WaitGroup
		wg.Go(func() { <-start; accepted = p.Complete(v, nil) })
		wg.Go(func() { <-start; f.Cancel() })
		wg.Go(func() { <-start; f.Cancel() })
		close(start)
		wg.Wait()
		if accepted {
			h.expect(t, 1, v, ask.ErrCancelled)
		} else {
			h.expect(t, 1, nil, ask.ErrCancelled)
		}
		if !complete(f) {
			t.Fatal("pending")
		}
	}
}

func TestWait(t *testing.T) {
	var h hook
	p := ask.NewPromise[*string](&h)
	f := p.Future()
	stop := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stop)
	if v, err := f.Wait(ctx); v != nil || !errors.Is(err, stop) {
		t.Errorf("%v, %v", v, err)
	}
	if complete(f) {
		t.Error("Wait has completed the future")
	}
	h.expect(t, 0, nil, nil)
	v := text("value")
	go p.Complete(v, nil)
	if got, err := f.Wait(t.Context()); got != v || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	f.Cancel()
	h.expect(t, 0, nil, nil) // Wait has returned the value
}

func TestTell(t *testing.T) {
	v := text("value")
	for _, test := range []struct {
		name string
		msg  any
		want func(*string, error) bool
	}{
		{"value", v, func(got *string, err error) bool { return got == v && err == nil }},
		{"error", errAnswer, func(got *string, err error) bool { return got == nil && errors.Is(err, errAnswer) }},
		{"wrong type", 42, func(got *string, err error) bool {
			return got == nil && err != nil && strings.Contains(err.Error(), "int") && strings.Contains(err.Error(), "*string")
		}},
		{"nil", nil, func(got *string, err error) bool { return got == nil && err != nil }},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := ask.NewPromise[*string](nil)
			p.Tell(test.msg)
			p.Tell(text("later"))
			if got, err := p.Future().Result(); !test.want(got, err) {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}

// Await with a context that never ends blocks, and leaves the value to Take.
func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := ask.NewPromise[int](nil)
		var done atomic.Bool
		go func() { done.Store(p.Await(context.Background())) }()
		synctest.Wait()
		if done.Load() {
			t.Fatal("Await returned before the promise was complete")
		}
		p.Complete(5, nil)
		synctest.Wait()
		if v, err := p.Take(); !done.Load() || v != 5 || err != nil {
			t.Errorf("done %v; %d, %v", done.Load(), v, err)
		}
	})
}
