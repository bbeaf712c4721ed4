package locktest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
)

// CountingMonitor is a Monitor that checks the order of its calls, and counts what Stats counts.
type CountingMonitor struct {
	t  testing.TB
	mu sync.Mutex

	waiting, held, Batches int
	acquired, released     uint64
	lost, refused          map[error]uint64
	Stopped                bool
	Requests               []actors.MonitoredRequest
	Contexts               []context.Context
	Took                   []time.Duration // the times of waiting and of holding, in the order of their ends
	AtEnd                  func()          // is called before the end of a request or of a grant is counted; nil for nothing
}

// NewCountingMonitor returns a monitor that has counted nothing.
func NewCountingMonitor(t testing.TB) *CountingMonitor {
	return &CountingMonitor{t: t, lost: map[error]uint64{}, refused: map[error]uint64{}}
}

// Config has Locks call the monitor.
func (m *CountingMonitor) Config(cfg *actors.Config) { cfg.Monitor = m }

// Start is called when the locks start, and stop when they have stopped.
func (m *CountingMonitor) Start(func() actors.Stats) (stop func()) {
	return func() { m.Stopped = true }
}

// Batch counts a transaction.
func (m *CountingMonitor) Batch(operations int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.Batches++; operations < 1 {
		m.t.Errorf("a batch of %d", operations)
	}
}

// Request counts a request that waits.
func (m *CountingMonitor) Request(ctx context.Context, r actors.MonitoredRequest) actors.RequestMonitor {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waiting++
	m.Requests, m.Contexts = append(m.Requests, r), append(m.Contexts, ctx)
	return &countingRequest{m: m}
}

type countingRequest struct {
	m     *CountingMonitor
	state actors.RequestState // "" while it waits
}

// change changes the state after a time. It returns the monitor, which it has locked.
func (r *countingRequest) change(from, to actors.RequestState, after time.Duration) *CountingMonitor {
	if to == actors.RequestLost && r.m.AtEnd != nil {
		r.m.AtEnd()
	}
	r.m.mu.Lock()
	if r.state != from || after < 0 {
		r.m.t.Errorf("%q after %q and %v", to, r.state, after)
	}
	r.state = to
	r.m.Took = append(r.m.Took, after)
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

// Compare returns an error unless the calls are those that Stats has counted. Only Stats counts
// requests that the lock has not accepted.
func (m *CountingMonitor) Compare(s actors.Stats) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.waiting != s.Waiting || m.held != s.Held || m.acquired != s.Acquired || m.released != s.Released ||
		!maps.Equal(m.lost, s.Lost) || !maps.Equal(m.refused, s.Refused) {
		return fmt.Errorf("the monitor has %d waiting, %d held, %d acquired, %d released, %v lost, %v refused; the stats are %s",
			m.waiting, m.held, m.acquired, m.released, m.lost, m.refused, StatsText(s))
	}
	return nil
}

// StatsText returns the counters of requests as a text, without errors that have no count.
func StatsText(s actors.Stats) string {
	text := fmt.Sprintf("requested %d waiting %d acquired %d held %d released %d", s.Requested, s.Waiting, s.Acquired, s.Held, s.Released)
	for _, errs := range []struct {
		end    string
		counts map[error]uint64
	}{{"lost", s.Lost}, {"refused", s.Refused}} {
		var parts []string
		for err, n := range errs.counts {
			parts = append(parts, fmt.Sprintf(" %s: %v %d", errs.end, err, n))
		}
		slices.Sort(parts)
		text += strings.Join(parts, "")
	}
	return text
}
