package actors_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
)

// witness is a Monitor that checks the order of its calls and counts them, as Stats does.
type countingMonitor struct {
	t  testing.TB
	mu sync.Mutex

	waiting, held, batches int
	acquired, released     uint64
	lost, refused          map[error]uint64
	stopped                bool
	requests               []actors.MonitoredRequest
	contexts               []context.Context
	took                   []time.Duration // of waiting and of holding, in the order in which they ended
}

func newCountingMonitor(t testing.TB) *countingMonitor {
	return &countingMonitor{t: t, lost: map[error]uint64{}, refused: map[error]uint64{}}
}

func (w *countingMonitor) config(cfg *actors.Config) { cfg.Monitor = w }

func (w *countingMonitor) Start(func() actors.Stats) (stop func()) {
	return func() { w.stopped = true }
}

func (w *countingMonitor) Batch(operations int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.batches++; operations < 1 {
		w.t.Errorf("a batch of %d", operations)
	}
}

func (w *countingMonitor) Request(ctx context.Context, r actors.MonitoredRequest) actors.RequestMonitor {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting++
	w.requests, w.contexts = append(w.requests, r), append(w.contexts, ctx)
	return &countingRequest{w: w}
}

type countingRequest struct {
	w     *countingMonitor
	state actors.RequestState
}

// go on from one state to another; waiting is "".
func (q *countingRequest) turn(from, to actors.RequestState, after time.Duration) *countingMonitor {
	q.w.mu.Lock()
	if q.state != from || after < 0 {
		q.w.t.Errorf("%q after %q and %v", to, q.state, after)
	}
	q.state = to
	q.w.took = append(q.w.took, after)
	return q.w
}

func (q *countingRequest) Granted(waited time.Duration, token actors.Token) {
	w := q.turn("", actors.RequestHeld, waited)
	defer w.mu.Unlock()
	w.waiting--
	w.held++
	if w.acquired++; token.Czxid == 0 {
		w.t.Errorf("token %v", token)
	}
}

func (q *countingRequest) Refused(waited time.Duration, err error) {
	w := q.turn("", actors.RequestLost, waited)
	defer w.mu.Unlock()
	w.waiting--
	w.refused[err]++
}

func (q *countingRequest) Ended(held time.Duration, err error) {
	w := q.turn(actors.RequestHeld, actors.RequestLost, held)
	defer w.mu.Unlock()
	if w.held--; err == nil {
		w.released++
	} else {
		w.lost[err]++
	}
}

// agrees checks that the calls are those that Stats has counted. A request that its lock has not
// accepted is only counted there.
func (w *countingMonitor) agrees(s actors.Stats) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting != s.Waiting || w.held != s.Held || w.acquired != s.Acquired || w.released != s.Released ||
		!maps.Equal(w.lost, s.Lost) || !maps.Equal(w.refused, s.Refused) {
		return fmt.Errorf("a monitor has heard of %d waiting, %d held, %d acquired, %d released, %v lost, %v refused; counted are %s",
			w.waiting, w.held, w.acquired, w.released, w.lost, w.refused, statsText(s))
	}
	return nil
}

// A Monitor gets the context of each request, and hears of actors' requests, too.
func TestMonitor(t *testing.T) {
	each(t, func(b *testLock) {
		config, all := testActors(b.T, 1)
		w := newCountingMonitor(b)
		locks := b.locks(config, w.config)
		type key struct{}
		ctx := context.WithValue(within(b), key{}, "mine")
		g, err := locks.RWMutex(b.path).Write().Lock(ctx, actors.WithOwner("me"))
		must(b, err)
		unlock(b, g)
		m := locks.MultiLock(locks.Mutex(b.path+"/1"), locks.Mutex(b.path+"/2"))
		unlock(b, lock(b, m))
		actorLock := pid(b, locks.Mutex(b.path+"/1"))
		all[0].send(actorLock, &messages.Acquire{RequestId: 1})
		all[0].granted(1)
		all[0].send(actorLock, &messages.Release{RequestId: 1})
		all[0].released(1, 0)
		want := []actors.MonitoredRequest{{Path: b.path, Recipe: "read-write", Kind: "write", Owner: "me"},
			{Path: m.Path(), Recipe: "multi-lock", Kind: "exclusive"}, {Path: b.path + "/1", Recipe: "mutex", Kind: "exclusive"}}
		if fmt.Sprint(w.requests) != fmt.Sprint(want) {
			b.Errorf("heard of %v", w.requests)
		}
		if w.contexts[0].Value(key{}) != "mine" || w.contexts[2].Value(key{}) != nil {
			b.Errorf("contexts %v", w.contexts)
		}
		must(b, w.agrees(locks.Stats()))
		if uint64(w.batches) != locks.Stats().Batches {
			b.Errorf("%d batches, of %d", w.batches, locks.Stats().Batches)
		}
		must(b, locks.Close())
		if !w.stopped {
			b.Error("Close does not stop the monitor")
		}
	})
}

// A Monitor gets how long requests wait and hold, also of a grant that the end of its actor ends.
func TestMonitorDurations(t *testing.T) {
	t.Parallel()
	bubble(t, func(v *virtual) {
		w := newCountingMonitor(v)
		locks := v.locks(w.config)
		mu := locks.Mutex(v.path, actors.LocalQueue(actors.LocalQueueConfig{}))
		g := lock(v, mu)
		next := mu.Acquire(within(v))
		refused := mu.Acquire(within(v), actors.WithTimeout(300*time.Millisecond))
		<-time.After(400 * time.Millisecond)
		is(v, failure(v, refused), actors.ErrTimedOut)
		unlock(v, g)
		result(v, next)
		<-time.After(500 * time.Millisecond)
		must(v, locks.Close())
		ms := time.Millisecond
		if want := []time.Duration{0, 300 * ms, 400 * ms, 400 * ms, 500 * ms}; !slices.Equal(w.took, want) {
			v.Errorf("requests took %v, want %v", w.took, want)
		}
	})
}
