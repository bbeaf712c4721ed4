package actors_test

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// givesUp has a request of the holder's process end for a reason.
func (c *cell) givesUp(why error, end func(f *actors.Future[*actors.Grant])) {
	c.Helper()
	c.hold()
	f := c.request(c.ours)
	end(f)
	is(c, failure(c, f), why)
	c.othersGoOn()
}

// othersGoOn checks that a request which has ended has left its owner's grants alone, and no node.
func (c *cell) othersGoOn() {
	c.Helper()
	var nodes []string
	zktest.Eventually(c, timeLimit, func() bool { nodes = c.nodes(); return slices.Equal(nodes, c.before) }, "the request's node is gone: %v", &nodes)
	c.held()
	there := c.request(c.theirs)
	c.release()
	c.served(there)
	c.usable()
}

// holdersNodes ends the grants by the deletion of nodes, in each way that the row has.
func (c *cell) holdersNodes(remove func(nodes ...string)) {
	c.Helper()
	for i := 0; ; i++ {
		c.hold()
		ends := [][]string{c.own()}
		if c.row.ends != nil {
			ends = c.row.ends(c)
		}
		if i == len(ends) {
			c.release()
			return
		}
		c.wait()
		remove(ends[i]...)
		c.over(actors.ErrNodeDeleted)
		c.served(c.here, c.there)
		c.usable()
	}
}

// closeOurs ends the grants and the requests of ours by Close.
func (c *cell) closeOurs() {
	c.Helper()
	c.hold()
	c.wait()
	timed := c.row.waiter(c.ours, c.path).Acquire(context.Background(), append(c.row.options, actors.WithTimeout(time.Hour))...)
	elsewhere := c.row.at(c.ours, c.path+"-unrelated").Acquire(context.Background(), c.row.options...)
	own := c.own()
	must(c, c.ours.Close())
	if g, err := elsewhere.Result(); err == nil { // granted just before
		is(c, g.Err(), actors.ErrClosed)
	} else {
		is(c, err, actors.ErrClosed)
	}
	for _, node := range c.nodes() {
		if slices.Contains(own, node) {
			c.Errorf("Close has left %s", node)
		}
	}
	for _, f := range []*actors.Future[*actors.Grant]{c.here, timed, elsewhere} {
		if !isClosed(f.Done()) {
			c.Error("a request goes on after Close")
		}
	}
	is(c, failure(c, c.here), actors.ErrClosed)
	is(c, failure(c, timed), actors.ErrClosed)
	c.over(actors.ErrClosed)
	c.served(c.there)
	must(c, c.ours.Close())
	for _, path := range []string{c.path, c.path + "-later"} {
		_, err := c.row.at(c.ours, path).PID()
		is(c, err, actors.ErrClosed)
	}
	is(c, failure(c, c.row.at(c.ours, c.path).Acquire(context.Background())), actors.ErrClosed)
}

// busy begins to release all grants and to acquire anew while the server is slow, and has a
// request of theirs wait.
func (c *cell) busy() (releases []*actors.Future[struct{}], acquire *actors.Future[*actors.Grant]) {
	c.Helper()
	c.hold()
	c.there = c.request(c.theirs)
	slow := embedded.Fault{Op: embedded.OpAny, Session: c.ours.Session().ID, Action: embedded.DelayRequest, Delay: 300 * time.Millisecond}
	injected := c.Embedded().Inject(slow)
	for _, g := range c.grants {
		releases = append(releases, g.Release())
	}
	acquire = c.row.waiter(c.ours, c.path).Acquire(context.Background(), c.row.options...)
	if !c.row.localQueue { // which passes its node on without a request
		closes(c, injected.Fired(), "the wait for a request")
	}
	return releases, acquire
}

// ended waits for releases that may have been done before what ended them.
func (c *cell) ended(why error, releases ...*actors.Future[struct{}]) {
	c.Helper()
	for _, f := range releases {
		if _, err := f.Wait(within(c)); err != nil {
			is(c, err, why)
		}
	}
}

// poison has an actor of the row panic: the actor of the lock, or the nth that it builds on.
func (c *cell) poison(nth int, message any) {
	c.Helper()
	actors.Poison(c.row.at(c.ours, c.path), nth, message)
}

// drop acquires, and forgets the grants.
func (c *cell) drop() {
	c.Helper()
	c.hold()
	c.grants, c.done, c.contexts = nil, nil, nil
}

// ownersActor has an actor hold, and stop.
func ownersActor(c *cell) {
	alice, bob := c.testActors[0], c.testActors[1]
	to := pid(c, c.row.at(c.ours, c.path))
	alice.send(to, &messages.Acquire{RequestId: 7, Owner: string(me), Kind: uint32(c.row.kind), Permits: c.row.permits})
	alice.granted(7)
	bob.send(to, &messages.Acquire{RequestId: 8, Kind: uint32(c.row.kind), Permits: c.row.permits})
	c.settle()
	c.there = c.request(c.theirs)
	bob.stop()
	alice.stop()
	c.served(c.there)
	for _, p := range []*testActor{alice, bob} {
		if lines := c.log.with(p.self.Id + " "); len(lines) != 1 || !strings.Contains(lines[0], hasEnded) || !strings.Contains(lines[0], c.path) ||
			p == alice && !(strings.Contains(lines[0], "held=true") && strings.Contains(lines[0], "owner=me")) {
			c.Errorf("the log has %q", lines)
		}
	}
	c.usable()
}

// overdue has the deadline pass while nothing tells the process of it: its bridge stands still, as
// after a pause of the process.
func overdue(c *cell) {
	must(c, c.ours.Close())
	locks, bridge := c.onBridge()
	c.ours = locks
	c.hold()
	below, cancel := context.WithCancel(c.contexts[0])
	defer cancel()
	lone := lock(c, locks.Mutex("/lone")) // which is not asked for its error
	c.wait()
	resume := pauseBridge(bridge)
	defer resume()
	c.Freeze(c)
	defer c.Thaw(c)
	deadline := locks.Session().Deadline
	<-time.After(time.Until(deadline) - 1)
	if s := locks.Session(); s.State != messages.SessionState_CONNECTED && s.State != messages.SessionState_SUSPENDED {
		c.Errorf("before the deadline: %+v", s)
	}
	c.held()
	must(c, context.Cause(below))
	<-time.After(1)
	if s := locks.Session(); s.State != messages.SessionState_LOST || s.ID != c.grants[0].Session() || !s.Deadline.Equal(deadline) {
		c.Errorf("at the deadline: %+v", s)
	}
	if isClosed(c.done[0]) {
		c.Error("a timer has ended the grant already")
	}
	is(c, c.contexts[0].Err(), context.Canceled)
	is(c, context.Cause(below), actors.ErrSessionLost)
	is(c, c.grants[0].Verify(within(c)), actors.ErrSessionLost)
	if done := lone.Done(); !isClosed(done) {
		c.Error("a grant that was not asked for its error goes on")
	}
	c.over(actors.ErrSessionLost)
	is(c, failure(c, lone.Release()), actors.ErrSessionLost)
	late := c.row.waiter(locks, c.path).Acquire(context.Background(), c.row.options...)
	<-time.After(time.Minute)
	pending(c, c.here, late)
	c.Thaw(c)
	resume()
	c.served(c.here, c.there, late)
	if g := result(c, c.here); g.Session() == c.grants[0].Session() {
		c.Error("granted in the session that was lost")
	}
	c.usable()
}
