package elections

import (
	"context"
	"path"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// The tests of this file repeat reports of two leaders, or none, with Curator's LeaderLatch. A
// latch has its state in several variables, which the threads of events, of connection states and
// of callbacks change independently, and it creates a new node after every reconnection. Here one
// actor per lock handles all events as messages, each with the epoch of its session, and a
// contender keeps its node until it releases the node or the node is deleted.

// twoCandidates starts a candidate of each of two processes. The first leads, and the second waits.
// Clean ends both.
func twoCandidates(v *locktest.Virtual, l *locktest.Ledger, here, there *actors.Locks) (first, second *locktest.Candidate) {
	v.Helper()
	first = l.Campaign(here.Election("/lock", actors.LeaderLatchNodes()))
	v.WaitNodes(1)
	second = l.Campaign(there.Election("/lock", actors.LeaderLatchNodes()))
	v.WaitNodes(2)
	v.Cleanups = append(v.Cleanups, first.End, second.End)
	return first, second
}

// expectHeld checks that the node of a term exists, and that the term goes on.
func expectHeld(v *locktest.Virtual, term *actors.Term) {
	v.Helper()
	var err error // also without a connection
	zktest.Eventually(v, time.Hour, func() bool { err = term.Grant().Verify(locktest.Within(v)); return err == nil }, "the leader holds: %v", &err)
	if term.Context().Err() != nil {
		v.Error(context.Cause(term.Context()))
	}
}

// CURATOR-444: the servers of an ensemble could not reach each other for about the session
// timeout. Curator reported to the old leader, which came back on a new session, no loss between
// SUSPENDED and RECONNECTED, so it led on beside the next one. Here the term's context ends by
// the process's own deadline, before any server can expire the session, and a term belongs to one
// session for good.
func TestCurator444QuorumIsAway(t *testing.T) {
	b := locktest.Ensemble(t, zktest.Links(), zktest.TickTime(500*time.Millisecond))
	l := locktest.NewLedger(b)
	var all []*locktest.Candidate
	for _, m := range b.Members() {
		locks := b.LocksOn(m, func(cfg *actors.Config) { cfg.SessionTimeout, cfg.Margin = 10*time.Second, 4500*time.Millisecond })
		all = append(all, l.Campaign(locks.Election(b.LockPath, actors.LeaderLatchNodes())))
		b.WaitNodes(len(all))
	}
	first := all[0].Leads()
	for _, m := range b.Members()[1:] { // which cuts all links
		m.Isolate(b, true)
	}
	locktest.Closes(b, first.Context().Done(), "the term without a quorum")
	locktest.Is(b, context.Cause(first.Context()), actors.ErrSessionLost)
	<-time.After(5 * time.Second)
	for _, c := range all {
		c.Waits()
	}
	for _, m := range b.Members()[1:] {
		m.Isolate(b, false)
	}
	locktest.AnyLeads(b, all...)
	for _, c := range all {
		c.Waits() // the leader has no second term
	}
	for _, c := range all { // with the first of these the next one may lead
		c.End()
	}
	b.WaitNodes(0)
}

// CURATOR-504: after a reconnection a latch deleted its node and made a new one, in one thread,
// while the event of a deleted predecessor, in another thread, found its own path unset and did
// the same once more. That went on for hours, with millions of nodes. Here a reconnection makes no
// node: each term and each wait has one node, whatever the order of events.
func TestCurator504ReconnectingMakesNoNodes(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		v.NeedsResumption()
		here, there := v.Locks(), v.Locks()
		leader, other := twoCandidates(v, locktest.NewLedger(v), here, there)
		last, terms := leader.Leads(), 2
		for i := range 30 {
			v.DropConnections()
			switch i % 3 {
			case 0: // the predecessor goes while the waiter is disconnected
				leader.Resigns()
			case 1: // and while the waiter reconnects
				v.Halt()
				go leader.Resigns()
				<-time.After(time.Second)
				v.Restart()
			default:
				locktest.WaitState(v, here, messages.SessionState_CONNECTED)
				leader.Resigns()
			}
			last = other.Leads()
			leader, other = other, leader
			v.WaitNodes(2)
			terms++
		}
		node := last.Grant().Node()
		seq, err := strconv.Atoi(node[len(node)-10:])
		locktest.Must(v, err)
		if seq > terms { // numbers begin with 0
			v.Errorf("%d nodes were made for %d terms", seq+1, terms)
		}
		v.Clean()
	})
}

