package actors

import (
	"context"
	"time"

	"github.com/actorlock/actorlock/actors/internal/lock"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/messages"
)

// Lost implements messages.OwnerHandler.
func (a *acquisition) Lost(_ struct{}, lost *messages.Lost) {
	a.mu.Lock()
	release := a.release
	a.mu.Unlock()
	if !a.end(lost) && release != nil { // the user had released before
		release.Complete(struct{}{}, lost)
	}
}

// end ends the grant; why is the reason. It returns false if the grant was over.
func (a *acquisition) end(why error) bool {
	a.mu.Lock()
	first := a.ended == nil
	if first {
		a.ended = why
	}
	droppedHeld := first && a.droppedHeld
	a.announceEndLocked()
	a.mu.Unlock()
	if droppedHeld {
		a.sendRelease() // the lock waits for a Release after the loss, and the user has dropped the grant
	}
	return first
}

// announceEndLocked ends the contexts of a grant that is over, and then closes Done. It needs a.mu,
// and unlocks it for a time: to end a context may call the user's code in the parent context. A
// goroutine that finds the grant over meanwhile does the same and does not wait for the first one,
// which may be in that code.
func (a *acquisition) announceEndLocked() {
	if contexts, why := a.contextsLocked(), a.ended; len(contexts) > 0 {
		a.mu.Unlock()
		for _, cancel := range contexts {
			cancel(why)
		}
		a.mu.Lock()
		a.notifications.contexts = nil
	}
	if n := a.notifications; !a.announced && n != nil && n.done != nil {
		close(n.done)
	}
	a.announced = true
}

// checkEnded returns why the grant is over, or nil. It ends the grant if the session must be taken
// for lost, or if the time of HoldAtMost is over: a process that was paused, or whose machine was
// suspended, may not have noticed that yet.
func (a *acquisition) checkEnded() error {
	a.mu.Lock()
	ended, announced := a.ended, a.announced
	hold := time.Duration(a.msg.HoldNanos)
	holdExpired := hold > 0 && a.handle.manager.Session.Now()-a.notifications.holdFrom >= hold
	a.mu.Unlock()
	switch {
	case announced:
		return ended
	case ended != nil:
		a.end(ended) // together with the goroutine that has found it
	case a.handle.manager.Session.Lost(a.granted.Epoch):
		a.end(&messages.Lost{Reason: messages.Reason_SESSION_LOST, Detail: lock.JoinDetail(a.handle.path, lock.SessionOverdue)})
	case holdExpired:
		a.end(&messages.Lost{Reason: messages.Reason_HOLD_EXPIRED, Detail: a.handle.path})
	default:
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ended
}

// Suspended implements messages.OwnerHandler. It ends the contexts of the grant if the
// configuration says so. The grant itself is not over.
func (a *acquisition) Suspended(struct{}, *messages.Suspended) {
	if !a.handle.manager.StopOnSuspended {
		return
	}
	a.mu.Lock()
	contexts := a.contextsLocked() // which stay there: if the grant is over meanwhile, its end ends them, too
	a.mu.Unlock()
	for _, cancel := range contexts {
		cancel(ErrSuspended)
	}
}

// RevokeRequested implements messages.OwnerHandler.
func (a *acquisition) RevokeRequested(struct{}, *messages.RevokeRequested) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := a.notifications; n != nil && n.revoked != nil && !a.revokeRequested {
		close(n.revoked)
	}
	a.revokeRequested = true
}

// RequestID implements lock.Acquisition.
func (a *acquisition) RequestID() *requests.ID { return &a.id }

// Owner implements lock.Acquisition.
func (a *acquisition) Owner() string { return a.msg.Owner }

// Context implements lock.Acquisition.
func (a *acquisition) Context() context.Context {
	a.mu.Lock()
	defer a.mu.Unlock()
	ctx := a.notifications.ctx
	a.notifications.ctx = nil
	return ctx
}

// Released implements messages.OwnerHandler.
func (a *acquisition) Released(struct{}, *messages.Released) {
	a.mu.Lock()
	release := a.release
	a.mu.Unlock()
	if release != nil {
		release.Complete(struct{}{}, nil)
	}
}
