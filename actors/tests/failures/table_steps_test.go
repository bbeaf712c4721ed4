package failures

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// endRequest has a request of the holder's process end while the owner holds.
func (c *cell) endRequest(why error, end func(f *actors.Future[*actors.Grant])) {
	c.Helper()
	c.hold()
	f := c.request(c.ours)
	end(f)
	locktest.Is(c, locktest.Failure(c, f), why)
	c.expectOthersGoOn()
}

// expectText checks that an error names the lock, and has the parts.
func (c *cell) expectText(err error, parts ...string) {
	c.Helper()
	if err != nil {
		locktest.ExpectParts(c, err.Error(), append(parts, c.LockPath)...)
	}
}

// expectOthersGoOn checks that a request that has ended has left no node, and that it has not
// changed the grants.
func (c *cell) expectOthersGoOn() {
	c.Helper()
	var nodes []string
	zktest.Eventually(c, zktest.TimeLimit, func() bool { nodes = c.nodes(); return slices.Equal(nodes, c.heldNodes) }, "the request's node is gone: %v", &nodes)
	c.expectHeld()
	there := c.request(c.theirs)
	c.release()
	c.expectServed(there)
	c.expectUsable()
}

// deleteHolderNodes ends the grants by the deletion of nodes, in each way that the row has.
func (c *cell) deleteHolderNodes(remove func(nodes ...string)) {
	c.Helper()
	for i := 0; ; i++ {
		c.hold()
		ends := [][]string{c.ownNodes()}
		if c.row.ends != nil {
			ends = c.row.ends(c)
		}
		if i == len(ends) {
			c.release()
			return
		}
		c.wait()
		remove(ends[i]...)
		c.expectEnded(actors.ErrNodeDeleted)
		c.expectServed(c.ourRequest, c.theirRequest)
		c.expectUsable()
	}
}

// closeOurs ends the grants and the requests of ours by Close.
func (c *cell) closeOurs() {
	c.Helper()
	c.hold()
	c.wait()
	timed := c.row.waiter(c.ours, c.LockPath).Acquire(context.Background(), append(c.row.Options, actors.WithTimeout(time.Hour))...)
	elsewhere := c.row.At(c.ours, c.LockPath+"-unrelated").Acquire(context.Background(), c.row.Options...)
	own := c.ownNodes()
	locktest.Must(c, c.ours.Close())
	if g, err := elsewhere.Result(); err == nil { // granted just before
		locktest.Is(c, g.Err(), actors.ErrClosed)
	} else {
		locktest.Is(c, err, actors.ErrClosed)
	}
	for _, node := range c.nodes() {
		if slices.Contains(own, node) {
			c.Errorf("Close has left %s", node)
		}
	}
	for _, f := range []*actors.Future[*actors.Grant]{c.ourRequest, timed, elsewhere} {
		if !locktest.IsClosed(f.Done()) {
			c.Error("a request goes on after Close")
		}
	}
	locktest.Is(c, locktest.Failure(c, c.ourRequest), actors.ErrClosed)
	locktest.Is(c, locktest.Failure(c, timed), actors.ErrClosed)
	c.expectEnded(actors.ErrClosed)
	c.expectServed(c.theirRequest)
	locktest.Must(c, c.ours.Close())
	for _, path := range []string{c.LockPath, c.LockPath + "-later"} {
		_, err := c.row.At(c.ours, path).PID()
		locktest.Is(c, err, actors.ErrClosed)
	}
	locktest.Is(c, locktest.Failure(c, c.row.At(c.ours, c.LockPath).Acquire(context.Background())), actors.ErrClosed)
}

// startReleases has a request of theirs wait, and then begins to release all grants and to acquire
// again while the server is slow.
func (c *cell) startReleases() (releases []*actors.Future[struct{}], acquire *actors.Future[*actors.Grant]) {
	c.Helper()
	c.hold()
	c.theirRequest = c.request(c.theirs)
	slow := embedded.Fault{Op: embedded.OpAny, Session: c.ours.Session().ID, Action: embedded.DelayRequest, Delay: 300 * time.Millisecond}
	injected := c.Embedded().Inject(slow)
	for _, g := range c.grants {
		releases = append(releases, g.Release())
	}
	acquire = c.row.waiter(c.ours, c.LockPath).Acquire(context.Background(), c.row.Options...)
	if !c.row.localQueue { // which hands its node on without a request
		locktest.Closes(c, injected.Fired(), "the wait for a request")
	}
	return releases, acquire
}