// CURATOR-620: the second of two RECONNECTED events in quick succession deleted the node by which
// the callback of the first had just declared itself leader, and the latch did not notice the
// deletion. Here a reconnection deletes no node, and a leader watches its own node: the term ends
// when any client deletes it.
func TestCurator620ReconnectedTwice(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		v.NeedsResumption()
		here, there := v.Locks(), v.Locks()
		one, two := twoCandidates(v, locktest.NewLedger(v), here, there)
		one.Leads()
		v.DropConnections()
		one.Resigns()
		v.DropConnections()
		term := two.Leads()
		for range 2 {
			v.DropConnections()
			locktest.WaitState(v, there, messages.SessionState_CONNECTED)
		}
		v.WaitNodes(2)
		expectHeld(v, term)

		one.End() // it would lead before the leader notices the deletion
		locktest.Must(v, v.Client(v).Delete(term.Grant().Node(), -1))
		locktest.Closes(v, term.Context().Done(), "the term")
		locktest.Is(v, context.Cause(term.Context()), actors.ErrNodeDeleted)
		expectHeld(v, two.Leads())
		v.Clean()
	})
}

// CURATOR-644: two latches made each other start again without end. A latch took the deletion of
// its predecessor between the list and the watch for the loss of its own node. So it made a new
// node and deleted its own, which was the predecessor of the other latch. Here a process lists the
// queue again when a predecessor is gone, and keeps its own node.
func TestCurator644PredecessorGoesBeforeTheWatch(t *testing.T) {
	t.Parallel()
	for name, ops := range map[string][]embedded.Op{"watch": {embedded.OpGetData, embedded.OpSetWatches}, "list": {embedded.OpGetChildren2}} {
		t.Run(name, func(t *testing.T) {
			locktest.Bubble(t, func(v *locktest.Virtual) {
				l, here, there := locktest.NewLedger(v), v.Locks(), v.Locks()
				one, two := twoCandidates(v, l, here, there)
				one.Leads()
				delayed := 0
				for range 10 {
					v.WaitNodes(2)
					two.End()
					v.WaitNodes(1)
					var late []*embedded.Injected
					for _, op := range ops {
						late = append(late, v.Inject(embedded.Fault{Op: op, Path: "/lock", Session: there.Session().ID, Action: embedded.DelayRequest, Delay: time.Second}))
					}
					two = l.Campaign(there.Election("/lock", actors.LeaderLatchNodes()))
					v.WaitNodes(2)
					own := v.LockNodes()
					one.Resigns()
					term := two.Leads()
					if !slices.Contains(own, path.Base(term.Grant().Node())) {
						v.Errorf("leads by %s, and its nodes were %v", term.Grant().Node(), own)
					}
					for _, fault := range late {
						fault.Remove()
						delayed += len(fault.Firings())
					}
					two.Resigns()
					one.Leads()
				}
				if delayed < 10 {
					v.Errorf("only %d requests were delayed", delayed)
				}
				two.End()
				v.Clean()
			})
		})
	}
}

