package recipes

import (
	"crypto/rand"
	"maps"
	"slices"
	"time"

	"github.com/actorlock/actorlock/actors/internal/lockqueue"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/internal/shell"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
)

// lockActor is the actor of one lock in this process. It turns messages into events of its
// lockqueue.State, and performs the effects.
//
// Its bridgeClient embeds the shell.Shell, which calls the methods here that implement
// shell.Behavior. The bridgeClient calls those of a nodeMachine: onSession, close, ending and nodes.
// The fields atomicCreates, leaseCreates and expected are for members of multi-locks and semaphores
// only: see member.go and semaphore.go.
type lockActor struct {
	bridgeClient
	state         *lockqueue.State
	resets        map[uint64]string             // by serial: nodes that are being deleted together with the directory
	atomicCreates map[requests.ID]*atomicCreate // by request: the atomic create that its node is to be handed in to
	leaseCreates  []zkbridge.CreateSpec         // of the acquireLeases in hand; nil at other times
	expected      map[string][]*queueingAttempt // by owner: attempts of multi-locks that will ask for this lock
	delayTimer    *time.Timer                   // of the LockDelay under way
	left          departure                     // the latest departure since the last grant, for the count of hand-offs
}

// acquireLeases is the message of a semaphore that acquires all leases of one request: their nodes
// are created in one transaction, or in several in a row if they do not fit into one.
type acquireLeases []*messages.Acquire

// Acquires implements shell.Envelope.
func (a acquireLeases) Acquires() []*messages.Acquire { return a }

func newLock(e *shell.Entry) host.Actor {
	var in lockqueue.Incarnation
	rand.Read(in[:])
	l := &lockActor{state: lockqueue.New(e.Recipe.Rule, in)}
	l.init(e, l)
	return l
}

// ---- messages of owners

// Acquire implements shell.Behavior.
func (l *lockActor) Acquire(r *shell.Request, msg *messages.Acquire) {
	if l.state.Idle() {
		l.left = noDeparture
	}
	step(l, acquireEvent(r, msg))
	l.refuseExpected(msg.Owner, r.Kind, nil) // a multi-lock that waits to ask for this lock could not get it now
}

func acquireEvent(r *shell.Request, msg *messages.Acquire) lockqueue.Acquire {
	return lockqueue.Acquire{ID: r.ID, Owner: msg.Owner, Kind: r.Kind, Try: msg.Try, NotifyContended: msg.NotifyContended,
		Data: msg.Data, Revocable: msg.Revocable}
}

// Cancel implements shell.Behavior.
func (l *lockActor) Cancel(r *shell.Request, reason messages.Reason) {
	if r.Granted {
		l.left = localDeparture
	}
	step(l, lockqueue.Cancel{ID: r.ID, Reason: requests.Reason(reason), Unclean: r.HoldExpired()})
}

// Release implements shell.Behavior.
func (l *lockActor) Release(r *shell.Request) {
	l.left = localDeparture
	step(l, lockqueue.Release{ID: r.ID})
}

// ReceiveOther implements shell.Behavior.
func (l *lockActor) ReceiveOther(from ask.Recipient, msg any) bool {
	switch msg := msg.(type) {
	case acquireMember:
		l.acquireMember(from, msg)
	case acquireLeases:
		l.acquireLeases(from, msg)
	case lockqueue.Resize:
		step(l, msg)
	case delayElapsed:
		step(l, lockqueue.DelayElapsed{Serial: msg.serial})
	default:
		return messages.DispatchBridgeClient(l, from, msg, from)
	}
	return true
}

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

// Idle implements shell.Behavior.
func (l *lockActor) Idle() bool { return l.state.Idle() }

// Tick implements shell.Behavior.
func (l *lockActor) Tick(quiet bool) {
	l.forgetAttempts(nil)
	if quiet {
		l.state.ReleaseMemory()
	}
	step(l, lockqueue.Tick{})
}

// ---- messages of the bridge

// Created implements messages.BridgeClientHandler.
func (l *lockActor) Created(_ ask.Recipient, msg *messages.Created) {
	step(l, lockqueue.Created{Serial: msg.Id, Node: msg.Node, Generation: msg.Generation, Czxid: msg.Czxid,
		Step: msg.Step, Children: msg.Children, Directory: msg.DirectoryCzxid, SameDirectory: msg.SameDirectory})
}

