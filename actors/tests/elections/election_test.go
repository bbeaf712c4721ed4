//lint:file-ignore SA1012 a nil context is what is tested

package elections

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// electionForms are both forms of nodes.
var electionForms = map[string][]actors.ElectionOption{"selector": nil, "latch": {actors.LeaderLatchNodes()}}

func eachForm(t *testing.T, f func(b *locktest.Fixture, form ...actors.ElectionOption)) {
	t.Parallel()
	for name, options := range electionForms {
		t.Run(name, func(t *testing.T) { locktest.Each(t, func(b *locktest.Fixture) { f(b, options...) }) })
	}
}

// Three participants, two of them of one process, lead in the order of their queue. A participant
// that resigns queues again, and tokens grow.
func TestCampaign(t *testing.T) {
	eachForm(t, func(b *locktest.Fixture, form ...actors.ElectionOption) {
		as := func(id string) []actors.ElectionOption { return append(form, actors.AsID(id)) }
		here, there := b.Locks(), b.Locks()
		observer := there.Election(b.LockPath, form...)
		_, err := observer.Leader(locktest.Within(b))
		locktest.Is(b, err, actors.ErrNoLeader)

		ids := []string{"one", "two", "three"}
		var all []*locktest.Candidate
		for i, locks := range []*actors.Locks{here, here, there} {
			all = append(all, b.Campaign(locks.Election(b.LockPath, as(ids[i])...)))
			b.WaitNodes(i + 1)
		}
		var last actors.Token
		for round := range 2 {
			for i, c := range all {
				term := c.Leads()
				for _, other := range all {
					other.Waits()
				}
				if term.Token().Compare(last) <= 0 || term.Number() != round+1 || term.Context().Err() != nil || term.Grant().Err() != nil {
					b.Errorf("%s leads with %v after %v, term %d, %v", ids[i], term.Token(), last, term.Number(), term.Grant().Err())
				}
				last = term.Token()
				leader := b.WaitLeader(observer, ids[i])
				if leader.Node != term.Grant().Node() || leader.Token != term.Token() {
					b.Errorf("%s leads with %v, and the leader is %+v", ids[i], term.Token(), leader)
				}
				b.WaitNodes(3) // the last leader queues again
				queue, err := observer.Participants(locktest.Within(b))
				if err != nil || len(queue) != 3 {
					b.Fatalf("participants %+v, %v", queue, err)
				}
				for k, p := range queue {
					if want := ids[(i+k)%3]; string(p.Data) != want || p.Holds != (k == 0) {
						b.Errorf("place %d has %+v, want %s", k, p, want)
					}
				}
				c.Resigns()
				locktest.Closes(b, term.Context().Done(), "the context of a term")
			}
		}
	})
}

// The errors that end a campaign: the body runs once with each.
func TestCampaignFails(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		locks := b.Locks()
		cancelled, cancel := context.WithCancelCause(context.Background())
		cancel(locktest.ErrEnough)
		holder := locktest.Lock(b, b.Mutex())
		for _, c := range []struct {
			path    string
			options []actors.ElectionOption
			ctx     context.Context
			request []actors.Option
			want    error
		}{
			{path: "relative", want: actors.ErrInvalid},
			{path: b.LockPath, options: []actors.ElectionOption{nil}, want: actors.ErrInvalid},
			{path: b.LockPath, options: []actors.ElectionOption{actors.AsID("")}, want: actors.ErrInvalid},
			{path: b.LockPath, request: []actors.Option{nil}, want: actors.ErrInvalid},
			{path: b.LockPath, request: []actors.Option{actors.WithOwner("me")}, want: actors.ErrInvalid},
			{path: b.LockPath, request: []actors.Option{actors.WithData([]byte("me"))}, want: actors.ErrInvalid},
			{path: b.LockPath, request: []actors.Option{actors.Permits(2)}, want: actors.ErrInvalid},
			{path: b.LockPath, request: []actors.Option{actors.WithTimeout(1)}, want: actors.ErrTimedOut},
			{path: b.LockPath, request: []actors.Option{actors.Try()}, want: actors.ErrNotAcquired},
			{path: b.LockPath, ctx: cancelled, want: locktest.ErrEnough},
		} {
			if c.ctx == nil {
				c.ctx = locktest.Within(b)
			}
			bodies := 0
			for term, err := range locks.Election(c.path, c.options...).Campaign(c.ctx, c.request...) {
				bodies++
				locktest.Is(b, err, c.want)
				if term != nil {
					b.Errorf("a term beside %v", err)
				}
			}
			if bodies != 1 {
				b.Errorf("%d calls of the body with %v", bodies, c.want)
			}
		}
		for _, err := range locks.Election(b.LockPath).Campaign(nil) {
			locktest.Is(b, err, actors.ErrInvalid)
		}
		_, err := locks.Election("relative").Leader(locktest.Within(b))
		locktest.Is(b, err, actors.ErrInvalid)
		locktest.Unlock(b, holder)
	})
}

