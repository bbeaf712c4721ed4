package actors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/actorlock/actorlock/gen/ask"
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

// Leak detection: the garbage collector finds futures and grants that the user has dropped.

// IsElsewhere implements lock.Acquisition.
func (a *acquisition) IsElsewhere() bool { return false }

// ArmLeakDetection implements lock.Acquisition. Before it is called, the acquisition keeps its
// Future and its Grant alive, as an exception. Leak detection is expensive, and most
// acquisitions are over before.
func (a *acquisition) ArmLeakDetection(since time.Time) {
	if !a.unarmed {
		return
	}
	if a.unarmedFuture != nil {
		ask.ArmLeakDetection(a.unarmedFuture)
	}
	if a.unarmedGrant != nil {
		a.armGrant(a.unarmedGrant, since)
	}
	a.unarmed, a.unarmedFuture, a.unarmedGrant = false, nil, nil
}

// detectDrop reports when the user drops a new grant, from ArmLeakDetection on.
func (a *acquisition) detectDrop(g *Grant) {
	if a.unarmed {
		a.unarmedGrant = g
	} else {
		a.armGrant(g, time.Now())
	}
}

// armGrant calls dropped when the user drops a grant. since is when the lock was granted.
func (a *acquisition) armGrant(g *Grant, since time.Time) {
	a.mu.Lock()
	a.notificationsLocked().heldSince = since
	a.mu.Unlock()
	runtime.AddCleanup(g, func(a *acquisition) { a.handle.manager.AtNextTick(a.dropped) }, a)
}

// droppedLog returns the logger for a grant or a future that the user has dropped.
func (a *acquisition) droppedLog() *slog.Logger {
	log := a.handle.manager.Log.With("path", a.handle.path, "owner", a.msg.Owner)
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := a.notifications; n != nil && !n.heldSince.IsZero() {
		log = log.With("since", n.heldSince)
	}
	if n := a.notifications; n != nil && n.acquired != nil {
		log = log.With("acquired", n.acquired.String())
	}
	return log
}

// dropped is called after the Grant was collected.
func (a *acquisition) dropped() {
	a.mu.Lock()
	held, released := a.ended == nil, a.release != nil || errors.Is(a.ended, ErrReleased)
	a.droppedHeld = held
	a.mu.Unlock()
	switch {
	case held:
		log := a.droppedLog()
		log.Error("grant was dropped without Release; the lock is held until the session ends", "do", "release each grant, or bound it by HoldAtMost; until the process ends, other clients can only break the lock")
	case !released: // of a lost grant: no user can release it any more, and it keeps its owner from the lock
		a.sendRelease()
	}
}
