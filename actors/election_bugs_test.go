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

// The tests of this file repeat reports of two leaders, or none, with Curator's LeaderLatch. That
// has its state in several variables, which the threads of events, of connection states and of
// callbacks change each on their own, and takes part with a new node after every reconnection.
// Here one actor per lock handles all of it as messages, each with the epoch of its session, and
// a node that has been created stays the contender's until it is released or gone.

// twoCandidates has two candidates of two processes, and the first leads.
type twoCandidates struct {
	*virtual
	*ledger
	here, there *actors.Locks
	one, two    *candidate
	first       *actors.Term
}

func newTwoCandidates(v *virtual, configure ...func(*actors.Config)) *twoCandidates {
	d := &twoCandidates{virtual: v, ledger: newLedger(v)}
	d.here = v.locks(configure...)
	d.there = v.locks(configure...)
	d.one = d.campaign(d.here.Election("/lock", actors.LeaderLatchNodes()))
	d.first = d.one.leads()
	d.two = d.campaign(d.there.Election("/lock", actors.LeaderLatchNodes()))
	d.waitNodes(2)
	return d
}

// over ends the candidates.
func (d *twoCandidates) over() {
	d.Helper()
	d.one.end()
	d.two.end()
	d.clean()
}

// next is the next term, of either candidate.
func (d *twoCandidates) next() (c *candidate, term *actors.Term) {
	d.Helper()
	select {
	case term = <-d.one.terms:
		return d.one, term
	case term = <-d.two.terms:
		return d.two, term
	case <-within(d).Done():
		d.Fatal("there is no leader")
	}
	return nil, nil
}

// holds checks that the node of a term exists.
func (d *twoCandidates) holds(term *actors.Term) {
	d.Helper()
	var err error // also of a connection that is away
	zktest.Eventually(d, time.Hour, func() bool { err = term.Grant().Verify(within(d)); return err == nil }, "the leader holds: %v", &err)
	if term.Context().Err() != nil {
		d.Error(context.Cause(term.Context()))
	}
}

// CURATOR-444: the servers of an ensemble could not reach each other for about the session
// timeout. Curator reported to the old leader, which came back on a new session, no loss between
// SUSPENDED and RECONNECTED, so it led on beside the next one. Here the term's context ends by
// the process's own deadline, before any server can expire the session, and a term belongs to one
// session for good.
func TestCurator444QuorumIsAway(t *testing.T) {
	b := three(t, zktest.Links(), zktest.TickTime(500*time.Millisecond))
	l := newLedger(b)
	var all []*candidate
	for _, m := range b.Members() {
		locks := b.on(m, func(cfg *actors.Config) { cfg.SessionTimeout, cfg.Margin = 10*time.Second, 4500*time.Millisecond })
		all = append(all, l.campaign(locks.Election(b.path, actors.LeaderLatchNodes())))
		b.waitNodes(len(all))
	}
	first := all[0].leads()
	for _, m := range b.Members()[1:] { // all links are cut by that
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
	select {
	case <-all[0].terms:
	case <-all[1].terms:
	case <-all[2].terms:
	case <-within(b).Done():
		b.Fatal("there is no leader")
	}
	for _, c := range all {
		c.waits() // but for the one that leads, which has said so
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
		d := newTwoCandidates(v)
		leader, other, terms := d.one, d.two, 2
		last := d.first
		for i := range 30 {
			d.DropConnections()
			switch i % 3 {
			case 0: // the predecessor goes while the waiter is away
				leader.resigns()
			case 1: // and while it comes back
				d.Halt()
				go leader.resigns()
				<-time.After(time.Second)
				d.Restart()
			default:
				state(d, d.here, messages.SessionState_CONNECTED)
				leader.resigns()
			}
			last = other.leads()
			leader, other = other, leader
			d.waitNodes(2)
			terms++
		}
		node := last.Grant().Node()
		seq, err := strconv.Atoi(node[len(node)-10:])
		must(d, err)
		if seq > terms { // numbers begin with 0
			d.Errorf("%d nodes were made for %d terms", seq+1, terms)
		}
		d.over()
	})
}

// CURATOR-620: the second of two RECONNECTED events in quick succession deleted the node by which the
// callback of the first had just declared itself leader, and it did not hear that the node was gone.
// Here a reconnection deletes no node, and a leader watches its own node: the term ends when any client
// deletes it.
func TestCurator620ReconnectedTwice(t *testing.T) {
	t.Parallel()
	bubble(t, func(v *virtual) {
		d := newTwoCandidates(v)
		d.DropConnections()
		d.one.resigns()
		d.DropConnections()
		term := d.two.leads()
		d.DropConnections()
		state(d, d.there, messages.SessionState_CONNECTED)
		d.DropConnections()
		state(d, d.there, messages.SessionState_CONNECTED)
		d.waitNodes(2)
		d.holds(term)

		d.one.end() // it would lead at once, before the leader has heard of the deletion
		must(d, d.Client(d).Delete(term.Grant().Node(), -1))
		closes(d, term.Context().Done(), "the term")
		is(d, context.Cause(term.Context()), actors.ErrNodeDeleted)
		d.holds(d.two.leads())
		d.over()
	})
}