// Locks are closed while one participant leads and another waits: both campaigns end.
func TestCampaignOfClosedLocks(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		locks := b.Locks()
		leader := b.Campaign(locks.Election(b.LockPath))
		term := leader.Leads()
		waiter := b.Campaign(locks.Election(b.LockPath))
		b.WaitNodes(2)
		other := b.Campaign(b.Locks().Election(b.LockPath))
		b.WaitNodes(3)
		locktest.Must(b, locks.Close())
		locktest.Closes(b, term.Context().Done(), "the context of the term")
		locktest.Is(b, context.Cause(term.Context()), actors.ErrClosed)
		leader.Fails(actors.ErrClosed)
		waiter.Fails(actors.ErrClosed)
		other.Leads()
	})
}

// A mutex on the path of an election is a contender like others.
func TestElectionBesideMutex(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		locks := b.Locks()
		mu, c := locks.Mutex(b.LockPath), b.Campaign(locks.Election(b.LockPath))
		term := c.Leads()
		_, err := mu.Lock(locktest.Within(b), actors.Try())
		locktest.Is(b, err, actors.ErrNotAcquired)
		f := mu.Acquire(locktest.Within(b))
		b.WaitNodes(2)
		locktest.Pending(b, f)
		c.Resigns()
		g := locktest.Result(b, f)
		c.Waits()
		locktest.Unlock(b, g)
		locktest.ExpectIncreasing(b, term.Token(), g.Token(), c.Leads().Token())
	})
}

// An election on the path of a local queue of its process is refused: the two would not exclude
// each other.
func TestElectionBesideLocalQueue(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		locks := b.Locks()
		g := locktest.Lock(b, locks.Mutex(b.LockPath, actors.LocalQueue(actors.LocalQueueConfig{})))
		b.Campaign(locks.Election(b.LockPath)).Fails(actors.ErrInvalid)
		locktest.Unlock(b, g)
		other := b.Campaign(b.Locks().Election(b.LockPath)) // of another process, which waits for the node
		other.Leads()
	})
}

// The sessions of a leader and of a waiter end. Both campaigns go on.
func TestCampaignOutlivesSessions(t *testing.T) {
	eachForm(t, func(b *locktest.Fixture, form ...actors.ElectionOption) {
		here, there := b.Locks(), b.Locks()
		one := b.Campaign(here.Election(b.LockPath, form...))
		first := one.Leads()
		two := b.Campaign(there.Election(b.LockPath, form...))
		b.WaitNodes(2)
		b.ExpireSession(there)
		b.WaitNodes(2)
		two.Waits()
		b.ExpireSession(here)
		locktest.Closes(b, first.Context().Done(), "the context of the term")
		if cause := context.Cause(first.Context()); !errors.Is(cause, actors.ErrSessionLost) && !errors.Is(cause, actors.ErrNodeDeleted) { // the server may tell of the node first
			b.Error(cause)
		}
		second := two.Leads()
		b.WaitNodes(2) // the first candidate waits again
		two.Resigns()
		third := one.Leads()
		if third.Number() != 2 || second.Number() != 1 || third.Token().Compare(second.Token()) <= 0 || second.Token().Compare(first.Token()) <= 0 {
			b.Errorf("terms %d %v, %d %v", second.Number(), second.Token(), third.Number(), third.Token())
		}
	})
}

