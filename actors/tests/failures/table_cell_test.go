package failures

import (
	"context"
	"errors"
	"slices"
	"testing/synctest"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// cell is one recipe and one ending of TestEndings. An owner of the process "ours" holds, and a
// request of that process and one of "theirs" wait.
type cell struct {
	*locktest.Fixture
	row     tableRow
	log     locktest.Log
	network *locktest.Network // of ours
	ours    *actors.Locks
	theirs  *actors.Locks

	testActors []*locktest.OwnerActor
	grants     []*actors.Grant
	heldNodes  []string          // the nodes while the owner holds and no request waits
	holding    *actors.Locks     // the process whose owner holds
	done       []<-chan struct{} // of the grants
	contexts   []context.Context // of the grants
	last       actors.Token

	ourRequest, theirRequest *actors.Future[*actors.Grant] // which wait
}

// hold has the owner acquire the grants of the row.
func (c *cell) hold() {
	c.Helper()
	if c.row.hold != nil {
		c.grants = c.row.hold(c, c)
	} else {
		c.grants = []*actors.Grant{locktest.Lock(c, c.row.At(c.ours, c.LockPath), append(c.row.Options, actors.WithOwner(me))...)}
	}
	c.holding, c.done, c.contexts = c.ours, nil, nil
	for _, g := range c.grants {
		if g.Err() != nil {
			c.Errorf("granted, and ended: %v", g.Err())
		}
		c.checkToken(g)
		c.done, c.contexts = append(c.done, g.Done()), append(c.contexts, g.Context(context.Background()))
	}
	c.heldNodes = c.ownNodes()
}

// holdElsewhere has an owner of theirs hold.
func (c *cell) holdElsewhere() *actors.Grant {
	c.Helper()
	c.grants, c.holding = nil, c.theirs
	return locktest.Lock(c, c.row.At(c.theirs, c.LockPath), c.row.Options...)
}

// checkToken checks that the grant's token is not smaller than the last one.
func (c *cell) checkToken(g *actors.Grant) {
	c.Helper()
	if g.Token().Compare(c.last) < 0 {
		c.Errorf("token %v after %v", g.Token(), c.last)
	}
	c.last = g.Token()
}

// request has one more request of a process wait.
func (c *cell) request(locks *actors.Locks, options ...actors.Option) *actors.Future[*actors.Grant] {
	c.Helper()
	before := c.nodes() // perhaps with the node of a cancelled request, which goes meanwhile
	f := c.row.waiter(locks, c.LockPath).Acquire(context.Background(), append(c.row.Options, options...)...)
	if !c.row.localQueue || locks != c.holding {
		isNew := func(node string) bool { return !slices.Contains(before, node) }
		zktest.Eventually(c, zktest.TimeLimit, func() bool { return slices.ContainsFunc(c.nodes(), isNew) }, "the request in the queue")
	}
	c.waitIdle()
	locktest.Pending(c, f)
	return f
}

// wait has a request of each process wait.
func (c *cell) wait() {
	c.Helper()
	c.ourRequest = c.request(c.ours)
	c.theirRequest = c.request(c.theirs)
}

// expectHeld checks that the owner still holds.
func (c *cell) expectHeld() {
	c.Helper()
	for i, g := range c.grants {
		if g.Err() != nil || locktest.IsClosed(c.done[i]) {
			c.Errorf("the grant has ended: %v", g.Err())
		}
	}
}

// expectEnded waits for the end of the grants, and checks all that shows it to users. The owner may
// acquire again when all its grants are released.
func (c *cell) expectEnded(why error) {
	c.Helper()
	for i, g := range c.grants {
		locktest.Closes(c, c.done[i], "the grant")
		locktest.Is(c, context.Cause(c.contexts[i]), why) // which may not come after Done
		locktest.Is(c, g.Err(), why)
		locktest.Is(c, context.Cause(g.Context(context.Background())), why)
	}
	for _, g := range c.grants {
		if !c.row.ForgetsLoss && why != actors.ErrInternal { // a new actor knows no owners of the failed one
			_, err := c.row.At(c.ours, c.LockPath).Lock(locktest.Within(c), append(c.row.Options, actors.WithOwner(me))...)
			// A semaphore counts the permits as held until the bridge reports the loss.
			if c.row.Directories == nil || !c.row.NotReentrant || !errors.Is(err, actors.ErrDeadlock) {
				locktest.Is(c, err, why)
			}
		}
		locktest.Is(c, locktest.Failure(c, g.Release()), why)
		locktest.Is(c, locktest.Failure(c, g.Release()), actors.ErrNotHeld)
		locktest.Is(c, g.Err(), why)
	}
}

// release has the owner release, and checks that the nodes are gone by then.
func (c *cell) release() {
	c.Helper()
	for i, g := range c.grants {
		f := g.Release()
		if !locktest.IsClosed(c.done[i]) || c.contexts[i].Err() == nil {
			c.Error("the grant goes on after Release")
		}
		locktest.Is(c, g.Err(), actors.ErrReleased)
		locktest.Is(c, context.Cause(c.contexts[i]), actors.ErrReleased)
		locktest.Result(c, f)
		locktest.Is(c, locktest.Failure(c, g.Release()), actors.ErrNotHeld)
	}
}

// expectServed waits until each request is granted, with a greater token than the row's owner, and
// releases the grants.
func (c *cell) expectServed(fs ...*actors.Future[*actors.Grant]) {
	c.Helper()
	c.InTurn(func(g *actors.Grant) {
		if g.Err() != nil {
			c.Errorf("granted, and ended: %v", g.Err())
		}
		for _, former := range c.grants {
			locktest.ExpectIncreasing(c, former.Token(), g.Token())
		}
	}, fs...)
}

// expectUsable checks that both processes can acquire again what the owner and the waiters had.
func (c *cell) expectUsable() {
	c.Helper()
	for _, locks := range []*actors.Locks{c.ours, c.theirs} {
		for _, handle := range []func(*actors.Locks, string) locktest.Handle{c.row.At, c.row.waiter} {
			var g *actors.Grant
			zktest.Eventually(c, zktest.TimeLimit, func() bool { // an actor that has failed may refuse one more
				var err error
				g, err = handle(locks, c.LockPath).Lock(locktest.Within(c), append(c.row.Options, actors.WithOwner(me))...)
				if err != nil && !errors.Is(err, actors.ErrInternal) {
					c.Fatalf("lock: %v", err)
				}
				return err == nil
			}, "the lock works again")
			locktest.Unlock(c, g)
		}
	}
}

// clean waits until nothing is left of the lock.
func (c *cell) clean() {
	c.Helper()
	var nodes []string
	zktest.Eventually(c, zktest.TimeLimit, func() bool { nodes = c.nodes(); return len(nodes) == 0 }, "no node is left: %v", &nodes)
	c.ExpectNoMarkerOrWatch()
}

// waitIdle waits, in virtual time, until the requests so far have reached their places.
func (c *cell) waitIdle() {
	if c.Virtual() {
		<-time.After(time.Second)
		synctest.Wait()
	}
}

// expire ends the session of ours, and waits for the next one.
func (c *cell) expire() {
	c.Helper()
	old := c.ours.Session()
	c.network.Disconnect() // else it may notice the deletion of its nodes first
	c.Expire(c, old.ID)
	c.network.Refuse(false)
	c.WaitNewSession(c.ours, old)
}

// ownNodes returns the nodes of the grants.
func (c *cell) ownNodes() (nodes []string) {
	for _, g := range c.grants {
		nodes = append(nodes, g.Nodes()...)
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}
