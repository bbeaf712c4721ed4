package recipes

import (
	"github.com/actorlock/actorlock/actors/internal/lockqueue"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/internal/shell"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
)

// lockActor is the actor of a lock with one directory, whose queue its owners stand in. It passes
// the requests of its shell.Shell on to the directory, and the answers back.
type lockActor struct {
	shell.Shell
	directories
}

// ---- from the owner to the bridge

// Acquire implements shell.Behavior.
func (l *lockActor) Acquire(r *shell.Request, msg *messages.Acquire) {
	l.first.acquire(incoming(r, msg), nil)
}

// Cancel implements shell.Behavior.
func (l *lockActor) Cancel(r *shell.Request, reason messages.Reason) {
	l.first.cancel(r.ID, r.Granted != nil, r.HoldExpired(), requests.Reason(reason))
}

// Release implements shell.Behavior.
func (l *lockActor) Release(r *shell.Request) { l.first.release(r.ID) }

// ReceiveOther implements shell.Behavior.
func (l *lockActor) ReceiveOther(from ask.Recipient, msg any) bool {
	switch msg := msg.(type) {
	case acquireMember:
		l.acquireMember(from, msg)
	case delayElapsed:
		feed(&l.first, lockqueue.DelayElapsed{Serial: msg.serial})
	default:
		return messages.DispatchBridgeClient(l, from, msg, from)
	}
	return true
}

// ---- from the bridge to the owner: lockActor is above its directory

// GrantNode implements above.
func (l *lockActor) GrantNode(id requests.ID, node string, token requests.Token) {
	l.Grant(l.Request(id), l.granted(l.Path, node, token))
}