// CURATOR-644: two latches made each other start anew without end. A predecessor that went between
// the list and the watch was taken for the loss of one's own node, whose deletion was the same
// surprise for the next. Here the answer that a predecessor is gone leads to another look at the
// queue, and one's own node stays.
func TestCurator644PredecessorGoesBeforeTheWatch(t *testing.T) {
	t.Parallel()
	for name, op := range map[string]embedded.Op{"watch": embedded.OpGetData, "list": embedded.OpGetChildren2} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(v *virtual) {
				d := newTwoCandidates(v)
				delayed := 0
				for range 10 {
					d.waitNodes(2)
					d.two.end()
					d.waitNodes(1)
					late := v.Inject(embedded.Fault{Op: op, Path: "/lock", Session: d.there.Session().ID, Action: embedded.DelayRequest, Delay: time.Second})
					d.two = d.campaign(d.there.Election("/lock", actors.LeaderLatchNodes()))
					d.waitNodes(2)
					own := d.nodes()
					d.one.resigns()
					term := d.two.leads()
					if !slices.Contains(own, path.Base(term.Grant().Node())) {
						d.Errorf("leads by %s, and its nodes were %v", term.Grant().Node(), own)
					}
					late.Remove()
					delayed += len(late.Firings())
					d.two.resigns()
					d.one.leads()
				}
				if delayed < 10 {
					d.Errorf("only %d requests were delayed", delayed)
				}
				d.over()
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
		d := newTwoCandidates(v, func(cfg *actors.Config) { cfg.StopOnSuspended = true })
		waiter := d.nodes()
		d.Halt()
		closes(d, d.first.Context().Done(), "the term")
		is(d, context.Cause(d.first.Context()), actors.ErrSuspended)
		<-time.After(time.Second)
		d.Restart()
		term := d.two.leads()
		d.waitNodes(2)
		<-time.After(2 * session)
		d.one.waits()
		d.holds(term)
		if !slices.Contains(waiter, path.Base(term.Grant().Node())) || d.there.Session().Epoch != 1 {
			d.Errorf("leads by %s, and had %v", term.Grant().Node(), waiter)
		}
		d.over()
	})
}

// CURATOR-653: the report of CURATOR-652 once more, by its author's patch: the second led because
// of the event of its predecessor's deletion, which came between its own reset and the deletion of
// its old node. Here both nodes outlive the reconnection and the leader goes on to lead.
func TestCurator653BothReconnect(t *testing.T) {
	t.Parallel()
	bubble(t, func(v *virtual) {
		d := newTwoCandidates(v)
		before := d.Dump()
		for range 5 {
			d.Halt()
			<-time.After(session / 3)
			d.Restart()
			state(d, d.here, messages.SessionState_CONNECTED)
			state(d, d.there, messages.SessionState_CONNECTED)
			<-time.After(2 * session)
			d.two.waits()
			d.holds(d.first)
			if after := d.Dump(); before != after {
				d.Errorf("the nodes were\n%s and are\n%s", before, after)
			}
		}
		d.one.resigns()
		d.holds(d.two.leads())
		d.over()
	})
}

// CURATOR-696: ZooKeeper was away until the leader's session was over for it, and came back with
// the session's node, which lived on for a while. The leader came back as well, with a new session,
// found the node under the name that it knew, and led by it. When the server expired the old
// session, another led beside it. Here a term belongs to the session that made its node: the old
// nodes are those of strangers, and all wait until they are gone.
func TestCurator696NodeOfTheOldSession(t *testing.T) {
	t.Parallel()
	bubble(t, func(v *virtual) {
		d := newTwoCandidates(v)
		old := d.nodes()
		// The processes cannot close their lost sessions, as if they had been killed.
		stuck := v.Inject(embedded.Fault{Op: embedded.OpCloseSession, Times: -1, Action: embedded.CutBefore})
		d.Halt()
		closes(d, d.first.Context().Done(), "the term")
		is(d, context.Cause(d.first.Context()), actors.ErrSessionLost)
		d.Restart()
		d.waitNodes(4) // of the old sessions, which the server has anew for a timeout, and of the new
		d.one.waits()
		d.two.waits()
		_, term := d.next()
		d.holds(term)
		for _, name := range d.nodes() {
			if slices.Contains(old, name) {
				d.Errorf("node %s of a lost session is there, and %s leads", name, term.Grant().Node())
			}
		}
		d.waitNodes(2)
		stuck.Remove()
		d.over()
	})
}
