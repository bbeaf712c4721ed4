package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/actorlock/actorlock/actors"
)

const electionPath = root + "/election"

// candidate is a goroutine of a process that takes part in an election until all faults are over, or
// its process is.
type candidate struct {
	w      *world
	p      *process
	id     int
	rand   *rand.Rand
	cancel context.CancelFunc // ends the present campaign
	over   atomic.Bool

	mu   sync.Mutex
	term *term // that the goroutine has begun and not ended
	err  error // of the campaign that has ended last; nil once it was looked at

	seen  *term // the term that was looked at
	turns int
	began time.Duration // of the campaign
}

// term is one term of a candidate.
type term struct {
	*actors.Term
	resign   chan struct{}
	believed bool
	resigned bool
}

// drawCandidates draws an election for half of the seeds with an ensemble.
func (p *plan) drawCandidates(r *rand.Rand) {
	p.election = p.servers > 1 && r.IntN(2) == 0
}

// startCandidate starts one for a process that is connected. A process with limits has none: its
// campaign pauses for a random time when a limit is exceeded.
func (w *world) startCandidate(p *process) {
	if !w.plan.election || p.limited || w.healing {
		return
	}
	c := &candidate{w: w, p: p, rand: w.rand(p.name, 5)}
	c.id = -100_000_000 * (1 + len(w.candidates))
	w.candidates = append(w.candidates, c)
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel, c.began = cancel, w.now()
	var options []actors.ElectionOption
	if w.plan.seed/8%2 == 0 {
		options = append(options, actors.LeaderLatchNodes())
	}
	if c.rand.IntN(2) == 0 {
		options = append(options, actors.ResignOnRevoke())
	}
	if c.rand.IntN(2) == 0 {
		options = append(options, actors.AsID(p.name))
	}
	go c.work(ctx, p.locks.Election(electionPath, options...), c.rand.Uint64())
}

// work has one campaign after the other.
func (c *candidate) work(ctx context.Context, e *actors.Election, seed uint64) {
	defer c.over.Store(true)
	own := rand.New(rand.NewPCG(seed, 6))
	for ctx.Err() == nil {
		for t, err := range e.Campaign(ctx) {
			if err != nil {
				c.set(nil, err)
				break
			}
			present := &term{Term: t, resign: make(chan struct{})}
			c.set(present, nil)
			select {
			case <-present.resign:
			case <-t.Context().Done():
			}
			c.set(nil, nil)
			if own.IntN(4) == 0 { // the campaign ends, and another one begins
				break
			}
		}
		pause := time.NewTimer(time.Duration(own.Int64N(int64(2*time.Second))) + time.Duration(own.IntN(1_000_000)))
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
		pause.Stop()
		if errors.Is(c.lastError(), actors.ErrClosed) {
			return
		}
	}
}

func (c *candidate) set(t *term, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.term = t
	if err != nil {
		c.err = err
	}
}

func (c *candidate) lastError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (w *world) lookAtCandidates(now time.Duration) {
	for _, c := range w.candidates {
		c.look(now)
	}
}

func (c *candidate) look(now time.Duration) {
	c.mu.Lock()
	present, err := c.term, c.err
	c.mu.Unlock()
	if old := c.seen; old != nil && old.believed && (old != present || old.Grant().Err() != nil || c.p.dead) {
		c.end(now, old)
	}
	if c.p.frozen || c.p.dead {
		return
	}
	if err != nil && !errors.Is(err, actors.ErrClosed) {
		c.w.line("candidate %s ends its campaign: %v", c.p.name, err)
		if !c.fits(now, err) {
			c.w.fail(now, "candidate %s: the answer does not fit: %v", c.p.name, err)
		}
		c.mu.Lock()
		c.err = nil
		c.mu.Unlock()
	}
	if present != c.seen {
		c.seen = present
		if present != nil {
			c.begin(now, present)
		}
	}
}

// begin notes a term, of which its goroutine has just heard.
func (c *candidate) begin(now time.Duration, t *term) {
	grant := t.Grant()
	c.turns++
	c.w.led = now
	c.w.grants++
	c.w.line("candidate %s leads, term %d: token %v, node %s", c.p.name, t.Number(), t.Token(), grant.Node())
	if grant.Err() == nil {
		t.believed = true
		c.w.note(&holding{id: c.id - c.turns, owner: fmt.Sprint(c.p.name, "!", c.turns), token: t.Token(), uses: []use{{electionPath, 0, 1}},
			nodes: grant.Nodes(), session: grant.Session(), calm: c.p.calm, process: c.p.name})
	}
	c.w.after(time.Duration(c.rand.ExpFloat64()*float64(c.w.plan.hold)), func() { c.resign(t) })
}

func (c *candidate) resign(t *term) {
	switch {
	case c.p.frozen:
		c.w.after(100*time.Millisecond, func() { c.resign(t) })
	case !t.resigned:
		t.resigned = true
		if t.believed {
			c.end(c.w.now(), t)
		}
		close(t.resign)
	}
}

// end notes that a candidate leads no more, by its own doing or as its grant is lost.
func (c *candidate) end(now time.Duration, t *term) {
	t.believed = false
	c.w.led = now
	err := t.Grant().Err()
	c.w.line("candidate %s has led: %v", c.p.name, err)
	if err != nil && !errors.Is(err, actors.ErrReleased) && c.w.faulty == 0 {
		c.w.fail(now, "candidate %s has lost its term without a fault: %v", c.p.name, err)
	}
	c.w.ended(now, c.id-c.turns)
}

// fits reports whether a campaign may end with the error.
func (c *candidate) fits(now time.Duration, err error) bool {
	switch {
	case errors.Is(err, actors.ErrCancelled), errors.Is(err, context.Canceled):
		return c.w.healing
	case errors.Is(err, actors.ErrNoAuth):
		return now < c.w.denied+time.Minute && c.w.denied > 0
	case errors.Is(err, actors.ErrUnavailable):
		return c.w.faulty > 0
	}
	return false
}

// checkElection looks whether a candidate waits although none leads, nor has led for some time.
func (w *world) checkElection(now time.Duration, calm bool) {
	if !calm || slices.ContainsFunc(w.held, func(h *holding) bool { return h.uses[0].path == electionPath }) {
		w.led = now
	}
	for _, c := range w.candidates {
		if !c.p.dead && !c.over.Load() && now > w.led+patience {
			w.fail(now, "candidate %s: none leads since %v", c.p.name, w.led)
		}
	}
}

// dismissCandidates ends all campaigns.
func (w *world) dismissCandidates() {
	for _, c := range w.candidates {
		c.cancel()
	}
}

func (w *world) candidatesAreDone() bool {
	for _, c := range w.candidates {
		if !c.over.Load() {
			return false
		}
	}
	return true
}
