package recipes

import (
	"time"

	"github.com/actorlock/actorlock/actors/internal/lockqueue"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/internal/shell"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
)

// lockActor is the actor of one lock in this process. It turns messages into events of its
// lockqueue.State, and performs the effects.
//
// It embeds the shell.Shell, which calls it back by the methods of shell.Behavior. The fields
// atomicCreates and leaseCreates are for members of multi-locks and semaphores only: see member.go and semaphore.go.
type lockActor struct {
	shell.Shell
	lockSession   // locksession.go, step 5 of the README's walk
	bridge        messages.BridgeRef
	state         *lockqueue.State
	cleaningUp    bool                          // the actor has stopped, and its nodes are not deleted yet
	atomicCreates map[requests.ID]*atomicCreate // by request: the atomic create that is to make its node
	leaseCreates  []zkbridge.CreateSpec         // collected while an acquireLeases message is handled; nil at other times
	delayTimer    *time.Timer                   // of the LockDelay under way
	left          departure                     // the latest departure since the last grant, for the count of hand-offs
}

// ---- from the owner to the bridge

// Acquire implements shell.Behavior.
func (l *lockActor) Acquire(r *shell.Request, msg *messages.Acquire) {
	if l.state.Idle() {
		l.left = noDeparture // the lock was idle: this request waits for no departure before it
	}
	feed(l, lockqueue.Acquire{Incoming: incoming(r, msg)})
}

// feed applies an event to the state and performs the effects.
func feed[E lockqueue.Event](l *lockActor, e E) {
	effects := lockqueue.Step(l.state, e)
	grants := false
	for i := range effects {
		grants = grants || effects[i].Kind == lockqueue.Grant
	}
	if grants {
		l.countHandOff(any(e))
	}
	for i := range effects {
		l.perform(&effects[i], grants)
	}
}

// perform performs one effect of an event. grants reports whether the event also grants the lock to a
// contender of this process. The bridge may then put the deletion of a node into a later batch, because other
// processes mostly wait for the new holder, too. (An exception: this process releases a writer
// and grants readers. A reader of another process behind them waits only for the writer's node to be deleted, and so is
// delayed with it.)
func (l *lockActor) perform(f *lockqueue.Effect, grants bool) {
	switch f.Kind {
	case lockqueue.CreateNode:
		l.create(f)
	case lockqueue.ListDirectory:
		l.bridge.SendList(&messages.List{Id: f.Serial, Epoch: l.epoch, Directory: l.Path, Watch: f.Watch}, l.Self)
	case lockqueue.WatchNodes:
		l.bridge.SendWatch(&messages.Watch{Id: f.Serial, Epoch: l.epoch, Directory: l.Path, Nodes: f.Nodes, WithData: f.WithData, Since: f.Since}, l.Self)
	case lockqueue.DeleteNode:
		l.releaseNode(f.Serial, f.Node, grants)
	case lockqueue.Grant:
		l.Grant(l.Request(f.ID), &messages.Granted{Path: l.Path, Node: f.Node, Generation: f.Generation, Czxid: f.Czxid, Step: f.Step,
			SessionId: l.session, Epoch: l.epoch})
	case lockqueue.Refuse:
		delete(l.atomicCreates, f.ID) // it is still there if the request had no CreateNode
		if f.Reason == requests.WouldDeadlock {
			l.Detail = l.deadlockDetail(l.Request(f.ID).OwnerName())
		}
		l.RefuseRequest(f.ID, f.Reason)
	case lockqueue.Lose:
		l.Lose(f.ID, f.Reason)
	case lockqueue.ConfirmRelease:
		l.ConfirmRelease(f.ID, f.StillHeld)
	default:
		l.performRare(f)
	}
}

func (l *lockActor) create(f *lockqueue.Effect) {
	msg := &messages.Create{Id: f.Serial, Epoch: l.epoch, Directory: l.Path, Prefix: f.Node, Beside: f.Beside,
		Data: l.Manager.NodeData(f.Data, f.Owner), ListAfter: f.ListAfter, After: f.After, DirectoryExists: f.DirectoryExists,
		DirectorySeen: f.DirectorySeen, ParentIsOwn: l.Recipe.OwnsParent}
	if f.ID != 0 || l.leaseCreates != nil { // f.ID is set for an atomic create only; leaseCreates while a semaphore acquires leases
		l.createWithOthers(f.ID, msg)
		return
	}
	l.bridge.SendCreate(msg, l.Self)
}

// ---- from the bridge to the owner

// ReceiveOther implements shell.Behavior.
func (l *lockActor) ReceiveOther(from ask.Recipient, msg any) bool {
	switch msg := msg.(type) {
	case acquireMember:
		l.acquireMember(from, msg)
	case acquireLeases:
		l.acquireLeases(from, msg)
	case lockqueue.Resize:
		feed(l, msg)
	case delayElapsed:
		feed(l, lockqueue.DelayElapsed{Serial: msg.serial})
	default:
		return messages.DispatchBridgeClient(l, from, msg, from)
	}
	return true
}

// Created implements messages.BridgeClientHandler.
func (l *lockActor) Created(_ ask.Recipient, msg *messages.Created) {
	feed(l, lockqueue.Created{Serial: msg.Id, Node: msg.Node, Generation: msg.Generation, Czxid: msg.Czxid, Step: msg.Step,
		Children: msg.Children, Directory: msg.DirectoryCzxid, SameDirectory: msg.SameDirectory, Recent: msg.Recent})
}

// Wake implements messages.BridgeClientHandler.
func (l *lockActor) Wake(_ ask.Recipient, msg *messages.Wake) {
	if msg.Deleted {
		l.noteGone(msg.Node)
	}
	feed(l, lockqueue.Wake{Epoch: msg.Epoch, Node: msg.Node, Deleted: msg.Deleted})
}
