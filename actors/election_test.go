//lint:file-ignore SA1012 a nil context is what is tested

package actors_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// electionForms are both forms of nodes.
var electionForms = map[string][]actors.ElectionOption{"selector": nil, "latch": {actors.LeaderLatchNodes()}}

func eachForm(t *testing.T, f func(b *testLock, form ...actors.ElectionOption)) {
	t.Parallel()
	for name, options := range electionForms {
		t.Run(name, func(t *testing.T) { each(t, func(b *testLock) { f(b, options...) }) })
	}
}

// Three participants, two of them of one process, lead in the order of their queue. A participant
// that resigns queues again, and tokens grow.
func TestCampaign(t *testing.T) {
	eachForm(t, func(b *testLock, form ...actors.ElectionOption) {
		as := func(id string) []actors.ElectionOption { return append(form, actors.AsID(id)) }
		here, there := b.locks(), b.locks()
		observer := there.Election(b.path, form...)
		_, err := observer.Leader(within(b))
		is(b, err, actors.ErrNoLeader)

		ids := []string{"one", "two", "three"}
		var all []*candidate
		for i, locks := range []*actors.Locks{here, here, there} {
			all = append(all, b.campaign(locks.Election(b.path, as(ids[i])...)))
			b.waitNodes(i + 1)
		}
		var last actors.Token
		for round := range 2 {
			for i, c := range all {
				term := c.leads()
				for _, other := range all {
					other.waits()
				}
				if term.Token().Compare(last) <= 0 || term.Number() != round+1 || term.Context().Err() != nil || term.Grant().Err() != nil {
					b.Errorf("%s leads with %v after %v, term %d, %v", ids[i], term.Token(), last, term.Number(), term.Grant().Err())
				}
				last = term.Token()
				leader := b.waitLeader(observer, ids[i])
				if leader.Node != term.Grant().Node() || leader.Token != term.Token() {
					b.Errorf("%s leads with %v, and the leader is %+v", ids[i], term.Token(), leader)
				}
				b.waitNodes(3) // the last leader queues again
				queue, err := observer.Participants(within(b))
				if err != nil || len(queue) != 3 {
					b.Fatalf("participants %+v, %v", queue, err)
				}
				for k, p := range queue {
					if want := ids[(i+k)%3]; string(p.Data) != want || p.Holds != (k == 0) {
						b.Errorf("place %d has %+v, want %s", k, p, want)
					}
				}
				c.resigns()
				closes(b, term.Context().Done(), "the context of a term")
			}
		}
	})
}

// The leader holds until the body returns, and ZooKeeper has deleted the node before the next
// statement runs, however the body ends.
func TestLeavingTheBodyResigns(t *testing.T) {
	each(t, func(b *testLock) {
		locks := b.locks()
		e := locks.Election(b.path)
		var term *actors.Term
		lead := func() bool {
			for t, err := range e.Campaign(within(b)) {
				must(b, err)
				term = t
				if len(b.nodes()) != 1 || t.Grant().Err() != nil {
					b.Error("the leader does not hold")
				}
				return true
			}
			return false
		}
		for name, leave := range map[string]func(){
			"return": func() { lead() },
			"break": func() {
				for t, err := range e.Campaign(within(b)) {
					must(b, err)
					term = t
					break
				}
			},
			"panic": func() {
				defer func() {
					if r := recover(); r != "of the body" {
						b.Errorf("recovered %v", r)
					}
				}()
				for t, err := range e.Campaign(within(b)) {
					must(b, err)
					term = t
					panic("of the body")
				}
			},
			"continue, with the end of the context": func() {
				ctx, cancel := context.WithCancelCause(within(b))
				defer cancel(nil)
				bodies := 0
				for t, err := range e.Campaign(ctx) {
					if bodies++; bodies == 2 {
						is(b, err, errEnough)
						continue
					}
					must(b, err)
					term = t
					cancel(errEnough)
					is(b, context.Cause(t.Context()), errEnough)
				}
				if bodies != 2 {
					b.Errorf("%d calls of the body", bodies)
				}
			},
			"a release": func() {
				for t, err := range e.Campaign(within(b)) {
					must(b, err)
					term = t
					unlock(b, t.Grant())
					break
				}
			},
		} {
			leave()
			is(b, term.Grant().Err(), actors.ErrReleased)
			if term.Context().Err() == nil {
				b.Errorf("%s: the term's context goes on", name)
			}
			if nodes := b.nodes(); len(nodes) > 0 {
				b.Errorf("%s leaves %v", name, nodes)
			}
		}
	})
}

var errEnough = errors.New("enough")

