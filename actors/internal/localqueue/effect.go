package localqueue

import (
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// EffectKind is what an Effect asks for.
type EffectKind uint8

// The effects. The actor of the local queue performs the first three on the lock below and the
// others for the owners.
const (
	// AcquireNode: acquire the lock below for NodeKind, as a Try or not, as the owner of the
	// other node that is held; answer NodeGranted or NodeRefused, later NodeLost and
	// NodeContended.
	AcquireNode EffectKind = iota
	// ReleaseNode: release the node of the AcquireNode with this Serial, also if it is lost, or
	// withdraw the request. No answer is awaited.
	ReleaseNode
	// StartIdleTimer: answer IdleTimedOut when the node hold may have been unused for long.
	StartIdleTimer
	// Grant: request ID holds the lock by the node Serial, with the token Generation, Czxid and
	// Step.
	Grant
	// Refuse: request ID ends without the lock, or its release fails, because of Reason.
	Refuse
	// Lose: request ID holds the lock no longer, because of Reason.
	Lose
	// ConfirmRelease: the release of request ID is done. StillHeld other requests of its owner
	// hold the same kind yet.
	ConfirmRelease
	// NotifyContended: other processes wait for what request ID holds.
	NotifyContended
)

// Effect is one thing to do because of an event. Its Kind says which fields count.
type Effect struct {
	Kind       EffectKind
	ID         requests.ID
	Reason     requests.Reason
	Serial     uint64
	NodeKind   queue.Kind
	Try        bool
	Data       []byte
	Generation uint64
	Czxid      int64
	Step       uint32
	StillHeld  int
}

var effectNames = [...]string{"AcquireNode", "ReleaseNode", "StartIdleTimer", "Grant", "Refuse", "Lose", "ConfirmRelease", "NotifyContended"}

// String returns the name of the constant.
func (k EffectKind) String() string { return effectNames[k] }
