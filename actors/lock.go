package actors

import (
	"crypto/rand"
	"maps"
	"slices"
	"time"

	"github.com/actorlock/actorlock/actors/internal/lockqueue"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
)

// lock is the actor of one lock in this process. It turns messages into events for
// its lockqueue.State, and performs the effects by telling the bridge and the owners.
type lock struct {
	bridgeClient
	state         *lockqueue.State
	resets        map[uint64]string             // nodes that are to go with the directory, by serial
	atomicCreates map[requests.ID]*atomicCreate // of requests whose nodes are to be made together
	delay         *time.Timer                   // until elapsed; see LockDelay
	leaseCreates  []zkbridge.Part               // while all of an acquireAll are taken in; nil otherwise
	expected      map[string][]*queueingAttempt // by owner; see queueing
	draining      bool                          // it has stopped, and has nodes yet; see departures
}

// acquireLeases is the leases of one request: their nodes are created in one transaction, or in
// several in a row if they do not fit into one.
type acquireLeases []*messages.Acquire

func newLock(r *actorEntry) host.Actor {
	var in lockqueue.Incarnation
	rand.Read(in[:])
	l := &lock{state: lockqueue.New(r.recipe.rule, in)}
	l.bridgeClient = newBridgeClient(r, l)
	return l
}

// Receive implements host.Actor.
func (l *lock) Receive(from ask.Recipient, msg any) {
	if l.retired {
		l.Refuse(from, msg)
		return
	}
	l.checkSession(msg)
	switch msg := msg.(type) {
	case waitExpired:
		l.onWaitExpired(msg.id)
	case acquireMember:
		l.acquireMember(from, msg)
	case delayElapsed:
		step(l, lockqueue.DelayElapsed{Serial: msg.serial})
	case tick:
		l.tick()
	case lockqueue.Resize:
		step(l, msg)
	case acquireLeases:
		l.acquireLeases(from, msg)
	default:
		if !messages.DispatchLock(l, from, msg, from) && !messages.DispatchBridgeClient(l, from, msg, from) {
			l.receiveOther(msg)
		}
	}
}

// ---- said by owners, to the desk

func (l *lock) acquire(id requests.ID, kind queue.Kind, msg *messages.Acquire) {
	step(l, lockqueue.Acquire{ID: id, Owner: msg.Owner, Kind: kind, Try: msg.Try, NotifyContended: msg.NotifyContended, Data: msg.Data, Revocable: msg.Revocable})
	l.refuseExpected(msg.Owner, kind, nil)
}

func (l *lock) cancel(id requests.ID, why requests.Reason) {
	step(l, lockqueue.Cancel{ID: id, Reason: why})
}

// acquireLeases is several Acquires of one asker. Their nodes are made at once.
func (l *lock) acquireLeases(from ask.Recipient, all acquireLeases) {
	l.leaseCreates = []zkbridge.Part{}
	for _, msg := range all {
		l.Acquire(from, msg, ask.ReplyTo[*messages.Granted](from))
	}
	l.manager.zk.CreateEach(l.leaseCreates)
	l.leaseCreates = nil
}

// acquireMember is Acquire for the member of a multi-lock.
func (l *lock) acquireMember(from ask.Recipient, msg acquireMember) {
	if msg.checkOnly {
		if may, _ := l.checkReentry(msg); may {
			l.expectAttempt(msg.Owner, msg.atomicCreate.queueingAttempt)
			msg.atomicCreate.reportNone()
		}
		return
	}
	l.forgetAttempts(msg.atomicCreate.queueingAttempt)
	r := l.accept(from, msg.Acquire, ask.ReplyTo[*messages.Granted](from))
	if r == nil {
		return
	}
	may, needs := l.checkReentry(msg)
	e := lockqueue.Acquire{ID: r.id, Owner: msg.Owner, Kind: queue.Kind(msg.Kind), Try: msg.Try, Data: msg.Data, Revocable: msg.Revocable}
	switch {
	case !may:
		l.remove(r)
		return
	case needs:
		if l.atomicCreates == nil {
			l.atomicCreates = map[requests.ID]*atomicCreate{}
		}
		l.atomicCreates[r.id], e.AtomicCreate = msg.atomicCreate, msg.atomicCreate.number
	default:
		msg.atomicCreate.reportNone()
	}
	step(l, e)
	l.refuseExpected(e.Owner, e.Kind, msg.atomicCreate.queueingAttempt)
}

func (l *lock) release(id requests.ID) { step(l, lockqueue.Release{ID: id}) }

