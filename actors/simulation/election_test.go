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

// candidate is a goroutine of a process. It takes part in an election until all faults are over or
// its process ends.
type candidate struct {
	sim    *simulation
	p      *process
	id     int
	rand   *rand.Rand
	cancel context.CancelFunc // ends the present campaign
	done   atomic.Bool

	mu   sync.Mutex
	term *term // the present term, until the goroutine has ended it
	err  error // why the last campaign ended; nil after advance has handled it

	lastTerm *term // the last term that advance has handled
	terms    int
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

// startCandidate starts the candidate of a connected process. A process with limits has none,
// because its campaign would pause for a random time after each exceeded limit.
func (sim *simulation) startCandidate(p *process) {
	if !sim.plan.election || p.limited || sim.faultsOver {
		return
	}
	c := &candidate{sim: sim, p: p, rand: sim.rand(p.name, 5)}
	c.id = -100_000_000 * (1 + len(sim.candidates))
	sim.candidates = append(sim.candidates, c)
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	var options []actors.ElectionOption
	if sim.plan.seed/8%2 == 0 {
		options = append(options, actors.LeaderLatchNodes())
	}
	if c.rand.IntN(2) == 0 {
		options = append(options, actors.ResignOnRevoke())
	}
	if c.rand.IntN(2) == 0 {
		options = append(options, actors.AsID(p.name))
	}
	go c.campaign(ctx, p.locks.Election(electionPath, options...), c.rand.Uint64())
}

// campaign runs one campaign after the other.
func (c *candidate) campaign(ctx context.Context, e *actors.Election, seed uint64) {
	defer c.done.Store(true)
	rnd := rand.New(rand.NewPCG(seed, 6))
	for ctx.Err() == nil {
		for t, err := range e.Campaign(ctx) {
			if err != nil {
				c.setTerm(nil, err)
				break
			}
			present := &term{Term: t, resign: make(chan struct{})}
			c.setTerm(present, nil)
			select {
			case <-present.resign:
			case <-t.Context().Done():
			}
			c.setTerm(nil, nil)
			if rnd.IntN(4) == 0 { // the campaign ends, and another one begins
				break
			}
		}
		pause := time.NewTimer(time.Duration(rnd.Int64N(int64(2*time.Second))) + time.Duration(rnd.IntN(1_000_000)))
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

func (c *candidate) setTerm(t *term, err error) {
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

func (sim *simulation) advanceCandidates(now time.Duration) {
	for _, c := range sim.candidates {
		c.advance(now)
	}
}

func (c *candidate) advance(now time.Duration) {
	c.mu.Lock()
	present, err := c.term, c.err
	c.mu.Unlock()
	if old := c.lastTerm; old != nil && old.believed && (old != present || old.Grant().Err() != nil || c.p.dead) {
		c.endTerm(now, old)
	}
	if c.p.frozen || c.p.dead {
		return
	}
	if err != nil && !errors.Is(err, actors.ErrClosed) {
		c.sim.record("candidate %s ends its campaign: %v", c.p.name, err)
		if !c.isExpectedError(now, err) {
			c.sim.fail(now, "candidate %s: the answer does not fit: %v", c.p.name, err)
		}
		c.mu.Lock()
		c.err = nil
		c.mu.Unlock()
	}
	if present != c.lastTerm {
		c.lastTerm = present
		if present != nil {
			c.beginTerm(now, present)
		}
	}
}

// beginTerm notes a term that its goroutine has just begun.
func (c *candidate) beginTerm(now time.Duration, t *term) {
	grant := t.Grant()
	c.terms++
	c.sim.lastLed = now
	c.sim.grants++
	c.sim.record("candidate %s leads, term %d: token %v, node %s", c.p.name, t.Number(), t.Token(), grant.Node())
	if grant.Err() == nil {
		t.believed = true
		c.sim.noteGrant(&heldGrant{id: c.id - c.terms, owner: fmt.Sprint(c.p.name, "!", c.terms), token: t.Token(), uses: []use{{electionPath, 0, 1}},
			nodes: grant.Nodes(), session: grant.Session(), unaffectedSince: c.p.unaffectedSince, process: c.p.name})
	}
	c.sim.after(time.Duration(c.rand.ExpFloat64()*float64(c.sim.plan.meanHold)), func() { c.resign(t) })
}

func (c *candidate) resign(t *term) {
	switch {
	case c.p.frozen:
		c.sim.after(100*time.Millisecond, func() { c.resign(t) })
	case !t.resigned:
		t.resigned = true
		if t.believed {
			c.endTerm(c.sim.now(), t)
		}
		close(t.resign)
	}
}

// endTerm notes that a candidate leads no more, after its resignation or the loss of its grant.
func (c *candidate) endTerm(now time.Duration, t *term) {
	t.believed = false
	c.sim.lastLed = now
	err := t.Grant().Err()
	c.sim.record("candidate %s has led: %v", c.p.name, err)
	if err != nil && !errors.Is(err, actors.ErrReleased) && c.sim.lastFault == 0 {
		c.sim.fail(now, "candidate %s has lost its term without a fault: %v", c.p.name, err)
	}
	c.sim.ended(now, c.id-c.terms)
}

// isExpectedError reports whether a campaign may end with the error.
func (c *candidate) isExpectedError(now time.Duration, err error) bool {
	switch {
	case errors.Is(err, actors.ErrCancelled), errors.Is(err, context.Canceled):
		return c.sim.faultsOver
	case errors.Is(err, actors.ErrNoAuth):
		return now < c.sim.deniedUntil+time.Minute && c.sim.deniedUntil > 0
	case errors.Is(err, actors.ErrUnavailable):
		return c.sim.lastFault > 0
	}
	return false
}

// checkElection checks that some candidate leads, unless none has been able to for some time.
func (sim *simulation) checkElection(now time.Duration, unaffected bool) {
	if !unaffected || slices.ContainsFunc(sim.held, func(h *heldGrant) bool { return h.uses[0].path == electionPath }) {
		sim.lastLed = now
	}
	for _, c := range sim.candidates {
		if !c.p.dead && !c.done.Load() && now > sim.lastLed+maxFreeTime {
			sim.fail(now, "candidate %s: no candidate leads since %v", c.p.name, sim.lastLed)
		}
	}
}

// stopCandidates ends all campaigns.
func (sim *simulation) stopCandidates() {
	for _, c := range sim.candidates {
		c.cancel()
	}
}

func (sim *simulation) candidatesDone() bool {
	for _, c := range sim.candidates {
		if !c.done.Load() {
			return false
		}
	}
	return true
}
