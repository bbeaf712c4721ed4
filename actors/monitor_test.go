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

// countingMonitor is a Monitor that checks the order of its calls, and counts what Stats counts.
type countingMonitor struct {
	t  testing.TB
	mu sync.Mutex

	waiting, held, batches int
	acquired, released     uint64
	lost, refused          map[error]uint64
	stopped                bool
	requests               []actors.MonitoredRequest
	contexts               []context.Context
	took                   []time.Duration // the times of waiting and of holding, in the order of their ends
}

func newCountingMonitor(t testing.TB) *countingMonitor {
	return &countingMonitor{t: t, lost: map[error]uint64{}, refused: map[error]uint64{}}
}

func (m *countingMonitor) config(cfg *actors.Config) { cfg.Monitor = m }

func (m *countingMonitor) Start(func() actors.Stats) (stop func()) {
	return func() { m.stopped = true }
}

func (m *countingMonitor) Batch(operations int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.batches++; operations < 1 {
		m.t.Errorf("a batch of %d", operations)
	}
}

func (m *countingMonitor) Request(ctx context.Context, r actors.MonitoredRequest) actors.RequestMonitor {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waiting++
	m.requests, m.contexts = append(m.requests, r), append(m.contexts, ctx)
	return &countingRequest{m: m}
}

type countingRequest struct {
	m     *countingMonitor
	state actors.RequestState // "" while it waits
}

// change changes the state after a time. It returns the monitor, which it has locked.
func (r *countingRequest) change(from, to actors.RequestState, after time.Duration) *countingMonitor {
	r.m.mu.Lock()
	if r.state != from || after < 0 {
		r.m.t.Errorf("%q after %q and %v", to, r.state, after)
	}
	r.state = to
	r.m.took = append(r.m.took, after)
	return r.m
}

func (r *countingRequest) Granted(waited time.Duration, token actors.Token) {
	m := r.change("", actors.RequestHeld, waited)
	defer m.mu.Unlock()
	m.waiting--
	m.held++
	if m.acquired++; token.Czxid == 0 {
		m.t.Errorf("token %v", token)
	}
}

func (r *countingRequest) Refused(waited time.Duration, err error) {
	m := r.change("", actors.RequestLost, waited)
	defer m.mu.Unlock()
	m.waiting--
	m.refused[err]++
}

func (r *countingRequest) Ended(held time.Duration, err error) {
	m := r.change(actors.RequestHeld, actors.RequestLost, held)
	defer m.mu.Unlock()
	if m.held--; err == nil {
		m.released++
	} else {
		m.lost[err]++
	}
}

// compare returns an error unless the calls are those that Stats has counted. Only Stats counts requests that the lock
// has not accepted.
func (m *countingMonitor) compare(s actors.Stats) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.waiting != s.Waiting || m.held != s.Held || m.acquired != s.Acquired || m.released != s.Released ||
		!maps.Equal(m.lost, s.Lost) || !maps.Equal(m.refused, s.Refused) {
		return fmt.Errorf("the monitor has %d waiting, %d held, %d acquired, %d released, %v lost, %v refused; the stats are %s",
			m.waiting, m.held, m.acquired, m.released, m.lost, m.refused, statsText(s))
	}
	return nil
}

// A Monitor gets each request with its context, and the requests of actors, too.
func TestMonitor(t *testing.T) {
	each(t, func(b *testLock) {
		config, all := testActors(b.T, 1)
		m := newCountingMonitor(b)
		locks := b.locks(config, m.config)
		type key struct{}
		ctx := context.WithValue(within(b), key{}, "mine")
		g, err := locks.RWMutex(b.path).Write().Lock(ctx, actors.WithOwner("me"))
		must(b, err)
		unlock(b, g)
		multi := locks.MultiLock(locks.Mutex(b.path+"/1"), locks.Mutex(b.path+"/2"))
		unlock(b, lock(b, multi))
		actorLock := pid(b, locks.Mutex(b.path+"/1"))
		all[0].send(actorLock, &messages.Acquire{RequestId: 1})
		all[0].granted(1)
		all[0].send(actorLock, &messages.Release{RequestId: 1})
		all[0].released(1, 0)
		want := []actors.MonitoredRequest{{Path: b.path, Recipe: "read-write", Kind: "write", Owner: "me"},
			{Path: multi.Path(), Recipe: "multi-lock", Kind: "exclusive"}, {Path: b.path + "/1", Recipe: "mutex", Kind: "exclusive"}}
		if fmt.Sprint(m.requests) != fmt.Sprint(want) {
			b.Errorf("the monitor has the requests %v", m.requests)
		}
		if m.contexts[0].Value(key{}) != "mine" || m.contexts[2].Value(key{}) != nil {
			b.Errorf("contexts %v", m.contexts)
		}
		must(b, m.compare(locks.Stats()))
		if uint64(m.batches) != locks.Stats().Batches {
			b.Errorf("%d batches, of %d", m.batches, locks.Stats().Batches)
		}
		must(b, locks.Close())
		if !m.stopped {
			b.Error("Close does not stop the monitor")
		}
	})
}

// A Monitor gets how long requests wait and hold, also of a grant that the end of its actor ends.
func TestMonitorDurations(t *testing.T) {
	t.Parallel()
	bubble(t, func(v *virtual) {
		m := newCountingMonitor(v)
		locks := v.locks(m.config)
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
		if want := []time.Duration{0, 300 * ms, 400 * ms, 400 * ms, 500 * ms}; !slices.Equal(m.took, want) {
			v.Errorf("requests took %v, want %v", m.took, want)
		}
	})
}