// The errors that end a campaign: the body runs once with each.
func TestCampaignFails(t *testing.T) {
	each(t, func(b *testLock) {
		locks := b.locks()
		cancelled, cancel := context.WithCancelCause(context.Background())
		cancel(errEnough)
		holder := lock(b, b.mutex())
		for _, c := range []struct {
			path    string
			options []actors.ElectionOption
			ctx     context.Context
			request []actors.Option
			want    error
		}{
			{path: "relative", want: actors.ErrInvalid},
			{path: b.path, options: []actors.ElectionOption{nil}, want: actors.ErrInvalid},
			{path: b.path, options: []actors.ElectionOption{actors.AsID("")}, want: actors.ErrInvalid},
			{path: b.path, request: []actors.Option{nil}, want: actors.ErrInvalid},
			{path: b.path, request: []actors.Option{actors.WithOwner("me")}, want: actors.ErrInvalid},
			{path: b.path, request: []actors.Option{actors.WithData([]byte("me"))}, want: actors.ErrInvalid},
			{path: b.path, request: []actors.Option{actors.Permits(2)}, want: actors.ErrInvalid},
			{path: b.path, request: []actors.Option{actors.WithTimeout(1)}, want: actors.ErrTimedOut},
			{path: b.path, request: []actors.Option{actors.Try()}, want: actors.ErrNotAcquired},
			{path: b.path, ctx: cancelled, want: errEnough},
		} {
			if c.ctx == nil {
				c.ctx = within(b)
			}
			bodies := 0
			for term, err := range locks.Election(c.path, c.options...).Campaign(c.ctx, c.request...) {
				bodies++
				is(b, err, c.want)
				if term != nil {
					b.Errorf("a term beside %v", err)
				}
			}
			if bodies != 1 {
				b.Errorf("%d calls of the body with %v", bodies, c.want)
			}
		}
		for _, err := range locks.Election(b.path).Campaign(nil) {
			is(b, err, actors.ErrInvalid)
		}
		_, err := locks.Election("relative").Leader(within(b))
		is(b, err, actors.ErrInvalid)
		unlock(b, holder)
	})
}

// Locks are closed while one participant leads and another waits: both campaigns end.
func TestCampaignOfClosedLocks(t *testing.T) {
	each(t, func(b *testLock) {
		locks := b.locks()
		leader := b.campaign(locks.Election(b.path))
		term := leader.leads()
		waiter := b.campaign(locks.Election(b.path))
		b.waitNodes(2)
		other := b.campaign(b.locks().Election(b.path))
		b.waitNodes(3)
		must(b, locks.Close())
		closes(b, term.Context().Done(), "the context of the term")
		is(b, context.Cause(term.Context()), actors.ErrClosed)
		leader.fails(actors.ErrClosed)
		waiter.fails(actors.ErrClosed)
		other.leads()
	})
}

// A mutex on the path of an election is a contender like others.
func TestElectionBesideMutex(t *testing.T) {
	each(t, func(b *testLock) {
		locks := b.locks()
		mu, c := locks.Mutex(b.path), b.campaign(locks.Election(b.path))
		term := c.leads()
		_, err := mu.Lock(within(b), actors.Try())
		is(b, err, actors.ErrNotAcquired)
		f := mu.Acquire(within(b))
		b.waitNodes(2)
		pending(b, f)
		c.resigns()
		g := result(b, f)
		c.waits()
		unlock(b, g)
		expectIncreasing(b, term.Token(), g.Token(), c.leads().Token())
	})
}

// An election on the path of a local queue of its process is refused: the two would not exclude
// each other.
func TestElectionBesideLocalQueue(t *testing.T) {
	each(t, func(b *testLock) {
		locks := b.locks()
		g := lock(b, locks.Mutex(b.path, actors.LocalQueue(actors.LocalQueueConfig{})))
		b.campaign(locks.Election(b.path)).fails(actors.ErrInvalid)
		unlock(b, g)
		other := b.campaign(b.locks().Election(b.path)) // of another process, which waits for the node
		other.leads()
	})
}

// The sessions of a leader and of a waiter end. Both campaigns go on.
func TestCampaignOutlivesSessions(t *testing.T) {
	eachForm(t, func(b *testLock, form ...actors.ElectionOption) {
		here, there := b.locks(), b.locks()
		one := b.campaign(here.Election(b.path, form...))
		first := one.leads()
		two := b.campaign(there.Election(b.path, form...))
		b.waitNodes(2)
		b.expire(there)
		b.waitNodes(2)
		two.waits()
		b.expire(here)
		closes(b, first.Context().Done(), "the context of the term")
		if cause := context.Cause(first.Context()); !errors.Is(cause, actors.ErrSessionLost) && !errors.Is(cause, actors.ErrNodeDeleted) { // the server may tell of the node first
			b.Error(cause)
		}
		second := two.leads()
		b.waitNodes(2) // the first candidate waits again
		two.resigns()
		third := one.leads()
		if third.Number() != 2 || second.Number() != 1 || third.Token().Compare(second.Token()) <= 0 || second.Token().Compare(first.Token()) <= 0 {
			b.Errorf("terms %d %v, %d %v", second.Number(), second.Token(), third.Number(), third.Token())
		}
	})
}

