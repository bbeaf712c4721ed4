package recipes

import (
	"slices"
	"time"

	"github.com/actorlock/actorlock/actors/internal/localqueue"
	"github.com/actorlock/actorlock/actors/internal/lock"
	"github.com/actorlock/actorlock/actors/internal/lockqueue"
	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/internal/stack"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
)

// localQueueActor is the actor of a lock whose node the owners of this process share. It turns
// messages into calls of its localqueue.Queue, and performs what that asks for on the owners. The
// Queue is the only owner of its directory.
type localQueueActor struct {
	lock.Actor
	stacked
	config      manager.LocalQueueConfig
	state       *localqueue.Queue
	holds       []*messages.Granted // the nodes of the node hold: one, or two after a downgrade
	budgetTimer *time.Timer         // of the node hold
	idleTimer   *time.Timer
	mayHandOff  bool // a grant of the call in hand hands the lock on

	shut   bool              // what is for the directory waits: owners may believe in a lost grant
	behind []requests.Effect // what waits: releases of the lost node hold, and one request
}

func newLocalQueue(e *manager.Entry) host.Actor {
	config := *e.Recipe.LocalQueue
	l := &localQueueActor{config: config}
	l.state = localqueue.New(e.Recipe.Rule, uint32(min(config.Grants, 1<<30)))
	l.stack = stack.Stack{Machine: l.state, Perform: l.perform, Below: l.below}
	l.Init(e, l)
	l.directories.Actor = &l.Actor
	l.queue = l.newDirectory(e.Path, e.Recipe, l.stack.Add)
	l.beginSession(l.SessionChanged)
	return l
}

// Messages of a local queue to itself.
type (
	// budgetOver: the node hold that began with the node of a request has lasted as long as it may.
	budgetOver struct{ first requests.ID }
	// idleOver: the node hold may have been unused for long.
	idleOver struct{}
)

// ---- messages of owners

// Cancel implements lock.Behavior.
func (l *localQueueActor) Cancel(r *lock.Request, reason messages.Reason) {
	l.mayHandOff = true
	l.stacked.Cancel(r, reason)
	l.mayHandOff = false
}

// Release implements lock.Behavior.
func (l *localQueueActor) Release(r *lock.Request) {
	l.mayHandOff = true
	l.stacked.Release(r)
	l.mayHandOff = false
}

// ReceiveOther implements lock.Behavior.
func (l *localQueueActor) ReceiveOther(from ask.Recipient, msg any) bool {
	defer l.stack.Run()
	switch msg := msg.(type) {
	case budgetOver:
		l.state.TimeBudgetUsed(msg.first)
	case idleOver:
		l.state.IdleTimedOut()
	case delayElapsed:
		feed(&l.queue, lockqueue.DelayElapsed{Serial: msg.serial})
	default:
		return messages.DispatchBridgeClient(l, from, msg, from)
	}
	return true
}

// ---- what the state asks for

// perform performs the effects of an event of the state. The loss of one of two nodes ends the
// grants by the other one, too: that is given up once no owner believes in them.
func (l *localQueueActor) perform() {
	var losing []*lock.Request
	effects := l.state.Effects()
	for i := range effects {
		f := &effects[i]
		switch f.Kind {
		case requests.Grant:
			l.grant(f)
		case requests.NoteNode:
			l.noteNode(f)
		case requests.StartIdleTimer: // the last one has ended
			self := l.Self
			l.idleTimer = time.AfterFunc(l.config.Linger, func() { self.Tell(idleOver{}) })
		case requests.Acquire:
			f.Request.Data = l.Manager.NodeData(f.Request.Data, "")
			l.toDirectory(f)
		case requests.Cancel:
			if losing != nil && len(l.holds) > 1 && !l.shut {
				l.shut = l.AwaitLossConfirmed(losing, l.reopen)
			}
			l.holds = slices.DeleteFunc(l.holds, func(g *messages.Granted) bool { return g.RequestId == uint64(f.ID) })
			l.toDirectory(f)
		case requests.Lose:
			losing = append(losing, l.Request(f.ID))
			l.Answer(f)
		default:
			l.Answer(f)
		}
	}
}

// toDirectory passes an effect to the directory, now or at reopen.
func (l *localQueueActor) toDirectory(f *requests.Effect) {
	unsent := slices.IndexFunc(l.behind, func(b requests.Effect) bool { return b.Kind == requests.Acquire && b.ID == f.ID })
	switch {
	case unsent >= 0: // f cancels a request that the directory does not have yet
		l.behind = slices.Delete(l.behind, unsent, unsent+1)
	case l.shut:
		l.behind = append(l.behind, *f)
	default:
		l.stack.Add(*f)
	}
}

func (l *localQueueActor) reopen() {
	for _, f := range l.behind {
		l.stack.Add(f)
	}
	l.shut, l.behind = false, nil
	l.stack.Run()
}

func (l *localQueueActor) noteNode(f *requests.Effect) {
	if f.First {
		stopTimer(l.budgetTimer)
		self, over := l.Self, budgetOver{f.ID}
		l.budgetTimer = time.AfterFunc(l.config.Time, func() { self.Tell(over) })
	}
	by := l.granted(l.Path, f.Node, f.Token)
	by.RequestId = uint64(f.ID)
	l.holds = append(l.holds, by)
}

func (l *localQueueActor) grant(f *requests.Effect) {
	if l.mayHandOff {
		l.mayHandOff = false
		l.Tally.LocalHandOffs.Add(1)
	}
	by := l.holds[0]
	if by.RequestId != uint64(f.By) {
		by = l.holds[1]
	}
	r := l.Request(f.ID)
	if r.Acquisition() == nil { // it needs a message of its own
		by = l.granted(l.Path, by.Node, f.Token)
	}
	l.Grant(r, by, f.Token.Step)
}

// ---- the end

// Close implements lock.Behavior.
func (l *localQueueActor) Close(failed bool) {
	stopTimer(l.budgetTimer)
	stopTimer(l.idleTimer)
	l.stacked.Close(failed)
}

func stopTimer(t *time.Timer) {
	if t != nil {
		t.Stop()
	}
}
