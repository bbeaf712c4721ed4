package actors

import (
	"context"
	"time"

	"github.com/actorlock/actorlock/actors/internal/inspection"
)

// Revoke asks the holder with the given node to release. node is a path as Grant.Node returns
// it, on any session and of any library. Revoke writes what Curator's Revoker writes; holders of
// this library are notified by Grant.Revoked, which also restores the data of WithData, and
// Curator's by makeRevocable. A missing node is no error.
//
// With grace 0 it returns then. Otherwise it blocks until the node is gone, deletes a node that
// still exists after grace, and reports that as broken. The holder has lost the lock then, and
// learns that within about two seconds (ErrNodeDeleted). Another contender may hold the lock
// before: only tokens keep the holder without the lock from doing harm. When ctx ends, the node
// stays.
//
// The errors are those of Multi and of ctx, ErrSuspended if there is no connection to ZooKeeper
// for the write, and ErrInvalid. With a lock server it is messages.Reason_OUTCOME_UNKNOWN if ctx ends
// or the connection to the server is lost while it waits.
func (l *Locks) Revoke(ctx context.Context, node string, grace time.Duration) (broken bool, err error) {
	return inspection.Revoke.One(ctx, l.at(node), grace)
}

// RevokeHolders is Locks.Revoke for all present holders of the lock, by this handle's rule: one
// for a mutex, perhaps several readers, all leases of a semaphore. It returns how many nodes it
// has deleted. It asks all holders before it waits, and waits for them together.
func (h *handle) RevokeHolders(ctx context.Context, grace time.Duration) (broken int, err error) {
	return inspection.RevokeHolders.One(ctx, h.target(), grace)
}
