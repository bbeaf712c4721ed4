package recipes

import (
	"github.com/actorlock/actorlock/actors/internal/lockqueue"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/internal/shell"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
)

// The messages of a lock actor that lock.go does not have.

// ---- messages of owners

// incoming returns a request as a state machine takes it in.
func incoming(r *shell.Request, msg *messages.Acquire) requests.Incoming {
	return requests.Incoming{ID: r.ID, Owner: msg.Owner, Kind: r.Kind, Permits: int(max(msg.Permits, 1)), Try: msg.Try,
		NotifyContended: msg.NotifyContended, Revocable: msg.Revocable, Data: msg.Data}
}

// Cancel implements shell.Behavior.
func (l *lockActor) Cancel(r *shell.Request, reason messages.Reason) {
	if r.Granted != nil {
		l.left = localDeparture
	}
	feed(l, lockqueue.Cancel{ID: r.ID, Reason: requests.Reason(reason), Unclean: r.HoldExpired()})
}

// Release implements shell.Behavior.
func (l *lockActor) Release(r *shell.Request) {
	l.left = localDeparture
	feed(l, lockqueue.Release{ID: r.ID})
}

// acquireLeases is the message of a semaphore that acquires all leases of one request: their nodes
// are created in one transaction, or in several in a row if they do not fit into one.
type acquireLeases []*messages.Acquire

// Acquires implements shell.Envelope.
func (a acquireLeases) Acquires() []*messages.Acquire { return a }

// acquireLeases takes all requests in before it has any of their nodes created.
func (l *lockActor) acquireLeases(from ask.Recipient, all acquireLeases) {
	l.leaseCreates = []zkbridge.CreateSpec{}
	for _, msg := range all {
		if r := l.Accept(from, msg); r != nil {
			l.Acquire(r, msg)
		}
	}
	l.Manager.Bridge.CreateEach(l.leaseCreates)
	l.leaseCreates = nil
}

// ---- messages of the bridge

// Listed implements messages.BridgeClientHandler.
func (l *lockActor) Listed(_ ask.Recipient, msg *messages.Listed) {
	feed(l, lockqueue.Listed{Serial: msg.Id, Children: msg.Children, Directory: msg.DirectoryCzxid})
}

// Watched implements messages.BridgeClientHandler.
func (l *lockActor) Watched(_ ask.Recipient, msg *messages.Watched) {
	for _, node := range msg.Gone {
		l.noteGone(node)
	}
	l.reportPersistent(msg.Persistent)
	feed(l, lockqueue.Watched{Serial: msg.Id, Gone: msg.Gone, Data: msg.Data})
}

// NodeReleased implements messages.BridgeClientHandler.
func (l *lockActor) NodeReleased(_ ask.Recipient, msg *messages.NodeReleased) {
	feed(l, lockqueue.Deleted{Serial: msg.Id, Missing: msg.Missing})
}

// Failed implements messages.BridgeClientHandler.
func (l *lockActor) Failed(_ ask.Recipient, msg *messages.Failed) {
	l.Detail = msg.Detail
	if l.cleaningUp {
		l.noteUndeleted(msg)
	}
	feed(l, lockqueue.Failed{Serial: msg.Id, Reason: requests.Reason(msg.Reason)})
}

// Transacted implements messages.BridgeClientHandler.
func (l *lockActor) Transacted(_ ask.Recipient, msg *messages.Transacted) {
	feed(l, lockqueue.Transacted{Serial: msg.Id, Done: msg.Outcome == messages.Transacted_DONE, Op: msg.Op})
}

// ---- ticks

// Tick implements shell.Behavior.
func (l *lockActor) Tick(quiet bool) {
	if quiet {
		l.state.ReleaseMemory()
	}
	feed(l, lockqueue.Tick{})
}

// Idle implements shell.Behavior.
func (l *lockActor) Idle() bool { return l.state.Idle() }

// Epoch implements shell.Behavior.
func (l *lockActor) Epoch() uint64 {
	if l.lost {
		return 0
	}
	return l.epoch
}
