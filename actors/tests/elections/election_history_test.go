package elections

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
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/actors/internal/sample"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Candidates of three processes, two of them of one, campaign while processes are cut off, the
// server is killed and started again, and requests fail. They leave terms in all the ways there
// are. At most one term goes on at any time, tokens grow, and after the last fault each candidate
// leads again.
func TestHistoryOfCampaigns(t *testing.T) {
	t.Parallel()
	for i := range sample.Size(4, 10) {
		t.Run(fmt.Sprint(i), func(t *testing.T) { locktest.Bubble(t, historyOfCampaigns) })
	}
}

func historyOfCampaigns(v *locktest.Virtual) {
	l := locktest.NewLedger(v)
	options := electionForms[[]string{"selector", "latch"}[rand.N(2)]]
	stopOnSuspended := rand.N(2) == 0
	ctx, stop := context.WithCancelCause(context.Background())
	defer stop(locktest.ErrEnough)
	var processes []locktest.Process
	var candidates []string
	var campaigns sync.WaitGroup
	for i := range 3 {
		p := v.Process(func(cfg *actors.Config) { cfg.StopOnSuspended = stopOnSuspended })
		for j := range 1 + i%2 {
			name := fmt.Sprint("candidate ", i, ".", j)
			processes, candidates = append(processes, p), append(candidates, name)
			campaigns.Go(func() {
				for ctx.Err() == nil {
					err := randomCampaign(ctx, p.Locks.Election("/lock", options...), func(term *actors.Term) { l.BeginTerm(name, term) })
					if err != nil {
						v.Errorf("a campaign has ended: %v", err)
						return
					}
				}
			})
		}
	}
	for range 40 {
		fault := v.Inject(campaignFaults[rand.N(len(campaignFaults))])
		processes[rand.N(len(processes))].Outage(v)
		fault.Remove()
		<-time.After(rand.N(2 * locktest.SessionTimeout))
	}
	faulty := l.Count(locktest.Election)
	l.WaitTerms(2, candidates...)
	stop(locktest.ErrEnough)
	campaigns.Wait()
	zktest.Eventually(v, time.Hour, func() bool { return !strings.Contains(v.Dump(), "/_c_") }, "no node is left: %s", v.Dump())
	v.Logf("%d terms, %d of them among faults; stop on suspended: %v", l.Count(locktest.Election), faulty, stopOnSuspended)
}

var campaignFaults = append([]embedded.Fault{
	{Op: embedded.OpMulti, Action: embedded.DropReply},
	{Op: embedded.OpMulti, Action: embedded.CutBefore, Times: 3},
	{Op: embedded.OpMulti, Action: embedded.DelayReply, Delay: time.Second},
	{Op: embedded.OpAny, Nth: 5, Action: embedded.DropReply},
	{Op: embedded.OpGetData, Action: embedded.DelayRequest, Delay: time.Second},
	{Op: embedded.OpSetWatches, Action: embedded.DelayRequest, Delay: time.Second},
	{Op: embedded.OpGetChildren2, Action: embedded.CutAfter},
}, locktest.ClosingFaults...)

var errFailed = errors.New("the work has failed")

// randomCampaign campaigns until the body of a term returns, panics or ends the context, or until
// ctx ends. It returns an error that nothing of this has caused.
func randomCampaign(ctx context.Context, e *actors.Election, begin func(*actors.Term)) (failure error) {
	defer func() {
		if r := recover(); r != nil && r != errFailed {
			panic(r)
		}
	}()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for term, err := range e.Campaign(ctx) {
		if err != nil {
			if !errors.Is(err, locktest.ErrEnough) {
				failure = err
			}
			continue
		}
		begin(term)
		select {
		case <-time.After(rand.N(3 * time.Second)):
		case <-term.Context().Done():
		}
		switch rand.N(10) {
		case 0:
			return nil
		case 1:
			panic(errFailed)
		case 2:
			cancel(locktest.ErrEnough)
		}
	}
	return failure
}
