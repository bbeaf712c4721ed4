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
	// virtual: the ending needs virtual time, or the embedded server's faults.
	virtual bool
	// realTime: the ending needs real time, as it collects garbage or has actors of other systems.
	realTime bool
	// actors is how many the ending needs that own what they acquire.
	actors int
}

// TestEndings ends each recipe in each way: while one owner holds, and requests of its own and of
// another process wait. All see the reason, the requests that go on have their turns, with later tokens,
// no node and no watch is left, and both processes can go on using the lock.
// Each cell runs on the embedded server, in virtual time where that is possible, and on a real one. By habit
// a sample of them does.
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
	sharesServer(t, s)
	e.on(&testLock{T: t, Server: s, path: s.Path(t), parallel: true}, row)
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
		c.served(c.here, c.there)
		c.usable()
	}},
	{name: "cancelled while waiting", run: func(c *cell) {
		c.givesUp(actors.ErrCancelled, func(f *actors.Future[*actors.Grant]) {
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
		c.settle()
		cancel(why)
		is(c, failure(c, f), why)
		c.othersGoOn()
	}},
	{name: "time-out while waiting", run: func(c *cell) {
		c.hold()
		begun := time.Now()
		f := c.row.waiter(c.ours, c.path).Acquire(context.Background(), append(c.row.options, actors.WithTimeout(50*time.Millisecond))...)
		is(c, failure(c, f), actors.ErrTimedOut)
		if took := time.Since(begun); took < 50*time.Millisecond {
			c.Errorf("timed out after %v", took)
		}
		c.othersGoOn()
	}},
	{name: "try", run: func(c *cell) {
		c.hold()
		for _, locks := range []*actors.Locks{c.ours, c.theirs} {
			is(c, failure(c, c.row.waiter(locks, c.path).Acquire(context.Background(), append(c.row.options, actors.Try())...)), actors.ErrNotAcquired)
		}
		c.othersGoOn()
	}},
	{name: "session of the holder lost", run: func(c *cell) {
		c.hold()
		c.wait()
		c.expire()
		c.over(actors.ErrSessionLost)
		c.served(c.here, c.there)
		if g := result(c, c.here); g.Session() != c.ours.Session().ID {
			c.Errorf("granted in session %#x, which is not %#x", g.Session(), c.ours.Session().ID)
		}
		c.usable()
	}},
	{name: "session of a waiter lost", run: func(c *cell) {
		held := c.holdElsewhere()
		c.wait()
		c.expire()
		c.settle()
		pending(c, c.here, c.there)
		unlock(c, held)
		c.served(c.here, c.there)
		if g := result(c, c.here); g.Session() != c.ours.Session().ID {
			c.Errorf("granted in session %#x, which is not %#x", g.Session(), c.ours.Session().ID)
		}
		c.usable()
	}},
	{name: "session lost while releasing", run: func(c *cell) {
		c.hold()
		c.there = c.request(c.theirs)
		c.network.disconnect()
		var fs []*actors.Future[struct{}]
		for _, g := range c.grants {
			fs = append(fs, g.Release())
		}
		c.Expire(c, c.ours.Session().ID)
		c.network.refuse(false)
		c.ended(actors.ErrSessionLost, fs...)
		c.served(c.there)
		c.usable()
	}},
	{name: "node deleted", run: func(c *cell) {
		c.holdersNodes(c.remove)
	}},
	{name: "node deleted while away", run: func(c *cell) {
		c.holdersNodes(func(nodes ...string) {
			c.network.disconnect()
			c.remove(nodes...)
			c.network.refuse(false)
		})
	}},
	{name: "node deleted, none waits", virtual: true, run: func(c *cell) {
		c.hold()
		<-time.After(5 * time.Second) // until the holder watches its node
		c.remove(c.own()...)
		c.over(actors.ErrNodeDeleted)
		c.usable()
	}},
	{name: "node of a waiter deleted", run: func(c *cell) {
		held := c.holdElsewhere()
		before := c.nodes()
		c.here = c.request(c.ours)
		var new []string
		for _, node := range c.nodes() {
			if !slices.Contains(before, node) {
				new = append(new, node)
			}
		}
		if c.row.unqueued {
			new = nil
		} else {
			c.remove(new[0])
			zktest.Eventually(c, timeLimit, func() bool {
				return slices.ContainsFunc(c.nodes(), func(node string) bool { return !slices.Contains(append(before, new...), node) })
			}, "the request queues anew")
		}
		c.there = c.request(c.theirs)
		unlock(c, held)
		c.served(c.here, c.there)
		if g := result(c, c.here); len(new) > 0 && slices.Contains(g.Nodes(), new[0]) {
			c.Errorf("granted by the deleted node %s", new[0])
		}
		c.usable()
	}},
	{name: "closed", run: func(c *cell) {
		c.closeOurs()
	}},
	{name: "closed on a bridge that lives on", run: func(c *cell) {
		must(c, c.ours.Close())
		c.ours, _ = c.onBridge()
		c.closeOurs()
	}},
	{name: "closed while acquiring and releasing", virtual: true, run: func(c *cell) {
		fs, f := c.busy()
		must(c, c.ours.Close())
		c.ended(actors.ErrClosed, fs...)
		if _, err := f.Result(); !isClosed(f.Done()) || err != nil {
			is(c, err, actors.ErrClosed)
		}
		c.served(c.there)
	}},
	{name: "actor panics", run: func(c *cell) {
		for part, message := range c.row.poison {
			c.hold()
			c.wait()
			unrelated := lock(c, c.row.at(c.ours, c.path+"-unrelated"), c.row.options...)
			failures := len(c.log.with("actor failed"))
			c.poison(part, message)
			c.over(actors.ErrInternal)
			is(c, failure(c, c.here), actors.ErrInternal)
			c.served(c.there)
			if n := len(c.log.with("actor failed")) - failures; n != 1 {
				c.Errorf("the log has %d lines about it", n)
			}
			if unrelated.Err() != nil {
				c.Errorf("another lock: %v", unrelated.Err())
			}
			unlock(c, unrelated)
			c.usable()
			c.poison(part, message) // while none holds or waits
			c.usable()
		}
	}},
	{name: "actor panics while acquiring and releasing", virtual: true, run: func(c *cell) {
		for part, message := range c.row.poison {
			fs, f := c.busy()
			c.poison(part, message)
			c.ended(actors.ErrInternal, fs...)
			g, err := f.Wait(within(c))
			if err == nil {
				err = g.Unlock(within(c))
			}
			if err != nil {
				is(c, err, actors.ErrInternal)
			}
			c.served(c.there)
			c.usable()
		}
	}},
	{name: "owner's actor stops", actors: 2, realTime: true, run: ownersActor},
	{name: "suspended", configure: func(cfg *actors.Config) { cfg.StopOnSuspended = true }, run: func(c *cell) {
		c.hold()
		c.wait()
		c.network.disconnect()
		for i, ctx := range c.contexts {
			closes(c, ctx.Done(), "the context")
			is(c, context.Cause(ctx), actors.ErrSuspended)
			c.contexts[i] = c.grants[i].Context(context.Background())
		}
		c.held()
		c.network.refuse(false)
		waitState(c, c.ours, messages.SessionState_CONNECTED)
		c.held()
		for i, g := range c.grants {
			c.contexts[i] = g.Context(context.Background())
			must(c, c.contexts[i].Err())
		}
		c.release()
		c.served(c.here, c.there)
		c.usable()
	}},
	{name: "no answer", virtual: true, run: func(c *cell) {
		c.hold()
		c.wait()
		c.Freeze(c)
		deadline := c.ours.Session().Deadline
		is(c, failure(c, c.row.waiter(c.ours, c.path).Acquire(context.Background(), append(c.row.options, actors.WithTimeout(time.Second))...)), actors.ErrTimedOut)
		<-time.After(time.Until(deadline) - 1)
		c.held()
		c.over(actors.ErrSessionLost)
		if late := time.Since(deadline); late > 0 {
			c.Errorf("the holder learns of it %v after the deadline", late)
		}
		pending(c, c.here, c.there)
		c.Thaw(c)
		c.served(c.here, c.there)
		c.usable()
	}},
	{name: "closed without an answer", virtual: true, run: func(c *cell) {
		c.hold()
		c.wait()
		c.Freeze(c)
		if err := c.ours.Close(); err == nil {
			c.Error("Close reports that the session has ended")
		}
		c.over(actors.ErrClosed)
		is(c, failure(c, c.here), actors.ErrClosed)
		c.Thaw(c)
		c.served(c.there)
	}},
	{name: "overdue", virtual: true, run: overdue},
	{name: "idle", virtual: true, configure: idle(time.Second), run: func(c *cell) {
		for range 2 {
			c.hold()
			<-time.After(time.Minute)
			c.held()
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
		c.served(c.here, c.there)
		c.usable()
	}},
	{name: "session lost, then grant dropped", realTime: true, run: func(c *cell) {
		c.hold()
		c.wait()
		c.expire()
		for _, done := range c.done {
			closes(c, done, "the grant")
		}
		c.served(c.here, c.there)
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
		c.usable()
	}},
	{name: "future dropped", realTime: true, run: func(c *cell) {
		c.hold()
		c.request(c.ours)
		c.there = c.request(c.theirs)
		c.release()
		collectUntil(c, func() bool { return isClosed(c.there.Done()) }, "what is in the dropped future is released")
		c.served(c.there)
		c.usable()
	}},
}
