package actors

import (
	"errors"
	"log/slog"
	"runtime"
	"time"

	"github.com/actorlock/actorlock/gen/ask"
)

// Leak detection: the garbage collector finds futures and grants that the user has dropped.

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

// detectDrop has it noticed that a new grant is dropped, from ArmLeakDetection on.
func (a *acquisition) detectDrop(g *Grant) {
	if a.unarmed {
		a.unarmedGrant = g
	} else {
		a.armGrant(g, time.Now())
	}
}

// armGrant has it noticed that the grant is dropped, which was granted at a time.
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
