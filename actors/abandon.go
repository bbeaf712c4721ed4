package actors

import (
	"context"
	"errors"
	"fmt"

	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
)

// watch abandons the request when ctx ends.
func (a *acquisition) watch(ctx context.Context) {
	if ctx.Done() == nil {
		return
	}
	a.unwatch = context.AfterFunc(ctx, func() {
		if p := a.promise.Load(); p != nil {
			p.Abandon(a.handle.contextError(ctx))
		}
	})
}

func (a *acquisition) cancel(e *manager.Entry) {
	messages.LockRef{To: e.Self}.SendCancel(&messages.Cancel{}, a)
}

// CancelError implements ask.Producer.
func (a *acquisition) CancelError() error { return (*cancelledAt)(a.handle) }

// cancelledAt is ErrCancelled at the path of the handle. It is the handle itself, so that a Cancel
// allocates nothing, such as one that is deferred and comes after Result.
type cancelledAt handle

func (h *cancelledAt) Error() string { return fmt.Sprintf("lock %s: %v", h.path, ErrCancelled) }
func (h *cancelledAt) Unwrap() error { return ErrCancelled }

// Abandoned implements ask.Producer: the user has given the request up, or the grant before taking
// it.
func (a *acquisition) Abandoned(g *Grant, why error) {
	if errors.Is(why, ask.ErrDropped) {
		a.handle.manager.AtNextTick(func() {
			log := a.droppedLog()
			log.Warn("future of a lock was dropped; the request is cancelled", "held", g != nil, "do", "take the result of each future, or cancel it")
			a.giveUp(g)
		})
		return
	}
	a.giveUp(g)
}

// giveUp releases the grant or, if it is nil, cancels the request.
func (a *acquisition) giveUp(g *Grant) {
	if g != nil {
		g.Release()
		return
	}
	a.promise.Store(nil)
	a.mu.Lock()
	a.abandoned = true
	e := a.entry
	a.mu.Unlock()
	if e != nil { // otherwise the request is not sent yet
		a.cancel(e)
	}
}
