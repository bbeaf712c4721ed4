package failures

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/actors/internal/sample"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// ending is a way in which a grant or a request may end.
type ending struct {
	name string
	run  func(c *cell)
	// configure changes the configuration of ours.
	configure func(cfg *actors.Config)
	// virtual: the ending needs virtual time, or faults of the embedded server.
	virtual bool
	// realTime: the ending needs real time, for the garbage collector or for actors of another
	// system.
	realTime bool
	// actors is the number of actors that the ending needs as owners.
	actors int
}

// TestEndings ends grants and requests of each recipe in each way, while one owner holds, and
// requests of its own process and of another wait. Their owners get the reason, the other requests
// are granted with greater tokens, no node and no watch is left, and both processes can use the
// lock again. Each cell runs on the embedded server, in virtual time where that is possible, and on
// a real one. By habit a sample of the cells runs.
func TestEndings(t *testing.T) {
	t.Parallel()
	inVirtualTime, inRealTime, onReal := sample.OneIn(t, 3), sample.OneIn(t, 12), sample.OneIn(t, 24)
	for _, e := range endings {
		for _, row := range tableRows {
			name := e.name + "/" + row.Name
			switch {
			case e.realTime && inRealTime():
				t.Run(name+"/embedded", func(t *testing.T) {
					t.Parallel()
					e.inRealTime(t, zktest.Embedded(t), row)
				})
			case !e.realTime && inVirtualTime():
				t.Run(name+"/virtual", func(t *testing.T) {
					t.Parallel()
					e.inVirtualTime(t, row)
				})
			}
			if !e.virtual && !e.realTime && onReal() {
				t.Run(name+"/zookeeper", func(t *testing.T) {
					t.Parallel()
					e.inRealTime(t, zktest.Real(t), row)
				})
			}
		}
	}
}

func (e ending) inRealTime(t *testing.T, s *zktest.Server, row tableRow) {
	e.on(&locktest.Fixture{T: t, Server: s, LockPath: s.Path(t)}, row)
}

func (e ending) inVirtualTime(t *testing.T, row tableRow) {
	locktest.Bubble(t, func(v *locktest.Virtual) { e.on(v.Fixture, row) })
}

func (e ending) on(b *locktest.Fixture, row tableRow) {
	var configure []func(*actors.Config)
	if e.configure != nil {
		configure = append(configure, e.configure)
	}
	var all []*locktest.OwnerActor
	if e.actors > 0 {
		var system func(*actors.Config)
		system, all = locktest.OwnerActors(b.T, e.actors)
		configure = append(configure, system)
	}
	c := &cell{Fixture: b, row: row, testActors: all}
	p := b.Process(append(configure, c.log.Config)...)
	c.network, c.ours, c.theirs = p.Network, p.Locks, b.Locks()
	e.run(c)
	c.clean()
}