// expectReleased waits for releases, which succeed or fail with an error.
func (c *cell) expectReleased(why error, releases ...*actors.Future[struct{}]) {
	c.Helper()
	for _, f := range releases {
		if _, err := f.Wait(locktest.Within(c)); err != nil {
			locktest.Is(c, err, why)
		}
	}
}

// panicActor has an actor of the row panic: the actor of the lock for 0, or else the one of its nth
// member.
func (c *cell) panicActor(nth int, message any) {
	c.Helper()
	mu := c.row.At(c.ours, c.LockPath)
	if nth > 0 {
		mu = c.row.Members(c.ours, c.LockPath)[nth-1].(locktest.Handle)
	}
	c.testActors[0].Panics(mu, message)
}

// drop acquires, and drops the grants.
func (c *cell) drop() {
	c.Helper()
	c.hold()
	c.grants, c.done, c.contexts = nil, nil, nil
}

// stopActor has an actor hold, and stop.
func stopActor(c *cell) {
	alice, bob := c.testActors[0], c.testActors[1]
	to := locktest.PID(c, c.row.At(c.ours, c.LockPath))
	alice.Send(to, &messages.Acquire{RequestId: 7, Owner: string(me), Kind: uint32(c.row.Kind), Permits: c.row.Permits})
	alice.Granted(7)
	bob.Send(to, &messages.Acquire{RequestId: 8, Kind: uint32(c.row.Kind), Permits: c.row.Permits})
	c.waitIdle()
	c.theirRequest = c.request(c.theirs)
	bob.Stop()
	alice.Stop()
	c.expectServed(c.theirRequest)
	for _, p := range []*locktest.OwnerActor{alice, bob} {
		if lines := c.log.With(p.Self.Id + " "); len(lines) != 1 || !strings.Contains(lines[0], locktest.HasEnded) || !strings.Contains(lines[0], c.LockPath) ||
			p == alice && !(strings.Contains(lines[0], "held=true") && strings.Contains(lines[0], "owner=me")) {
			c.Errorf("the log has %q", lines)
		}
	}
	c.expectUsable()
}

// overdue has the deadline pass while the bridge is blocked, as just after a pause of the process.
func overdue(c *cell) {
	locktest.Must(c, c.ours.Close())
	locks, bridge := c.OnBridge()
	c.ours = locks
	c.hold()
	child, cancel := context.WithCancel(c.contexts[0])
	defer cancel()
	unasked := locktest.Lock(c, locks.Mutex("/unasked")) // whose Err is not called before its Done
	c.wait()
	resume := locktest.PauseBridge(bridge)
	defer resume()
	c.Freeze(c)
	defer c.Thaw(c)
	deadline := locks.Session().Deadline
	<-time.After(time.Until(deadline) - 1)
	if s := locks.Session(); s.State != messages.SessionState_CONNECTED && s.State != messages.SessionState_SUSPENDED {
		c.Errorf("before the deadline: %+v", s)
	}
	c.expectHeld()
	locktest.Must(c, context.Cause(child))
	<-time.After(1)
	if s := locks.Session(); s.State != messages.SessionState_LOST || s.ID != c.grants[0].Session() || !s.Deadline.Equal(deadline) {
		c.Errorf("at the deadline: %+v", s)
	}
	if locktest.IsClosed(c.done[0]) {
		c.Error("a timer has ended the grant already")
	}
	locktest.Is(c, c.contexts[0].Err(), context.Canceled)
	locktest.Is(c, context.Cause(child), actors.ErrSessionLost)
	locktest.Is(c, c.grants[0].Verify(locktest.Within(c)), actors.ErrSessionLost)
	if done := unasked.Done(); !locktest.IsClosed(done) {
		c.Error("a grant whose Err was not called goes on")
	}
	c.expectEnded(actors.ErrSessionLost)
	locktest.Is(c, locktest.Failure(c, unasked.Release()), actors.ErrSessionLost)
	late := c.row.waiter(locks, c.LockPath).Acquire(context.Background(), c.row.Options...)
	<-time.After(time.Minute)
	locktest.Pending(c, c.ourRequest, late)
	c.Thaw(c)
	resume()
	c.expectServed(c.ourRequest, c.theirRequest, late)
	if g := locktest.Result(c, c.ourRequest); g.Session() == c.grants[0].Session() {
		c.Error("granted in the session that was lost")
	}
	c.expectUsable()
}
