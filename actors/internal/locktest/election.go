package locktest

import (
	"context"
	"slices"
	"testing"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Candidate is a campaign in a goroutine of its own.
type Candidate struct {
	t     testing.TB
	terms chan *actors.Term // receives each term
	leave chan struct{}     // each value ends the body of a term
	Ended chan struct{}     // closed after the campaign
	Err   error             // the reason of the end; nil after End
	Stop  context.CancelFunc
}

// Campaign starts a candidate, which Clean ends.
func (b *Fixture) Campaign(e *actors.Election, options ...actors.Option) *Candidate {
	c := NewLedger(b).Campaign(e, options...)
	b.Cleanups = append(b.Cleanups, c.End)
	return c
}

// Campaign starts a candidate whose terms the ledger checks.
func (l *Ledger) Campaign(e *actors.Election, options ...actors.Option) *Candidate {
	ctx, stop := context.WithCancel(context.Background())
	c := &Candidate{t: l.t, terms: make(chan *actors.Term), leave: make(chan struct{}), Ended: make(chan struct{}), Stop: stop}
	l.t.Cleanup(stop)
	go func() {
		defer close(c.Ended)
		for term, err := range e.Campaign(ctx, options...) {
			if err != nil {
				c.Err = err
				continue // the campaign ends the loop
			}
			l.BeginTerm("", term)
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

// WaitLeader waits until ZooKeeper shows that the participant leads. The participant may lead
// earlier: its process does not wait for the answers to the deletion of the last leader's node, or
// to the write that takes back a request to resign.
func (b *Fixture) WaitLeader(e *actors.Election, id string) (leader actors.Participant) {
	b.Helper()
	zktest.Eventually(b, zktest.TimeLimit, func() bool {
		var err error
		leader, err = e.Leader(Within(b))
		return err == nil && string(leader.Data) == id
	}, "%s is shown as the leader, not %+v", id, &leader)
	return leader
}

// AnyLeads waits for the next term of any of the candidates.
func AnyLeads(t testing.TB, all ...*Candidate) (term *actors.Term) {
	t.Helper()
	zktest.Eventually(t, zktest.TimeLimit, func() bool {
		return slices.ContainsFunc(all, func(c *Candidate) bool {
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

// Leads waits for the next term.
func (c *Candidate) Leads() *actors.Term {
	c.t.Helper()
	select {
	case term := <-c.terms:
		return term
	case <-c.Ended:
		c.t.Fatalf("the campaign has ended: %v", c.Err)
	case <-Within(c.t).Done():
		c.t.Fatal("no term")
	}
	return nil
}

// Resigns leaves the body of a term.
func (c *Candidate) Resigns() {
	c.t.Helper()
	select {
	case c.leave <- struct{}{}:
	case <-Within(c.t).Done():
		c.t.Fatal("the term had ended")
	}
}

// Waits checks that the candidate does not lead, and that its campaign goes on.
func (c *Candidate) Waits() {
	c.t.Helper()
	select {
	case term := <-c.terms:
		c.t.Errorf("leads with token %v", term.Token())
	case <-c.Ended:
		c.t.Errorf("the campaign has ended: %v", c.Err)
	default:
	}
}

// Fails waits for the end of the campaign, and checks its error.
func (c *Candidate) Fails(want error) {
	c.t.Helper()
	Closes(c.t, c.Ended, "the campaign")
	Is(c.t, c.Err, want)
}

// End ends the campaign.
func (c *Candidate) End() {
	c.t.Helper()
	c.Stop()
	Closes(c.t, c.Ended, "the campaign")
}