// tick is a moment's end.
func (l *lock) tick() {
	l.forgetAttempts(nil)
	idle := l.state.Idle() && l.requests.Len() == 0
	if idle && !l.used {
		l.state.ReleaseMemory()
	}
	if !l.onTick(idle) {
		step(l, lockqueue.Tick{})
	}
}

// ---- said by the bridge

// Created implements messages.BridgeClientHandler.
func (l *lock) Created(_ ask.Recipient, msg *messages.Created) {
	step(l, lockqueue.Created{Epoch: msg.Epoch, Serial: msg.Id, Node: msg.Node, Generation: msg.Generation, Czxid: msg.Czxid,
		Step: msg.Step, Children: msg.Children, Directory: msg.DirectoryCzxid, SameDirectory: msg.SameDirectory})
}

// Listed implements messages.BridgeClientHandler.
func (l *lock) Listed(_ ask.Recipient, msg *messages.Listed) {
	step(l, lockqueue.Listed{Epoch: msg.Epoch, Serial: msg.Id, Children: msg.Children, Czxids: msg.Czxids, Directory: msg.DirectoryCzxid})
}

// Watched implements messages.BridgeClientHandler.
func (l *lock) Watched(_ ask.Recipient, msg *messages.Watched) {
	step(l, lockqueue.Watched{Epoch: msg.Epoch, Serial: msg.Id, Gone: msg.Gone, Data: msg.Data})
}

// NodeReleased implements messages.BridgeClientHandler.
func (l *lock) NodeReleased(_ ask.Recipient, msg *messages.NodeReleased) {
	step(l, lockqueue.Deleted{Serial: msg.Id, Missing: msg.Missing})
}

// Failed implements messages.BridgeClientHandler.
func (l *lock) Failed(_ ask.Recipient, msg *messages.Failed) {
	if msg.Reason != messages.Reason_SESSION_LOST && l.releaseAfterReset(msg.Id) {
		return
	}
	delete(l.resets, msg.Id)
	l.detail = msg.Detail
	if l.draining {
		l.noteUndeleted(msg)
	}
	step(l, lockqueue.Failed{Epoch: msg.Epoch, Serial: msg.Id, Reason: requests.Reason(msg.Reason)})
}

// Wake implements messages.BridgeClientHandler.
func (l *lock) Wake(_ ask.Recipient, msg *messages.Wake) {
	step(l, lockqueue.Wake{Epoch: msg.Epoch, Node: msg.Node, Deleted: msg.Deleted})
}

// Transacted implements messages.BridgeClientHandler.
func (l *lock) Transacted(_ ask.Recipient, msg *messages.Transacted) {
	if _, resets := l.resets[msg.Id]; !resets {
		step(l, lockqueue.Transacted{Serial: msg.Id, Done: msg.Outcome == messages.Transacted_DONE, Op: msg.Op})
		return
	}
	if msg.Outcome != messages.Transacted_DONE {
		l.releaseAfterReset(msg.Id)
		return
	}
	delete(l.resets, msg.Id)
	step(l, lockqueue.Deleted{Serial: msg.Id})
}

func (l *lock) onSession(epoch uint64, state lockqueue.SessionState) {
	step(l, lockqueue.Session{Epoch: epoch, State: state})
}

func (l *lock) onClosed() { step(l, lockqueue.Close{Reason: requests.Closed}) }

// ---- performing

// step is for every event.
func step[E lockqueue.Event](l *lock, e E) {
	effects := lockqueue.Step(l.state, e)
	passed := slices.ContainsFunc(effects, grants)
	for _, f := range effects {
		l.perform(f, passed)
	}
	l.detail = ""
}

func grants(f lockqueue.Effect) bool { return f.Kind == lockqueue.Grant }

// perform is for each of an event's effects; passed tells that others of this process hold
// the lock because of it.
func (l *lock) perform(f lockqueue.Effect, passed bool) {
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
		l.releaseNode(f.Serial, f.Node, passed)
	case lockqueue.Grant:
		l.grant(l.requests.At(f.ID), l.granted(f.Node, f.Generation, f.Czxid, f.Step))
	case lockqueue.RestoreData:
		l.bridge.SendTransact(&messages.Transact{Epoch: l.epoch, Ops: []*messages.Op{
			{Kind: messages.Op_SET, Path: l.path + "/" + f.Node, Data: f.Data}}}, nil)
	case lockqueue.Refuse:
		delete(l.atomicCreates, f.ID) // it may not have come to a node
		l.refuse(l.requests.At(f.ID), messages.Reason(f.Reason))
	case lockqueue.Lose:
		l.lose(l.requests.At(f.ID), messages.Reason(f.Reason))
	case lockqueue.ConfirmRelease:
		l.released(l.requests.At(f.ID), f.StillHeld)
	case lockqueue.RequestRevoke:
		l.revoke(l.requests.At(f.ID))
	case lockqueue.NotifyContended:
		l.contended(l.requests.At(f.ID))
	case lockqueue.ReportUnknownChild:
		what := "child of a lock's directory is no contender and is ignored"
		switch {
		case l.recipe.rule.CountUnknown:
			what = "child of a semaphore's leases is no lease and takes a permit"
		case otherRecipe(f.Node) != "":
			l.manager.reportMisuse(l.path, l.recipe, f.Node)
			return
		}
		l.manager.log.Warn(what, "path", l.path, "name", f.Node)
	default:
		l.performDelay(f)
	}
}

