package actors_test

import (
	"context"
	"slices"
	"testing"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// candidate is a campaign in a goroutine of its own.
type candidate struct {
	t     testing.TB
	terms chan *actors.Term // receives each term
	leave chan struct{}     // each value ends the body of a term
	ended chan struct{}     // closed after the campaign
	err   error             // the reason of the end; nil after stop
	stop  context.CancelFunc
}

// campaign starts a candidate, which clean ends.
func (b *testLock) campaign(e *actors.Election, options ...actors.Option) *candidate {
	c := newLedger(b).campaign(e, options...)
	b.cleanups = append(b.cleanups, c.end)
	return c
}

// campaign starts a candidate whose terms the ledger checks.
func (l *ledger) campaign(e *actors.Election, options ...actors.Option) *candidate {
	ctx, stop := context.WithCancel(context.Background())
	c := &candidate{t: l.t, terms: make(chan *actors.Term), leave: make(chan struct{}), ended: make(chan struct{}), stop: stop}
	l.t.Cleanup(stop)
	go func() {
		defer close(c.ended)
		for term, err := range e.Campaign(ctx, options...) {
			if err != nil {
				c.err = err
				continue // the campaign ends the loop
			}
			l.beginTerm("", term)
			select {
			case c.terms <- term:
			case <-term.Context().Done():
				continue
			}
			select {
			case <-c.leave:
			case <-term.Context().Done():
			}
		}
	}()
	return c
}

// waitLeader waits until ZooKeeper shows that the participant leads. The participant may lead
// earlier: its process does not wait for the answers to the deletion of the last leader's node, or
// to the write that takes back a request to resign.
func (b *testLock) waitLeader(e *actors.Election, id string) (leader actors.Participant) {
	b.Helper()
	zktest.Eventually(b, timeLimit, func() bool {
		var err error
		leader, err = e.Leader(within(b))
		return err == nil && string(leader.Data) == id
	}, "%s is shown as the leader, not %+v", id, &leader)
	return leader
}

// anyLeads waits for the next term of any of the candidates.
func anyLeads(t testing.TB, all ...*candidate) (term *actors.Term) {
	t.Helper()
	zktest.Eventually(t, timeLimit, func() bool {
		return slices.ContainsFunc(all, func(c *candidate) bool {
			select {
			case term = <-c.terms:
				return true
			default:
				return false
			}
		})
	}, "a leader")
	return term
}

// leads waits for the next term.
func (c *candidate) leads() *actors.Term {
	c.t.Helper()
	select {
	case term := <-c.terms:
		return term
	case <-c.ended:
		c.t.Fatalf("the campaign has ended: %v", c.err)
	case <-within(c.t).Done():
		c.t.Fatal("no term")
	}
	return nil
}

// resigns leaves the body of a term.
func (c *candidate) resigns() {
	c.t.Helper()
	select {
	case c.leave <- struct{}{}:
	case <-within(c.t).Done():
		c.t.Fatal("the term had ended")
	}
}

// waits checks that the candidate does not lead, and that its campaign goes on.
func (c *candidate) waits() {
	c.t.Helper()
	select {
	case term := <-c.terms:
		c.t.Errorf("leads with token %v", term.Token())
	case <-c.ended:
		c.t.Errorf("the campaign has ended: %v", c.err)
	default:
	}
}

// fails waits for the end of the campaign, and checks its error.
func (c *candidate) fails(want error) {
	c.t.Helper()
	closes(c.t, c.ended, "the campaign")
	is(c.t, c.err, want)
}

// end ends the campaign.
func (c *candidate) end() {
	c.t.Helper()
	c.stop()
	closes(c.t, c.ended, "the campaign")
}
