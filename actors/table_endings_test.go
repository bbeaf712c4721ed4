package actors_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
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
			name := e.name + "/" + row.name
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
	e.on(&testLock{T: t, Server: s, path: s.Path(t)}, row)
}

func (e ending) inVirtualTime(t *testing.T, row tableRow) {
	bubble(t, func(v *virtual) { e.on(v.testLock, row) })
}

func (e ending) on(b *testLock, row tableRow) {
	var configure []func(*actors.Config)
	if e.configure != nil {
		configure = append(configure, e.configure)
	}
	var all []*testActor
	if e.actors > 0 {
		var system func(*actors.Config)
		system, all = testActors(b.T, e.actors)
		configure = append(configure, system)
	}
	c := &cell{testLock: b, row: row, testActors: all}
	p := b.process(append(configure, c.log.config)...)
	c.network, c.ours, c.theirs = p.dialer, p.locks, b.locks()
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
			if !isClosed(f.Done()) {
				c.Error("the future goes on after Cancel")
			}
		})
	}},
	{name: "context ends while waiting", run: func(c *cell) {
		ctx, cancel := context.WithCancelCause(context.Background())
		why := errors.New("the context is over")
		c.hold()
		f := c.row.waiter(c.ours, c.path).Acquire(ctx, c.row.options...)
		c.waitIdle()
		cancel(why)
		is(c, failure(c, f), why)
		c.expectOthersGoOn()
	}},
	{name: "time-out while waiting", run: func(c *cell) {
		c.hold()
		begun := time.Now()
		f := c.row.waiter(c.ours, c.path).Acquire(context.Background(), append(c.row.options, actors.WithTimeout(50*time.Millisecond))...)
		is(c, failure(c, f), actors.ErrTimedOut)
		if took := time.Since(begun); took < 50*time.Millisecond {
			c.Errorf("timed out after %v", took)
		}
		c.expectOthersGoOn()
	}},
	{name: "try", run: func(c *cell) {
		c.hold()
		for _, locks := range []*actors.Locks{c.ours, c.theirs} {
			is(c, failure(c, c.row.waiter(locks, c.path).Acquire(context.Background(), append(c.row.options, actors.Try())...)), actors.ErrNotAcquired)
		}
		c.expectOthersGoOn()
	}},
	{name: "session of the holder lost", run: func(c *cell) {
		c.hold()
		c.wait()
		c.expire()
		c.expectEnded(actors.ErrSessionLost)
		c.expectServed(c.ourRequest, c.theirRequest)
		if g := result(c, c.ourRequest); g.Session() != c.ours.Session().ID {
			c.Errorf("granted in session %#x, which is not %#x", g.Session(), c.ours.Session().ID)
		}
		c.expectUsable()
	}},
	{name: "session of a waiter lost", run: func(c *cell) {
		held := c.holdElsewhere()
		c.wait()
		c.expire()
		c.waitIdle()
		pending(c, c.ourRequest, c.theirRequest)
		unlock(c, held)
		c.expectServed(c.ourRequest, c.theirRequest)
		if g := result(c, c.ourRequest); g.Session() != c.ours.Session().ID {
			c.Errorf("granted in session %#x, which is not %#x", g.Session(), c.ours.Session().ID)
		}
		c.expectUsable()
	}},
	{name: "session lost while releasing", run: func(c *cell) {
		c.hold()
		c.theirRequest = c.request(c.theirs)
		c.network.disconnect()
		var fs []*actors.Future[struct{}]
		for _, g := range c.grants {
			fs = append(fs, g.Release())
		}
		c.Expire(c, c.ours.Session().ID)
		c.network.refuse(false)
		c.expectReleased(actors.ErrSessionLost, fs...)
		c.expectServed(c.theirRequest)
		c.expectUsable()
	}},
	{name: "node deleted", run: func(c *cell) {
		c.deleteHolderNodes(c.remove)
	}},
	{name: "node deleted while away", run: func(c *cell) {
		c.deleteHolderNodes(func(nodes ...string) {
			c.network.disconnect()
			c.remove(nodes...)
			c.network.refuse(false)
		})
	}},
	{name: "node deleted, none waits", virtual: true, run: func(c *cell) {
		c.hold()
		<-time.After(5 * time.Second) // until the holder watches its node
		c.remove(c.ownNodes()...)
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
		c.remove(new[0])
		zktest.Eventually(c, timeLimit, func() bool {
			return slices.ContainsFunc(c.nodes(), func(node string) bool { return !slices.Contains(append(before, new...), node) })
		}, "the request queues again")
		c.theirRequest = c.request(c.theirs)
		unlock(c, held)
		c.expectServed(c.ourRequest, c.theirRequest)
		if g := result(c, c.ourRequest); slices.Contains(g.Nodes(), new[0]) {
			c.Errorf("granted by the deleted node %s", new[0])
		}
		c.expectUsable()
	}},
	{name: "closed", run: func(c *cell) {
		c.closeOurs()
	}},
	{name: "closed on a bridge that goes on", run: func(c *cell) {
		must(c, c.ours.Close())
		c.ours, _ = c.onBridge()
		c.closeOurs()
	}},
	{name: "closed while acquiring and releasing", virtual: true, run: func(c *cell) {
		fs, f := c.startReleases()
		must(c, c.ours.Close())
		c.expectReleased(actors.ErrClosed, fs...)
		if _, err := f.Result(); !isClosed(f.Done()) || err != nil {
			is(c, err, actors.ErrClosed)
		}
		c.expectServed(c.theirRequest)
	}},
	{name: "actor panics", run: func(c *cell) {
		for part, message := range c.row.panicMessages {
			c.hold()
			c.wait()
			unrelated := lock(c, c.row.at(c.ours, c.path+"-unrelated"), c.row.options...)
			failures := len(c.log.with("actor failed"))
			c.panicActor(part, message)
			c.expectEnded(actors.ErrInternal)
			is(c, failure(c, c.ourRequest), actors.ErrInternal)
			c.expectServed(c.theirRequest)
			if n := len(c.log.with("actor failed")) - failures; n != 1 {
				c.Errorf("the log has %d lines about it", n)
			}
			if unrelated.Err() != nil {
				c.Errorf("another lock: %v", unrelated.Err())
			}
			unlock(c, unrelated)
			c.expectUsable()
			c.panicActor(part, message) // while none holds or waits
			c.expectUsable()
		}
	}},
	{name: "actor panics while acquiring and releasing", virtual: true, run: func(c *cell) {
		for part, message := range c.row.panicMessages {
			fs, f := c.startReleases()
			c.panicActor(part, message)
			c.expectReleased(actors.ErrInternal, fs...)
			g, err := f.Wait(within(c))
			if err == nil {
				err = g.Unlock(within(c))
			}
			if err != nil {
				is(c, err, actors.ErrInternal)
			}
			c.expectServed(c.theirRequest)
			c.expectUsable()
		}
	}},
	{name: "owner's actor stops", actors: 2, realTime: true, run: stopActor},
	{name: "suspended", configure: func(cfg *actors.Config) { cfg.StopOnSuspended = true }, run: func(c *cell) {
		c.hold()
		c.wait()
		c.network.disconnect()
		for i, ctx := range c.contexts {
			closes(c, ctx.Done(), "the context")
			is(c, context.Cause(ctx), actors.ErrSuspended)
			c.contexts[i] = c.grants[i].Context(context.Background())
		}
		c.expectHeld()
		c.network.refuse(false)
		waitState(c, c.ours, messages.SessionState_CONNECTED)
		c.expectHeld()
		for i, g := range c.grants {
			c.contexts[i] = g.Context(context.Background())
			must(c, c.contexts[i].Err())
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
		is(c, failure(c, c.row.waiter(c.ours, c.path).Acquire(context.Background(), append(c.row.options, actors.WithTimeout(time.Second))...)), actors.ErrTimedOut)
		<-time.After(time.Until(deadline) - 1)
		c.expectHeld()
		c.expectEnded(actors.ErrSessionLost)
		if late := time.Since(deadline); late > 0 {
			c.Errorf("the holder notices it %v after the deadline", late)
		}
		pending(c, c.ourRequest, c.theirRequest)
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
		is(c, failure(c, c.ourRequest), actors.ErrClosed)
		c.Thaw(c)
		c.expectServed(c.theirRequest)
	}},
	{name: "overdue", virtual: true, run: overdue},
	{name: "idle", virtual: true, configure: idle(time.Second), run: func(c *cell) {
		for range 2 {
			c.hold()
			<-time.After(time.Minute)
			c.expectHeld()
			c.release()
			<-time.After(time.Minute)
			if paths := actors.Paths(c.ours); len(paths) != 0 {
				c.Errorf("there are actors of %v", paths)
			}
			c.clean()
		}
	}},
	{name: "grant dropped, then session lost", realTime: true, run: func(c *cell) {
		c.drop()
		collectUntil(c, func() bool { return len(c.log.with("dropped without Release")) > 0 }, "the log has the dropped grant")
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
			closes(c, done, "the grant")
		}
		c.expectServed(c.ourRequest, c.theirRequest)
		c.grants, c.contexts = nil, nil
		collectUntil(c, func() bool {
			g, err := c.row.at(c.ours, c.path).Lock(within(c), append(c.row.options, actors.WithOwner(me))...)
			if err == nil {
				unlock(c, g)
			} else {
				is(c, err, actors.ErrSessionLost)
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
		collectUntil(c, func() bool { return isClosed(c.theirRequest.Done()) }, "the grant of the dropped future is released")
		c.expectServed(c.theirRequest)
		c.expectUsable()
	}},
}