var endings = []ending{
	{name: "released", run: func(c *cell) {
		c.hold()
		c.wait()
		c.release()
		c.expectServed(c.ourRequest, c.theirRequest)
		c.expectUsable()
	}},
	{name: "cancelled while waiting", run: func(c *cell) {
		c.endRequest(actors.ErrCancelled, func(f *actors.Future[*actors.Grant]) {
			f.Cancel()
			if !locktest.IsClosed(f.Done()) {
				c.Error("the future goes on after Cancel")
			}
			f.Cancel()
			c.expectText(locktest.Failure(c, f), "future was cancelled")
		})
	}},
	{name: "context ends while waiting", run: func(c *cell) {
		ctx, cancel := context.WithCancelCause(context.Background())
		why := errors.New("the context is over")
		c.hold()
		f := c.row.waiter(c.ours, c.LockPath).Acquire(ctx, c.row.Options...)
		c.waitIdle()
		cancel(why)
		locktest.Is(c, locktest.Failure(c, f), why)
		_, err := c.row.waiter(c.theirs, c.LockPath).Lock(ctx, c.row.Options...)
		locktest.Is(c, err, why)
		ctx, cancelTheirs := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancelTheirs()
		_, err = c.row.waiter(c.theirs, c.LockPath).Lock(ctx, c.row.Options...)
		locktest.Is(c, err, context.DeadlineExceeded)
		c.expectOthersGoOn()
	}},
	{name: "time-out while waiting", run: func(c *cell) {
		c.hold()
		begun := time.Now()
		f := c.row.waiter(c.ours, c.LockPath).Acquire(context.Background(), append(c.row.Options, actors.WithTimeout(50*time.Millisecond))...)
		locktest.Is(c, locktest.Failure(c, f), actors.ErrTimedOut)
		c.expectText(locktest.Failure(c, f), "50ms")
		if took := time.Since(begun); took < 50*time.Millisecond {
			c.Errorf("timed out after %v", took)
		}
		c.expectOthersGoOn()
	}},
	{name: "try", run: func(c *cell) {
		c.hold()
		for _, locks := range []*actors.Locks{c.ours, c.theirs} {
			_, err := c.row.waiter(locks, c.LockPath).Lock(context.Background(), append(c.row.Options, actors.Try())...)
			locktest.Is(c, err, actors.ErrNotAcquired)
			c.expectText(err)
		}
		c.expectOthersGoOn()
	}},
	{name: "session of the holder lost", run: func(c *cell) {
		c.hold()
		c.wait()
		c.expire()
		c.expectEnded(actors.ErrSessionLost)
		c.expectServed(c.ourRequest, c.theirRequest)
		if g := locktest.Result(c, c.ourRequest); g.Session() != c.ours.Session().ID {
			c.Errorf("granted in session %#x, which is not %#x", g.Session(), c.ours.Session().ID)
		}
		c.expectUsable()
	}},
	{name: "session of a waiter lost", run: func(c *cell) {
		held := c.holdElsewhere()
		c.wait()
		c.expire()
		c.waitIdle()
		locktest.Pending(c, c.ourRequest, c.theirRequest)
		locktest.Unlock(c, held)
		c.expectServed(c.ourRequest, c.theirRequest)
		if g := locktest.Result(c, c.ourRequest); g.Session() != c.ours.Session().ID {
			c.Errorf("granted in session %#x, which is not %#x", g.Session(), c.ours.Session().ID)
		}
		c.expectUsable()
	}},
	{name: "session lost while releasing", run: func(c *cell) {
		c.hold()
		c.theirRequest = c.request(c.theirs)
		c.network.Disconnect()
		var fs []*actors.Future[struct{}]
		for _, g := range c.grants {
			fs = append(fs, g.Release())
		}
		c.Expire(c, c.ours.Session().ID)
		c.network.Refuse(false)
		c.expectReleased(actors.ErrSessionLost, fs...)
		c.expectServed(c.theirRequest)
		c.expectUsable()
	}},
	{name: "node deleted", run: func(c *cell) {
		c.deleteHolderNodes(c.Remove)
	}},
	{name: "node deleted while away", run: func(c *cell) {
		c.NeedsResumption()
		c.deleteHolderNodes(func(nodes ...string) {
			c.network.Disconnect()
			c.Remove(nodes...)
			c.network.Refuse(false)
		})
	}},
	{name: "node deleted, none waits", virtual: true, run: func(c *cell) {
		c.hold()
		<-time.After(5 * time.Second) // until the holder watches its node
		c.Remove(c.ownNodes()...)
		c.expectEnded(actors.ErrNodeDeleted)
		c.expectUsable()
	}},
	{name: "node of a waiter deleted", run: func(c *cell) {
		held := c.holdElsewhere()
		before := c.nodes()
		c.ourRequest = c.request(c.ours)
		var new []string
		for _, node := range c.nodes() {
			if !slices.Contains(before, node) {
				new = append(new, node)
			}
		}
		c.Remove(new[0])
		zktest.Eventually(c, zktest.TimeLimit, func() bool {
			return slices.ContainsFunc(c.nodes(), func(node string) bool { return !slices.Contains(append(before, new...), node) })
		}, "the request queues again")
		c.theirRequest = c.request(c.theirs)
		locktest.Unlock(c, held)
		c.expectServed(c.ourRequest, c.theirRequest)
		if g := locktest.Result(c, c.ourRequest); slices.Contains(g.Nodes(), new[0]) {
			c.Errorf("granted by the deleted node %s", new[0])
		}
		c.expectUsable()
	}},
	{name: "closed", run: func(c *cell) {
		c.closeOurs()
	}},
	{name: "closed on a bridge that goes on", run: func(c *cell) {
		locktest.Must(c, c.ours.Close())
		c.ours, _ = c.OnBridge()
		c.closeOurs()
	}},
	{name: "closed while acquiring and releasing", virtual: true, run: func(c *cell) {
		fs, f := c.startReleases()
		locktest.Must(c, c.ours.Close())
		c.expectReleased(actors.ErrClosed, fs...)
		if _, err := f.Result(); !locktest.IsClosed(f.Done()) || err != nil {
			locktest.Is(c, err, actors.ErrClosed)
		}
		c.expectServed(c.theirRequest)
	}},
	{name: "actor panics", actors: 1, run: func(c *cell) {
		for part, message := range c.row.panicMessages {
			c.hold()
			c.wait()
			unrelated := locktest.Lock(c, c.row.At(c.ours, c.LockPath+"-unrelated"), c.row.Options...)
			failures := len(c.log.With("actor failed"))
			c.panicActor(part, message)
			c.expectEnded(actors.ErrInternal)
			locktest.Is(c, locktest.Failure(c, c.ourRequest), actors.ErrInternal)
			c.expectServed(c.theirRequest)
			if n := len(c.log.With("actor failed")) - failures; n != 1 {
				c.Errorf("the log has %d lines about it", n)
			}
			if unrelated.Err() != nil {
				c.Errorf("another lock: %v", unrelated.Err())
			}
			locktest.Unlock(c, unrelated)
			c.expectUsable()
			c.panicActor(part, message) // while none holds or waits
			c.expectUsable()
		}
	}},
	{name: "actor panics while acquiring and releasing", actors: 1, virtual: true, run: func(c *cell) {
		for part, message := range c.row.panicMessages {
			fs, f := c.startReleases()
			c.panicActor(part, message)
			c.expectReleased(actors.ErrInternal, fs...)
			g, err := f.Wait(locktest.Within(c))
			if err == nil {
				err = g.Unlock(locktest.Within(c))
			}
			if err != nil {
				locktest.Is(c, err, actors.ErrInternal)
			}
			c.expectServed(c.theirRequest)
			c.expectUsable()
		}
	}},
	{name: "owner's actor stops", actors: 2, realTime: true, run: stopActor},
	{name: "suspended", configure: func(cfg *actors.Config) { cfg.StopOnSuspended = true }, run: func(c *cell) {
		c.NeedsResumption()
		c.hold()
		c.wait()
		c.network.Disconnect()
		for i, ctx := range c.contexts {
			locktest.Closes(c, ctx.Done(), "the context")
			locktest.Is(c, context.Cause(ctx), actors.ErrSuspended)
			c.contexts[i] = c.grants[i].Context(context.Background())
		}
		c.expectHeld()
		c.network.Refuse(false)
		locktest.WaitState(c, c.ours, messages.SessionState_CONNECTED)
		c.expectHeld()
		for i, g := range c.grants {
			c.contexts[i] = g.Context(context.Background())
			locktest.Must(c, c.contexts[i].Err())
		}
		c.release()
		c.expectServed(c.ourRequest, c.theirRequest)
		c.expectUsable()
	}},
	{name: "no answer", virtual: true, run: func(c *cell) {
		c.hold()
		c.wait()
		c.Freeze(c)
		deadline := c.ours.Session().Deadline
		locktest.Is(c, locktest.Failure(c, c.row.waiter(c.ours, c.LockPath).Acquire(context.Background(), append(c.row.Options, actors.WithTimeout(time.Second))...)), actors.ErrTimedOut)
		<-time.After(time.Until(deadline) - 1)
		c.expectHeld()
		c.expectEnded(actors.ErrSessionLost)
		if late := time.Since(deadline); late > 0 {
			c.Errorf("the holder notices it %v after the deadline", late)
		}
		locktest.Pending(c, c.ourRequest, c.theirRequest)
		c.Thaw(c)
		c.expectServed(c.ourRequest, c.theirRequest)
		c.expectUsable()
	}},
	{name: "closed without an answer", virtual: true, run: func(c *cell) {
		c.hold()
		c.wait()
		c.Freeze(c)
		if err := c.ours.Close(); err == nil {
			c.Error("Close reports that the session has ended")
		}
		c.expectEnded(actors.ErrClosed)
		locktest.Is(c, locktest.Failure(c, c.ourRequest), actors.ErrClosed)
		c.Thaw(c)
		c.expectServed(c.theirRequest)
	}},
	{name: "overdue", virtual: true, run: overdue},
	{name: "idle", virtual: true, configure: locktest.IdleTimeout(time.Second), run: func(c *cell) {
		for range 2 {
			c.hold()
			<-time.After(time.Minute)
			c.expectHeld()
			c.release()
			<-time.After(time.Minute)
			c.clean()
		}
	}},
	{name: "grant dropped, then session lost", realTime: true, run: func(c *cell) {
		c.drop()
		locktest.CollectUntil(c, func() bool { return len(c.log.With("dropped without Release")) > 0 }, "the log has the dropped grant")
		c.wait()
		c.expire()
		c.expectServed(c.ourRequest, c.theirRequest)
		c.expectUsable()
	}},
	{name: "session lost, then grant dropped", realTime: true, run: func(c *cell) {
		c.hold()
		c.wait()
		c.expire()
		for _, done := range c.done {
			locktest.Closes(c, done, "the grant")
		}
		c.expectServed(c.ourRequest, c.theirRequest)
		c.grants, c.contexts = nil, nil
		locktest.CollectUntil(c, func() bool {
			g, err := c.row.At(c.ours, c.LockPath).Lock(locktest.Within(c), append(c.row.Options, actors.WithOwner(me))...)
			if err == nil {
				locktest.Unlock(c, g)
			} else {
				locktest.Is(c, err, actors.ErrSessionLost)
			}
			return err == nil
		}, "the owner can lock again")
		c.expectUsable()
	}},
	{name: "future dropped", realTime: true, run: func(c *cell) {
		c.hold()
		c.request(c.ours)
		c.theirRequest = c.request(c.theirs)
		c.release()
		locktest.CollectUntil(c, func() bool { return locktest.IsClosed(c.theirRequest.Done()) }, "the grant of the dropped future is released")
		c.expectServed(c.theirRequest)
		c.expectUsable()
	}},
}