// A campaign repeats a request that has failed for a passing reason, and logs that.
func TestCampaignRetries(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		var log locktest.Log
		locks := b.Locks(log.Config, func(cfg *actors.Config) { cfg.MaxRequestsPerLock = 1 })
		g := locktest.Lock(b, locks.Mutex(b.LockPath))
		c := b.Campaign(locks.Election(b.LockPath))
		zktest.Eventually(b, zktest.TimeLimit, func() bool { return len(log.With("request of a participant")) > 1 }, "two repetitions")
		c.Waits()
		locktest.Unlock(b, g)
		c.Leads()
	})
}

// With StopOnSuspended a leader resigns as soon as the connection is lost.
func TestCampaignStopsOnSuspended(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		locks := v.Locks(func(cfg *actors.Config) { cfg.StopOnSuspended = true })
		c := v.Campaign(locks.Election(v.LockPath))
		term := c.Leads()
		v.DropConnections()
		locktest.Closes(v, term.Context().Done(), "the context of the term")
		locktest.Is(v, context.Cause(term.Context()), actors.ErrSuspended)
		if next := c.Leads(); v.Resumes() != (next.Grant().Session() == term.Grant().Session()) || next.Number() != 2 {
			v.Errorf("term %d, session %x after %x", next.Number(), next.Grant().Session(), term.Grant().Session())
		}
		v.Clean()
	})
}

// With FailOnSessionLoss a candidate that waits ends with its session. One that leads goes on.
func TestCampaignFailsOnSessionLoss(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		proxy := zktest.Proxy(b, b.Addr())
		here, there := locktest.Connect(b.T, proxy.Addr()), b.Locks()
		leader := b.Campaign(here.Election(b.LockPath), actors.FailOnSessionLoss())
		term := leader.Leads()
		waiter := b.Campaign(there.Election(b.LockPath), actors.FailOnSessionLoss())
		b.WaitNodes(2)
		b.ExpireSession(there)
		waiter.Fails(actors.ErrSessionLost)
		session := here.Session()
		proxy.Refuse(true)
		proxy.Cut() // so that the leader hears of the loss first: the event of its node would have it wait again
		b.Expire(b, session.ID)
		proxy.Refuse(false)
		locktest.Closes(b, term.Context().Done(), "the term")
		if next := leader.Leads(); next.Number() != 2 {
			b.Errorf("term %d", next.Number())
		}
	})
}

// HoldAtMost ends a term, and the next one begins. With ResignOnRevoke the context ends earlier,
// and the leader still leads then.
func TestCampaignHoldsAtMost(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		locks := v.Locks()
		for want, options := range map[error][]actors.ElectionOption{
			actors.ErrHoldExpired: nil,
			actors.ErrRevoked:     {actors.ResignOnRevoke()},
		} {
			c := locktest.NewLedger(v).Campaign(locks.Election("/lock", options...), actors.HoldAtMost(4*time.Second))
			for range 3 {
				term := c.Leads()
				locktest.Closes(v, term.Context().Done(), "the term")
				locktest.Is(v, context.Cause(term.Context()), want)
			}
			c.End()
		}
		v.Clean()
	})
}

// Drain ends the campaign of a waiter, and waits for that of a leader.
func TestCampaignOfDrainedLocks(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		locks := b.Locks()
		leader := b.Campaign(locks.Election(b.LockPath))
		term := leader.Leads()
		waiter := b.Campaign(locks.Election(b.LockPath))
		b.WaitNodes(2)
		drained := make(chan error)
		go func() { drained <- locks.Drain(locktest.Within(b)) }()
		waiter.Fails(actors.ErrDraining)
		if term.Context().Err() != nil {
			b.Errorf("the term is over: %v", context.Cause(term.Context()))
		}
		leader.Resigns()
		leader.Fails(actors.ErrDraining)
		locktest.Must(b, <-drained)
	})
}