// CURATOR-652: the ensemble was away for an election of its own. The leader gave its leadership up
// when it was SUSPENDED, and after the reconnection each latch replaced its node: the second led
// by the node that it was about to delete, and then the first led as well. Here, with
// StopOnSuspended, the leader resigns once, the second leads by the node that it has, and the
// first waits behind it.
func TestCurator652BothAreSuspended(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		v.NeedsResumption()
		stopOnSuspended := func(cfg *actors.Config) { cfg.StopOnSuspended = true }
		here, there := v.Locks(stopOnSuspended), v.Locks(stopOnSuspended)
		one, two := twoCandidates(v, locktest.NewLedger(v), here, there)
		first, before := one.Leads(), v.LockNodes()
		v.Halt()
		locktest.Closes(v, first.Context().Done(), "the term")
		locktest.Is(v, context.Cause(first.Context()), actors.ErrSuspended)
		<-time.After(time.Second)
		v.Restart()
		term := two.Leads()
		v.WaitNodes(2)
		<-time.After(2 * locktest.SessionTimeout)
		one.Waits()
		expectHeld(v, term)
		if !slices.Contains(before, path.Base(term.Grant().Node())) || there.Session().Epoch != 1 {
			v.Errorf("leads by %s, and the nodes were %v", term.Grant().Node(), before)
		}
		v.Clean()
	})
}

// CURATOR-653: the report of CURATOR-652 once more, by its author's patch: the second led because
// of the event of its predecessor's deletion, which came between its own reset and the deletion of
// its old node. Here both nodes outlive the reconnection and the leader goes on to lead.
func TestCurator653BothReconnect(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		v.NeedsResumption()
		here, there := v.Locks(), v.Locks()
		one, two := twoCandidates(v, locktest.NewLedger(v), here, there)
		first, before := one.Leads(), v.Dump()
		for range 5 {
			v.Halt()
			<-time.After(locktest.SessionTimeout / 3)
			v.Restart()
			locktest.WaitState(v, here, messages.SessionState_CONNECTED)
			locktest.WaitState(v, there, messages.SessionState_CONNECTED)
			<-time.After(2 * locktest.SessionTimeout)
			two.Waits()
			expectHeld(v, first)
			if after := v.Dump(); before != after {
				v.Errorf("the nodes were\n%s and are\n%s", before, after)
			}
		}
		one.Resigns()
		expectHeld(v, two.Leads())
		v.Clean()
	})
}

// CURATOR-696: ZooKeeper was away until the leader's session was over for it, and came back with
// the session's node, which lived on for a while. The leader came back as well, with a new session,
// found the node under the name that it knew, and led by it. When the server expired the old
// session, another led beside it. Here a term belongs to the session that made its node: the old
// nodes are other contenders, and all candidates wait until these nodes are gone.
func TestCurator696NodeOfTheOldSession(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		long := func(cfg *actors.Config) { cfg.SessionTimeout = locktest.LongSession } // a lock server's clients come back within seconds
		here, there := v.Locks(long), v.Locks(long)
		one, two := twoCandidates(v, locktest.NewLedger(v), here, there)
		first, old := one.Leads(), v.LockNodes()
		// The processes cannot close their lost sessions, as if they had been killed.
		unclosed := v.Inject(embedded.Fault{Op: embedded.OpCloseSession, Times: -1, Action: embedded.CutBefore})
		v.Halt()
		locktest.Closes(v, first.Context().Done(), "the term")
		locktest.Is(v, context.Cause(first.Context()), actors.ErrSessionLost)
		locktest.WaitState(v, there, messages.SessionState_LOST) // its deadline may be the later one
		v.Restart()
		v.WaitNodes(4) // of the old sessions, which the restarted server keeps for their timeout, and of the new ones
		one.Waits()
		two.Waits()
		term := locktest.AnyLeads(v, one, two)
		expectHeld(v, term)
		for _, name := range v.LockNodes() {
			if slices.Contains(old, name) {
				v.Errorf("node %s of a lost session is there, and %s leads", name, term.Grant().Node())
			}
		}
		v.WaitNodes(2)
		unclosed.Remove()
		v.Clean()
	})
}