// Listed implements messages.BridgeClientHandler.
func (l *lockActor) Listed(_ ask.Recipient, msg *messages.Listed) {
	step(l, lockqueue.Listed{Serial: msg.Id, Children: msg.Children, Czxids: msg.Czxids, Directory: msg.DirectoryCzxid})
}

// Watched implements messages.BridgeClientHandler.
func (l *lockActor) Watched(_ ask.Recipient, msg *messages.Watched) {
	for _, node := range msg.Gone {
		l.noteGone(node)
	}
	step(l, lockqueue.Watched{Serial: msg.Id, Gone: msg.Gone, Data: msg.Data})
}

// NodeReleased implements messages.BridgeClientHandler.
func (l *lockActor) NodeReleased(_ ask.Recipient, msg *messages.NodeReleased) {
	step(l, lockqueue.Deleted{Serial: msg.Id, Missing: msg.Missing})
}

// Failed implements messages.BridgeClientHandler.
func (l *lockActor) Failed(_ ask.Recipient, msg *messages.Failed) {
	if l.releaseAfterReset(msg.Id) {
		return
	}
	l.Detail = msg.Detail
	if l.draining {
		l.noteUndeleted(msg)
	}
	step(l, lockqueue.Failed{Serial: msg.Id, Reason: requests.Reason(msg.Reason)})
}

// Wake implements messages.BridgeClientHandler.
func (l *lockActor) Wake(_ ask.Recipient, msg *messages.Wake) {
	if msg.Deleted {
		l.noteGone(msg.Node)
	}
	step(l, lockqueue.Wake{Epoch: msg.Epoch, Node: msg.Node, Deleted: msg.Deleted})
}

// Transacted implements messages.BridgeClientHandler.
func (l *lockActor) Transacted(_ ask.Recipient, msg *messages.Transacted) {
	done := msg.Outcome == messages.Transacted_DONE
	if _, resets := l.resets[msg.Id]; !resets {
		step(l, lockqueue.Transacted{Serial: msg.Id, Done: done, Op: msg.Op})
		return
	}
	if !done {
		l.releaseAfterReset(msg.Id)
		return
	}
	delete(l.resets, msg.Id)
	step(l, lockqueue.Deleted{Serial: msg.Id})
}

func (l *lockActor) onSession(epoch uint64, state lockqueue.SessionState) {
	if state == lockqueue.Lost {
		l.resets = nil
	}
	step(l, lockqueue.Session{Epoch: epoch, State: state})
}

// ---- effects

// step feeds an event to the state and performs the effects.
func step[E lockqueue.Event](l *lockActor, e E) {
	effects := lockqueue.Step(l.state, e)
	handsOff := slices.ContainsFunc(effects, func(f lockqueue.Effect) bool { return f.Kind == lockqueue.Grant })
	if handsOff {
		l.countHandOff(any(e))
	}
	for _, f := range effects {
		l.perform(f, handsOff)
	}
}

// departure is who has left a lock: a contender of this process or one of another.
type departure uint8

const (
	noDeparture departure = iota
	localDeparture
	remoteDeparture
)

// noteGone notes that the node of a contender was deleted.
func (l *lockActor) noteGone(node string) {
	if node != "" && !l.state.IsOwn(node) {
		l.left = remoteDeparture
	}
}

// countHandOff counts the grant that an event has led to. A contender that is granted with its
// creation or its re-entry had nothing to wait for.
func (l *lockActor) countHandOff(event any) {
	switch event.(type) {
	case lockqueue.Created, lockqueue.Acquire:
	default:
		if l.left != noDeparture {
			l.CountHandOff(l.left == localDeparture)
		}
	}
	l.left = noDeparture
}

// perform performs one effect of an event. handsOff reports that the event also grants the lock
// to other contenders of this process: they do not wait for the deletion of the released node.
func (l *lockActor) perform(f lockqueue.Effect, handsOff bool) {
	switch f.Kind {
	case lockqueue.CreateNode:
		l.create(f)
	case lockqueue.ListDirectory:
		l.list(f.Serial, f.WithCzxids, f.Watch)
	case lockqueue.WatchNodes:
		l.watch(f.Serial, f.Nodes, f.WithData)
	case lockqueue.DeleteNode:
		if f.WithDirectory {
			l.resetDirectory(f.Serial, f.Node)
			return
		}
		l.releaseNode(f.Serial, f.Node, handsOff)
	case lockqueue.Grant:
		l.Grant(l.Request(f.ID), l.granted(f.Node, f.Generation, f.Czxid, f.Step))
	case lockqueue.Refuse:
		delete(l.atomicCreates, f.ID) // the request may not have come to its node
		l.RefuseRequest(f.ID, f.Reason)
	case lockqueue.Lose:
		l.Lose(f.ID, f.Reason)
	case lockqueue.ConfirmRelease:
		l.ConfirmRelease(f.ID, f.StillHeld)
	default:
		l.performRare(f)
	}
}

