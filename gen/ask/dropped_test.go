package ask_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/actorlock/actorlock/gen/ask"
)

// collectUntilAbandoned collects garbage until Abandoned is called.
func collectUntilAbandoned(t *testing.T, h *hook) {
	t.Helper()
	for start := time.Now(); h.calls.Load() == 0; runtime.Gosched() {
		runtime.GC()
		if time.Since(start) > timeLimit {
			t.Fatal("Abandoned was not called")
		}
	}
}

func TestDropped(t *testing.T) {
	t.Run("pending", func(t *testing.T) {
		var h hook
		p := ask.NewPromise[*string](&h)
		p.Future()
		collectUntilAbandoned(t, &h)
		h.expect(t, 1, nil, ask.ErrDropped)
		if _, err := p.Take(); !errors.Is(err, ask.ErrDropped) {
			t.Error(err)
		}
	})
	t.Run("with a value", func(t *testing.T) {
		var h hook
		p, v := ask.NewPromise[*string](&h), text("value")
		p.Complete(v, nil)
		p.Future()
		collectUntilAbandoned(t, &h)
		h.expect(t, 1, v, ask.ErrDropped)
	})
	t.Run("taken", func(t *testing.T) {
		var h, other hook
		p := ask.NewPromise[*string](&h)
		p.Complete(text("value"), nil)
		p.Future().Result()
		ask.NewPromise[*string](&other).Future() // is collected after p's future
		collectUntilAbandoned(t, &other)
		h.expect(t, 0, nil, nil)
	})
}

// The drop of an untracked future has an effect only after ArmLeakDetection.
func TestArmLeakDetection(t *testing.T) {
	var h, other hook
	p := ask.NewPromise[*string](&h)
	f := p.UntrackedFuture()
	p.UntrackedFuture()                      // dropped without ArmLeakDetection
	ask.NewPromise[*string](&other).Future() // is collected after p's future
	collectUntilAbandoned(t, &other)
	h.expect(t, 0, nil, nil)
	ask.ArmLeakDetection(f)
	f = nil
	collectUntilAbandoned(t, &h)
	h.expect(t, 1, nil, ask.ErrDropped)
	ask.ArmLeakDetection(ask.NewPromise[*string](nil).UntrackedFuture()) // without a producer
}

// A future with a blocked Wait or Result is not dropped, though it is not used again.
func TestWaitedForIsNotDropped(t *testing.T) {
	for name, wait := range map[string]func(*ask.Future[*string]) (*string, error){
		"Result": (*ask.Future[*string]).Result,
		"Wait":   func(f *ask.Future[*string]) (*string, error) { return f.Wait(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			var h hook
			p := ask.NewPromise[*string](&h)
			started, got := make(chan struct{}), make(chan error, 1)
			go func() {
				f := p.Future()
				close(started)
				_, err := wait(f)
				got <- err
			}()
			<-started
			for range 20 {
				runtime.GC()
				runtime.Gosched()
			}
			p.Complete(text("value"), nil)
			if err := <-got; err != nil {
				t.Errorf("it was dropped during %s: %v", name, err)
			}
		})
	}
}