func (l *lock) create(f lockqueue.Effect) {
	msg := &messages.Create{Id: f.Serial, Epoch: l.epoch, Directory: l.path, Prefix: f.Node, Beside: f.Beside, Data: f.Data, Look: f.ListAfter, After: f.After, DirectoryExists: f.DirectoryExists}
	part := zkbridge.Part{From: l.self, Create: msg}
	switch g := l.atomicCreates[f.ID]; {
	case g != nil:
		delete(l.atomicCreates, f.ID) // it may not have come to a node
		g.add(part)
		return
	case f.ID != 0: // the request that the node was for has gone, and what else waits for the node is of another group
		refuseCreates([]zkbridge.Part{part})
		return
	}
	if l.leaseCreates != nil {
		l.leaseCreates = append(l.leaseCreates, part)
		return
	}
	l.bridge.SendCreate(msg, l.self)
}

// resetDirectory deletes the node and the directory with it, if that is empty then.
func (l *lock) resetDirectory(serial uint64, node string) {
	if l.resets == nil {
		l.resets = map[uint64]string{}
	}
	l.resets[serial] = node
	l.transact(serial, "", &messages.Op{Kind: messages.Op_DELETE, Path: l.path + "/" + node},
		&messages.Op{Kind: messages.Op_DELETE, Path: l.path})
}

// releaseAfterReset is for what did not go with its directory, or may not have: it is deleted as
// any other. It tells if there was such a node.
func (l *lock) releaseAfterReset(serial uint64) bool {
	node, was := l.resets[serial]
	if was {
		delete(l.resets, serial)
		l.releaseNode(serial, node, false)
	}
	return was
}

// ---- the end

// Stopped implements host.Actor: the lock is closed, has retired, or has failed.
// Nobody who asked is left without an answer, and no node is left behind.
func (l *lock) Stopped(failure any) {
	defer l.manager.running.Done()
	l.markStopped(failure)
	if l.delay != nil {
		l.delay.Stop()
	}
	l.bridge.SendUnsubscribe(&messages.Unsubscribe{}, l.self)
	if failure == nil {
		step(l, lockqueue.Close{Reason: requests.Closed})
		if l.draining = l.manager.draining.sessionGoesOn && l.state.Ending(); l.draining {
			l.manager.startDraining(l.actorEntry)
		}
		return
	}
	l.failAll()
	for serial, node := range l.state.Nodes() {
		l.releaseNode(serial, node, false)
	}
}

// Refuse implements host.Actor: it answers what comes after the end.
func (l *lock) Refuse(from ask.Recipient, msg any) {
	if l.draining {
		l.refuseWhileDraining(from, msg)
		return
	}
	if created, ok := msg.(*messages.Created); ok {
		l.releaseNode(created.Id, created.Node, false)
		return
	}
	l.refuseAfterStop(from, msg)
}

// noteUndeleted notes the node of a contender that leaves, which may be there because of the
// failure.
func (l *lock) noteUndeleted(msg *messages.Failed) {
	node, made := l.state.Node(msg.Id)
	lost := msg.Reason == messages.Reason_SESSION_LOST
	if node != "" && (made && msg.Reason != messages.Reason_CLOSED || lost) {
		l.manager.noteUndeleted(l.path + "/" + node)
	}
}

// refuseWhileDraining leads on to the end of the nodes.
func (l *lock) refuseWhileDraining(from ask.Recipient, msg any) {
	if q, ok := msg.(nodesQuery); ok {
		q.reply <- l.nodePaths(slices.Collect(maps.Values(l.state.Nodes())))
		return
	}
	if l.refuseAfterStop(from, msg) || !messages.DispatchBridgeClient(l, from, msg, from) {
		return
	}
	if !l.state.Ending() {
		l.draining = false
		l.manager.onDrained(l.actorEntry)
	}
}