// To ask for the leader takes three round trips, whatever the number of participants: the names
// behind a barrier, the nodes, and the generation.
func TestLeaderTakesThreeRoundTrips(t *testing.T) {
	locktest.Bubble(t, func(v *locktest.Virtual) {
		for i := range 3 {
			defer v.Campaign(v.Locks().Election("/lock", actors.AsID(fmt.Sprint("host-", i)))).End()
			v.WaitNodes(i + 1)
		}
		locks := v.Locks()
		const roundTrip = 200 * time.Millisecond
		slow := v.Inject(embedded.Fault{Op: embedded.OpAll, Session: locks.Session().ID, Times: -1, Action: embedded.DelayReply, Delay: roundTrip})
		start := time.Now()
		leader, err := locks.Election("/lock").Leader(locktest.Within(v))
		locktest.Must(v, err)
		if took := time.Since(start); string(leader.Data) != "host-0" || took > 3*roundTrip {
			v.Errorf("%s leads, after %v", leader.Data, took)
		}
		slow.Remove()
	})
}

// An id over MaxNodeData is a final error, though requests over other limits are repeated.
func TestElectionWithTooLongAnID(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		locks := b.Locks(func(cfg *actors.Config) { cfg.MaxNodeData = 3 })
		b.Campaign(locks.Election(b.LockPath, actors.AsID("four"))).Fails(actors.ErrLimit)
		b.Campaign(locks.Election(b.LockPath, actors.AsID("two"))).Leads()
	})
}

// The nodes of LeaderSelector and of LeaderLatch do not exclude each other. A process refuses the
// second form, and logs an error if another process has it.
func TestElectionFormsDoNotMix(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		var log locktest.Log
		locks := b.Locks()
		b.Campaign(locks.Election(b.LockPath)).Leads()
		b.Campaign(locks.Election(b.LockPath, actors.LeaderLatchNodes())).Fails(actors.ErrInvalid)
		b.Campaign(b.Locks(log.Config).Election(b.LockPath, actors.LeaderLatchNodes())).Leads()
		zktest.Eventually(b, zktest.TimeLimit, func() bool { return len(log.With("two recipes use one path")) == 1 }, "a line of the log")
	})
}

// A process that is no candidate observes the leader, also after the loss of its own session.
func TestElectionObserve(t *testing.T) {
	eachForm(t, func(b *locktest.Fixture, form ...actors.ElectionOption) {
		observer := b.Locks()
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		queues := observer.Election(b.LockPath, form...).Observe(ctx)
		expect := func(want ...string) {
			b.Helper()
			limit, ids := locktest.Within(b).Done(), []string(nil)
			for !slices.Equal(ids, want) {
				select {
				case q := <-queues:
					ids = nil
					for i, p := range q.Participants {
						ids = append(ids, string(p.Data))
						if q.Err == nil && p.Holds != (i == 0) {
							b.Errorf("participant %d of %v: %v", i, q, p)
						}
					}
				case <-limit:
					b.Fatalf("the ids are %v, want %v", ids, want)
				}
			}
		}
		as := func(id string) []actors.ElectionOption { return append(slices.Clone(form), actors.AsID(id)) }
		one := b.Campaign(b.Locks().Election(b.LockPath, as("one")...))
		one.Leads()
		expect("one")
		two := b.Campaign(b.Locks().Election(b.LockPath, as("two")...))
		expect("one", "two")
		one.Resigns()
		two.Leads()
		expect("two", "one")
		b.ExpireSession(observer)
		two.Resigns()
		one.Leads()
		expect("one", "two")
		one.End()
		two.Leads()
		two.End()
		expect()
		cancel()
		for range queues { // until it is closed
		}
		q, open := <-observer.Election(b.LockPath, nil).Observe(locktest.Within(b))
		if locktest.Is(b, q.Err, actors.ErrInvalid); !open {
			b.Error("no queue with the error")
		}
	})
}
