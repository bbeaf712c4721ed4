package recipes

import (
	"context"
	"errors"
	"testing"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
)

func TestRelease(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		mu := b.Mutex()
		g := locktest.Lock(b, mu)
		done := g.Done()
		if g.Err() != nil || locktest.IsClosed(done) {
			b.Errorf("held: %v", g.Err())
		}
		f := g.Release()
		locktest.Is(b, g.Err(), actors.ErrReleased)
		if !locktest.IsClosed(done) || !locktest.IsClosed(g.Done()) {
			b.Error("Done is open after Release")
		}
		locktest.Result(b, f)
		if nodes := b.LockNodes(); len(nodes) != 0 {
			b.Errorf("Release is done before ZooKeeper has removed %v", nodes)
		}
		for range 2 {
			locktest.Is(b, locktest.Failure(b, g.Release()), actors.ErrNotHeld)
			locktest.Is(b, g.Unlock(locktest.Within(b)), actors.ErrNotHeld)
		}
		// A second release does not end the grant of a later holder.
		later := locktest.Lock(b, mu)
		locktest.Is(b, g.Unlock(locktest.Within(b)), actors.ErrNotHeld)
		if later.Err() != nil || len(b.LockNodes()) != 1 {
			b.Errorf("%v", later.Err())
		}
		locktest.Unlock(b, later)
		if !locktest.IsClosed(g.Done()) {
			b.Error("Done of an ended grant is open")
		}
	})
}

func TestUnlockContext(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		mu := b.Mutex()
		g := locktest.Lock(b, mu)
		why := errors.New("no time")
		ctx, cancel := context.WithCancelCause(b.Context())
		cancel(why)
		if err := g.Unlock(ctx); err != nil {
			locktest.Is(b, err, why)
		}
		locktest.Is(b, g.Err(), actors.ErrReleased)
		b.WaitNodes(0) // the release goes on
		locktest.Unlock(b, locktest.Lock(b, mu))
	})
}

func TestGrantContext(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		locks := b.Locks()
		mu := locks.Mutex(b.LockPath)
		g := locktest.Lock(b, mu)
		type key struct{}
		parent, cancel := context.WithCancelCause(context.WithValue(b.Context(), key{}, "value"))
		first, second := g.Context(parent), g.Context(b.Context())
		if first.Value(key{}) != "value" || first.Err() != nil || second.Err() != nil {
			b.Errorf("%v, %v, %v", first.Value(key{}), first.Err(), second.Err())
		}
		why := errors.New("the parent has ended")
		cancel(why)
		locktest.Closes(b, first.Done(), "the context")
		locktest.Is(b, context.Cause(first), why)
		if second.Err() != nil || g.Err() != nil {
			b.Errorf("the other context: %v; the grant: %v", second.Err(), g.Err())
		}
		ended := g.Context(parent)
		locktest.Is(b, context.Cause(ended), why)

		g.Release()
		if second.Err() == nil {
			b.Error("Release has not ended the context")
		}
		locktest.Is(b, context.Cause(second), actors.ErrReleased)
		locktest.Is(b, context.Cause(first), why)
		late := g.Context(b.Context())
		if late.Err() == nil {
			b.Error("the context of an ended grant goes on")
		}
		locktest.Is(b, context.Cause(late), actors.ErrReleased)
		b.WaitNodes(0)
	})
}