// A campaign repeats a request that has failed for a passing reason, and logs that.
func TestCampaignRetries(t *testing.T) {
	each(t, func(b *testLock) {
		var log logs
		locks := b.locks(log.config, func(cfg *actors.Config) { cfg.MaxRequestsPerLock = 1 })
		g := lock(b, locks.Mutex(b.path))
		c := b.campaign(locks.Election(b.path))
		zktest.Eventually(b, timeLimit, func() bool { return len(log.with("request of a participant")) > 1 }, "two repetitions")
		c.waits()
		unlock(b, g)
		c.leads()
	})
}

// A client asks the leader to resign, as Curator's Revoker does.
func TestResignOnRevoke(t *testing.T) {
	each(t, func(b *testLock) {
		revoker := b.locks()
		one := b.campaign(b.locks().Election(b.path, actors.ResignOnRevoke()))
		term := one.leads()
		two := b.campaign(b.locks().Election(b.path), actors.Revocable())
		b.waitNodes(2)
		_, err := revoker.Revoke(within(b), term.Grant().Node(), 0)
		must(b, err)
		closes(b, term.Context().Done(), "the context of the term")
		is(b, context.Cause(term.Context()), actors.ErrRevoked)

		term = two.leads() // which does not resign on Revoke
		_, err = revoker.Revoke(within(b), term.Grant().Node(), 0)
		must(b, err)
		closes(b, term.Grant().Revoked(), "the wait for the request")
		if term.Context().Err() != nil {
			b.Error("the term has ended")
		}
		b.waitNodes(2) // the first candidate queues again
		two.resigns()
		one.leads()
	})
}

// With StopOnSuspended a leader resigns as soon as the connection is lost.
func TestCampaignStopsOnSuspended(t *testing.T) {
	t.Parallel()
	onEmbedded(t, func(b *testLock) {
		locks := b.locks(func(cfg *actors.Config) { cfg.StopOnSuspended = true })
		c := b.campaign(locks.Election(b.path))
		term := c.leads()
		b.Embedded().DropConnections()
		closes(b, term.Context().Done(), "the context of the term")
		is(b, context.Cause(term.Context()), actors.ErrSuspended)
		if next := c.leads(); next.Grant().Session() != term.Grant().Session() || next.Number() != 2 {
			b.Errorf("term %d, session %x after %x", next.Number(), next.Grant().Session(), term.Grant().Session())
		}
	})
}

// With FailOnSessionLoss a candidate that waits ends with its session. One that leads goes on.
func TestCampaignFailsOnSessionLoss(t *testing.T) {
	each(t, func(b *testLock) {
		here, there := b.locks(), b.locks()
		leader := b.campaign(here.Election(b.path), actors.FailOnSessionLoss())
		term := leader.leads()
		waiter := b.campaign(there.Election(b.path), actors.FailOnSessionLoss())
		b.waitNodes(2)
		b.expire(there)
		waiter.fails(actors.ErrSessionLost)
		b.expire(here)
		closes(b, term.Context().Done(), "the term")
		if next := leader.leads(); next.Number() != 2 {
			b.Errorf("term %d", next.Number())
		}
	})
}

// HoldAtMost ends a term, and the next one begins. With ResignOnRevoke the context ends earlier,
// and the leader still leads then.
func TestCampaignHoldsAtMost(t *testing.T) {
	t.Parallel()
	bubble(t, func(v *virtual) {
		locks := v.locks()
		for want, options := range map[error][]actors.ElectionOption{
			actors.ErrHoldExpired: nil,
			actors.ErrRevoked:     {actors.ResignOnRevoke()},
		} {
			c := newLedger(v).campaign(locks.Election("/lock", options...), actors.HoldAtMost(4*time.Second))
			for range 3 {
				term := c.leads()
				closes(v, term.Context().Done(), "the term")
				is(v, context.Cause(term.Context()), want)
			}
			c.end()
		}
		v.clean()
	})
}

// Drain ends the campaign of a waiter, and waits for that of a leader.
func TestCampaignOfDrainedLocks(t *testing.T) {
	each(t, func(b *testLock) {
		locks := b.locks()
		leader := b.campaign(locks.Election(b.path))
		term := leader.leads()
		waiter := b.campaign(locks.Election(b.path))
		b.waitNodes(2)
		drained := make(chan error)
		go func() { drained <- locks.Drain(within(b)) }()
		waiter.fails(actors.ErrDraining)
		if term.Context().Err() != nil {
			b.Errorf("the term is over: %v", context.Cause(term.Context()))
		}
		leader.resigns()
		leader.fails(actors.ErrDraining)
		must(b, <-drained)
	})
}
