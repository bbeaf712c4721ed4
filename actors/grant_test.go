package actors_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/embedded"
)

func TestRelease(t *testing.T) {
	each(t, func(b *testLock) {
		mu := b.mutex()
		g := lock(b, mu)
		done := g.Done()
		if g.Err() != nil || isClosed(done) {
			b.Errorf("held: %v", g.Err())
		}
		f := g.Release()
		is(b, g.Err(), actors.ErrReleased)
		if !isClosed(done) || !isClosed(g.Done()) {
			b.Error("Done is open after Release")
		}
		result(b, f)
		if nodes := b.nodes(); len(nodes) != 0 {
			b.Errorf("Release is done before ZooKeeper has removed %v", nodes)
		}
		for range 2 {
			is(b, failure(b, g.Release()), actors.ErrNotHeld)
			is(b, g.Unlock(within(b)), actors.ErrNotHeld)
		}
		// A second release does not end the grant of a later holder.
		later := lock(b, mu)
		is(b, g.Unlock(within(b)), actors.ErrNotHeld)
		if later.Err() != nil || len(b.nodes()) != 1 {
			b.Errorf("%v", later.Err())
		}
		unlock(b, later)
		if !isClosed(g.Done()) {
			b.Error("Done of an ended grant is open")
		}
	})
}

func TestUnlockContext(t *testing.T) {
	each(t, func(b *testLock) {
		mu := b.mutex()
		g := lock(b, mu)
		why := errors.New("no time")
		ctx, cancel := context.WithCancelCause(b.Context())
		cancel(why)
		if err := g.Unlock(ctx); err != nil {
			is(b, err, why)
		}
		is(b, g.Err(), actors.ErrReleased)
		b.waitNodes(0) // the release goes on
		unlock(b, lock(b, mu))
	})
}

func TestUnlockWaits(t *testing.T) {
	t.Parallel()
	onEmbedded(t, func(b *testLock) {
		g := lock(b, b.mutex())
		b.Embedded().Inject(embedded.Fault{Op: embedded.OpDelete, Action: embedded.DelayReply, Delay: 200 * time.Millisecond})
		begun := time.Now()
		unlock(b, g)
		if took := time.Since(begun); took < 200*time.Millisecond {
			b.Errorf("Unlock has returned after %v, before ZooKeeper's answer", took)
		}
	})
}

func TestGrantContext(t *testing.T) {
	each(t, func(b *testLock) {
		locks := b.locks()
		mu := locks.Mutex(b.path)
		g := lock(b, mu)
		type key struct{}
		parent, cancel := context.WithCancelCause(context.WithValue(b.Context(), key{}, "value"))
		first, second := g.Context(parent), g.Context(b.Context())
		if first.Value(key{}) != "value" || first.Err() != nil || second.Err() != nil {
			b.Errorf("%v, %v, %v", first.Value(key{}), first.Err(), second.Err())
		}
		why := errors.New("the parent has ended")
		cancel(why)
		closes(b, first.Done(), "the context")
		is(b, context.Cause(first), why)
		if second.Err() != nil || g.Err() != nil {
			b.Errorf("the other context: %v; the grant: %v", second.Err(), g.Err())
		}
		ended := g.Context(parent)
		is(b, context.Cause(ended), why)

		g.Release()
		if second.Err() == nil {
			b.Error("Release has not ended the context")
		}
		is(b, context.Cause(second), actors.ErrReleased)
		is(b, context.Cause(first), why)
		late := g.Context(b.Context())
		if late.Err() == nil {
			b.Error("the context of an ended grant goes on")
		}
		is(b, context.Cause(late), actors.ErrReleased)
		b.waitNodes(0)
	})
}