// performRare performs the effects that few locks have.
func (l *lockActor) performRare(f lockqueue.Effect) {
	switch f.Kind {
	case lockqueue.RestoreData:
		if data := l.Manager.NodeData(f.Data, f.Owner); len(data) > 0 {
			l.bridge.SendTransact(&messages.Transact{Epoch: l.epoch, Ops: []*messages.Op{
				{Kind: messages.Op_SET, Path: l.nodePath(f.Node), Data: data}}}, nil)
		}
	case lockqueue.RequestRevoke:
		l.RequestRevoke(f.ID)
	case lockqueue.NotifyContended:
		l.NotifyContended(f.ID)
	case lockqueue.ReportUnknownChild:
		l.reportUnknownChild(f.Node)
	default:
		l.performDelay(f)
	}
}

func (l *lockActor) create(f lockqueue.Effect) {
	msg := &messages.Create{Id: f.Serial, Epoch: l.epoch, Directory: l.Path, Prefix: f.Node, Beside: f.Beside,
		Data: l.Manager.NodeData(f.Data, f.Owner), ListAfter: f.ListAfter, After: f.After, DirectoryExists: f.DirectoryExists}
	spec := zkbridge.CreateSpec{From: l.Self, Create: msg}
	switch c := l.atomicCreates[f.ID]; {
	case c != nil:
		delete(l.atomicCreates, f.ID)
		c.add(spec)
	case f.ID != 0: // that request has ended; others may wait for the node, but it must not be made alone
		refuseCreates([]zkbridge.CreateSpec{spec})
	case l.leaseCreates != nil:
		l.leaseCreates = append(l.leaseCreates, spec)
	default:
		l.bridge.SendCreate(msg, l.Self)
	}
}

// resetDirectory deletes the node, and the directory with it if that is empty then.
func (l *lockActor) resetDirectory(serial uint64, node string) {
	if l.resets == nil {
		l.resets = map[uint64]string{}
	}
	l.resets[serial] = node
	l.transact(serial, "", &messages.Op{Kind: messages.Op_DELETE, Path: l.nodePath(node)},
		&messages.Op{Kind: messages.Op_DELETE, Path: l.Path})
}

// releaseAfterReset deletes a node alone that may not have been deleted with its directory, and
// reports whether it has found such a node.
func (l *lockActor) releaseAfterReset(serial uint64) bool {
	node, was := l.resets[serial]
	if was {
		delete(l.resets, serial)
		l.releaseNode(serial, node, false)
	}
	return was
}

// ---- the end

func (l *lockActor) close() { step(l, lockqueue.Close{Reason: requests.Closed}) }

func (l *lockActor) ending() bool { return l.state.Ending() }

func (l *lockActor) nodes() []string { return slices.Collect(maps.Values(l.state.Nodes())) }

// Close implements shell.Behavior.
func (l *lockActor) Close(failed bool) {
	if l.delayTimer != nil {
		l.delayTimer.Stop()
	}
	l.unsubscribe()
	if failed {
		for serial, node := range l.state.Nodes() {
			l.releaseNode(serial, node, false)
		}
		return
	}
	l.close()
	l.drain()
}

// ReceiveAfterStop implements shell.Behavior. A node whose creation is answered now is deleted.
func (l *lockActor) ReceiveAfterStop(from ask.Recipient, msg any) {
	if !l.draining {
		if created, ok := msg.(*messages.Created); ok {
			l.releaseNode(created.Id, created.Node, false)
		}
		return
	}
	l.receiveDraining(from, msg)
	if !l.ending() {
		l.draining = false
		l.Manager.Drained(l.Entry)
	}
}

// noteUndeleted notes the node of a contender that leaves, if the node may remain because of the
// failure.
func (l *lockActor) noteUndeleted(msg *messages.Failed) {
	node, made := l.state.Node(msg.Id)
	lost := msg.Reason == messages.Reason_SESSION_LOST
	if node != "" && (made && msg.Reason != messages.Reason_CLOSED || lost) {
		l.Manager.NoteUndeleted(l.nodePath(node))
	}
}
