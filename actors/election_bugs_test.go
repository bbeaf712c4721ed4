package actors_test

import (
	"context"
	"path"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
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
// clean ends both.
func (v *virtual) twoCandidates(l *ledger, here, there *actors.Locks) (first, second *candidate) {
	v.Helper()
	first = l.campaign(here.Election("/lock", actors.LeaderLatchNodes()))
	v.waitNodes(1)
	second = l.campaign(there.Election("/lock", actors.LeaderLatchNodes()))
	v.waitNodes(2)
	v.cleanups = append(v.cleanups, first.end, second.end)
	return first, second
}

// expectHeld checks that the node of a term exists, and that the term goes on.
func (v *virtual) expectHeld(term *actors.Term) {
	v.Helper()
	var err error // also without a connection
	zktest.Eventually(v, time.Hour, func() bool { err = term.Grant().Verify(within(v)); return err == nil }, "the leader holds: %v", &err)
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
	b := ensemble(t, zktest.Links(), zktest.TickTime(500*time.Millisecond))
	l := newLedger(b)
	var all []*candidate
	for _, m := range b.Members() {
		locks := b.locksOn(m, func(cfg *actors.Config) { cfg.SessionTimeout, cfg.Margin = 10*time.Second, 4500*time.Millisecond })
		all = append(all, l.campaign(locks.Election(b.path, actors.LeaderLatchNodes())))
		b.waitNodes(len(all))
	}
	first := all[0].leads()
	for _, m := range b.Members()[1:] { // which cuts all links
		m.Isolate(b, true)
	}
	closes(b, first.Context().Done(), "the term without a quorum")
	is(b, context.Cause(first.Context()), actors.ErrSessionLost)
	<-time.After(5 * time.Second)
	for _, c := range all {
		c.waits()
	}
	for _, m := range b.Members()[1:] {
		m.Isolate(b, false)
	}
	anyLeads(b, all...)
	for _, c := range all {
		c.waits() // the leader has no second term
	}
	for _, c := range all { // with the first of these the next one may lead
		c.end()
	}
	b.waitNodes(0)
}

// CURATOR-504: after a reconnection a latch deleted its node and made a new one, in one thread,
// while the event of a deleted predecessor, in another thread, found its own path unset and did
// the same once more. That went on for hours, with millions of nodes. Here a reconnection makes no
// node: each term and each wait has one node, whatever the order of events.
func TestCurator504ReconnectingMakesNoNodes(t *testing.T) {
	t.Parallel()
	bubble(t, func(v *virtual) {
		here, there := v.locks(), v.locks()
		leader, other := v.twoCandidates(newLedger(v), here, there)
		last, terms := leader.leads(), 2
		for i := range 30 {
			v.DropConnections()
			switch i % 3 {
			case 0: // the predecessor goes while the waiter is disconnected
				leader.resigns()
			case 1: // and while the waiter reconnects
				v.Halt()
				go leader.resigns()
				<-time.After(time.Second)
				v.Restart()
			default:
				waitState(v, here, messages.SessionState_CONNECTED)
				leader.resigns()
			}
			last = other.leads()
			leader, other = other, leader
			v.waitNodes(2)
			terms++
		}
		node := last.Grant().Node()
		seq, err := strconv.Atoi(node[len(node)-10:])
		must(v, err)
		if seq > terms { // numbers begin with 0
			v.Errorf("%d nodes were made for %d terms", seq+1, terms)
		}
		v.clean()
	})
}

// CURATOR-620: the second of two RECONNECTED events in quick succession deleted the node by which
// the callback of the first had just declared itself leader, and the latch did not notice the
// deletion. Here a reconnection deletes no node, and a leader watches its own node: the term ends
// when any client deletes it.
func TestCurator620ReconnectedTwice(t *testing.T) {
	t.Parallel()
	bubble(t, func(v *virtual) {
		here, there := v.locks(), v.locks()
		one, two := v.twoCandidates(newLedger(v), here, there)
		one.leads()
		v.DropConnections()
		one.resigns()
		v.DropConnections()
		term := two.leads()
		for range 2 {
			v.DropConnections()
			waitState(v, there, messages.SessionState_CONNECTED)
		}
		v.waitNodes(2)
		v.expectHeld(term)

		one.end() // it would lead before the leader notices the deletion
		must(v, v.Client(v).Delete(term.Grant().Node(), -1))
		closes(v, term.Context().Done(), "the term")
		is(v, context.Cause(term.Context()), actors.ErrNodeDeleted)
		v.expectHeld(two.leads())
		v.clean()
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
			bubble(t, func(v *virtual) {
				l, here, there := newLedger(v), v.locks(), v.locks()
				one, two := v.twoCandidates(l, here, there)
				one.leads()
				delayed := 0
				for range 10 {
					v.waitNodes(2)
					two.end()
					v.waitNodes(1)
					var late []*embedded.Injected
					for _, op := range ops {
						late = append(late, v.Inject(embedded.Fault{Op: op, Path: "/lock", Session: there.Session().ID, Action: embedded.DelayRequest, Delay: time.Second}))
					}
					two = l.campaign(there.Election("/lock", actors.LeaderLatchNodes()))
					v.waitNodes(2)
					own := v.nodes()
					one.resigns()
					term := two.leads()
					if !slices.Contains(own, path.Base(term.Grant().Node())) {
						v.Errorf("leads by %s, and its nodes were %v", term.Grant().Node(), own)
					}
					for _, fault := range late {
						fault.Remove()
						delayed += len(fault.Firings())
					}
					two.resigns()
					one.leads()
				}
				if delayed < 10 {
					v.Errorf("only %d requests were delayed", delayed)
				}
				two.end()
				v.clean()
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
	bubble(t, func(v *virtual) {
		stopOnSuspended := func(cfg *actors.Config) { cfg.StopOnSuspended = true }
		here, there := v.locks(stopOnSuspended), v.locks(stopOnSuspended)
		one, two := v.twoCandidates(newLedger(v), here, there)
		first, before := one.leads(), v.nodes()
		v.Halt()
		closes(v, first.Context().Done(), "the term")
		is(v, context.Cause(first.Context()), actors.ErrSuspended)
		<-time.After(time.Second)
		v.Restart()
		term := two.leads()
		v.waitNodes(2)
		<-time.After(2 * session)
		one.waits()
		v.expectHeld(term)
		if !slices.Contains(before, path.Base(term.Grant().Node())) || there.Session().Epoch != 1 {
			v.Errorf("leads by %s, and the nodes were %v", term.Grant().Node(), before)
		}
		v.clean()
	})
}

// CURATOR-653: the report of CURATOR-652 once more, by its author's patch: the second led because
// of the event of its predecessor's deletion, which came between its own reset and the deletion of
// its old node. Here both nodes outlive the reconnection and the leader goes on to lead.
func TestCurator653BothReconnect(t *testing.T) {
	t.Parallel()
	bubble(t, func(v *virtual) {
		here, there := v.locks(), v.locks()
		one, two := v.twoCandidates(newLedger(v), here, there)
		first, before := one.leads(), v.Dump()
		for range 5 {
			v.Halt()
			<-time.After(session / 3)
			v.Restart()
			waitState(v, here, messages.SessionState_CONNECTED)
			waitState(v, there, messages.SessionState_CONNECTED)
			<-time.After(2 * session)
			two.waits()
			v.expectHeld(first)
			if after := v.Dump(); before != after {
				v.Errorf("the nodes were\n%s and are\n%s", before, after)
			}
		}
		one.resigns()
		v.expectHeld(two.leads())
		v.clean()
	})
}

// CURATOR-696: ZooKeeper was away until the leader's session was over for it, and came back with
// the session's node, which lived on for a while. The leader came back as well, with a new session,
// found the node under the name that it knew, and led by it. When the server expired the old
// session, another led beside it. Here a term belongs to the session that made its node: the old
// nodes are other contenders, and all candidates wait until these nodes are gone.
func TestCurator696NodeOfTheOldSession(t *testing.T) {
	t.Parallel()
	bubble(t, func(v *virtual) {
		one, two := v.twoCandidates(newLedger(v), v.locks(), v.locks())
		first, old := one.leads(), v.nodes()
		// The processes cannot close their lost sessions, as if they had been killed.
		unclosed := v.Inject(embedded.Fault{Op: embedded.OpCloseSession, Times: -1, Action: embedded.CutBefore})
		v.Halt()
		closes(v, first.Context().Done(), "the term")
		is(v, context.Cause(first.Context()), actors.ErrSessionLost)
		v.Restart()
		v.waitNodes(4) // of the old sessions, which the restarted server keeps for their timeout, and of the new ones
		one.waits()
		two.waits()
		term := anyLeads(v, one, two)
		v.expectHeld(term)
		for _, name := range v.nodes() {
			if slices.Contains(old, name) {
				v.Errorf("node %s of a lost session is there, and %s leads", name, term.Grant().Node())
			}
		}
		v.waitNodes(2)
		unclosed.Remove()
		v.clean()
	})
}
