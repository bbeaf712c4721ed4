package actors_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Candidates of three processes, two of them of one, campaign while processes are cut off, the
// server is killed and started again, and requests fail. They leave terms in all the ways there are. At most
// one term goes on at any time, tokens grow, and after the last fault each candidate leads again.
func TestHistoryOfCampaigns(t *testing.T) {
	t.Parallel()
	for i := range 10 {
		t.Run(fmt.Sprint(i), func(t *testing.T) { bubble(t, historyOfCampaigns) })
	}
}

func historyOfCampaigns(v *virtual) {
	l := newLedger(v)
	options := electionForms[[]string{"selector", "latch"}[rand.N(2)]]
	stop := rand.N(2) == 0
	var all []*campaigner
	var wg sync.WaitGroup
	done := make(chan struct{})
	for i := range 3 {
		p := v.process(func(cfg *actors.Config) { cfg.StopOnSuspended = stop })
		for range 1 + i%2 {
			c := &campaigner{v: v, ledger: l, dialingProcess: p, options: options, done: done}
			all = append(all, c)
			wg.Go(c.run)
		}
	}
	for range 40 {
		fault := v.Inject(campaignFaults[rand.N(len(campaignFaults))])
		all[rand.N(len(all))].outage(v)
		fault.Remove()
		<-time.After(rand.N(2 * session))
	}
	faulty, before := l.count(election), make([]int, len(all))
	for i, c := range all {
		before[i] = c.count()
	}
	zktest.Eventually(v, time.Hour, func() bool {
		for i, c := range all {
			if c.count() < before[i]+2 {
				return false
			}
		}
		return true
	}, "each candidate leads after the faults")
	close(done)
	wg.Wait()
	for _, c := range all {
		if c.err != nil {
			v.Errorf("a campaign has ended: %v", c.err)
		}
	}
	zktest.Eventually(v, time.Hour, func() bool { return !strings.Contains(v.Dump(), "/_c_") }, "no node is left: %s", v.Dump())
	v.Logf("%d terms, %d of them among faults; stop on suspended: %v", l.count(election), faulty, stop)
}

var campaignFaults = append([]embedded.Fault{
	{Op: embedded.OpMulti, Action: embedded.DropReply},
	{Op: embedded.OpMulti, Action: embedded.CutBefore, Times: 3},
	{Op: embedded.OpMulti, Action: embedded.DelayReply, Delay: time.Second},
	{Op: embedded.OpAny, Nth: 5, Action: embedded.DropReply},
	{Op: embedded.OpGetData, Action: embedded.DelayRequest, Delay: time.Second},
	{Op: embedded.OpGetChildren2, Action: embedded.CutAfter},
}, closingFaults...)

// campaigner is a candidate of the history.
type campaigner struct {
	dialingProcess
	v       *virtual
	ledger  *ledger
	options []actors.ElectionOption
	done    chan struct{}
	err     error

	mu    sync.Mutex
	terms int
}

func (c *campaigner) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.terms
}

func (c *campaigner) run() {
	for !isClosed(c.done) && c.err == nil {
		c.campaign()
	}
}

var errFailed = errors.New("the work has failed")

// campaign is one loop. It ends when the work has failed, when the context has ended, at a break, or
// after done.
func (c *campaigner) campaign() {
	defer func() {
		if failure := recover(); failure != nil && failure != errFailed {
			panic(failure)
		}
	}()
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	stopped := make(chan struct{})
	defer close(stopped)
	go func() {
		select {
		case <-c.done:
			cancel(errEnough)
		case <-stopped:
		}
	}()
	for term, err := range c.locks.Election("/lock", c.options...).Campaign(ctx) {
		if err != nil {
			if !errors.Is(err, errEnough) {
				c.err = err
			}
			continue
		}
		c.ledger.begins(term)
		c.mu.Lock()
		c.terms++
		c.mu.Unlock()
		select {
		case <-time.After(rand.N(3 * time.Second)):
		case <-term.Context().Done():
		}
		switch rand.N(10) {
		case 0:
			return
		case 1:
			panic(errFailed)
		case 2:
			cancel(errEnough)
		}
	}
}
