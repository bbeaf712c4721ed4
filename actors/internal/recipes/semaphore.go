package recipes

import (
	"fmt"
	"slices"

	"github.com/actorlock/actorlock/actors/internal/lock"
	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/internal/semaphore"
	"github.com/actorlock/actorlock/actors/internal/stack"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
)

// semaphoreActor is the actor of one semaphore in this process. It feeds the messages of owners
// and the answers of its two directories to its semaphore.State, and performs what that asks for.
type semaphoreActor struct {
	lock.Actor
	stacked
	state    *semaphore.State
	count    *permitCount // nil if the number of permits is fixed
	unlisted bool         // the directory is to be listed at the next tick: the read does not delay the first requests
	listing  bool         // such a list is awaited
}

func newSemaphore(e *manager.Entry) host.Actor {
	s := &semaphoreActor{state: semaphore.New(e.Recipe.Permits, true)}
	if e.Recipe.CountPath != "" {
		s.state = semaphore.New(unknownPermits, false)
	}
	s.stack = stack.Stack{Machine: s.state, Perform: s.perform, Below: s.below}
	s.Init(e, s)
	s.directories.Actor = &s.Actor
	add := s.stack.Add
	s.queue = s.newDirectory(e.Directories[0], e.Recipe.Directories[0].Recipe, add)
	leases := s.newDirectory(e.Directories[1], e.Recipe.Directories[1].Recipe, add)
	s.leases = &leases
	if e.Recipe.CountPath != "" {
		s.count = newPermitCount(s)
	}
	s.beginSession(s.SessionChanged)
	return s
}

const unknownPermits = -1

// ---- messages of owners

// Acquire implements lock.Behavior.
func (s *semaphoreActor) Acquire(r *lock.Request, msg *messages.Acquire) {
	switch c := s.count; {
	case c == nil:
	case c.reason == 0:
		c.noteRequest(r.ID)
	case !c.retry():
		s.Detail = c.problem
		s.RefuseRequest(r.ID, requests.Reason(c.reason))
		return
	}
	if s.create != nil && s.state.Has(msg.Owner) { // there is no re-entry into a multi-lock with semaphores
		s.RefuseRequest(r.ID, requests.WouldDeadlock)
		return
	}
	e := incoming(r, msg)
	e.Atomic = s.create != nil
	s.state.Acquire(e)
	s.stack.Run()
}

// NodesOf returns the nodes of a request, for manager.OpenRequest.
func (s *semaphoreActor) NodesOf(id requests.ID) []string {
	queue, leases := s.state.IDsBelow(id)
	nodes := []string{s.queue.state.NodeOf(queue)}
	for _, lease := range leases {
		nodes = append(nodes, s.leases.state.NodeOf(lease))
	}
	return nodes
}

// ReceiveOther implements lock.Behavior.
func (s *semaphoreActor) ReceiveOther(from ask.Recipient, msg any) bool {
	defer s.stack.Run()
	switch msg := msg.(type) {
	case acquireMember:
		s.create = msg.create
		if msg.queueing {
			if r := s.Accept(from, msg.Acquire); r != nil {
				s.Acquire(r, msg.Acquire)
			}
		} else if r := s.Lookup(from, msg.Owner, msg.RequestId); r != nil {
			s.state.Proceed(r.ID)
			s.stack.Run()
		}
		s.create = nil
	case countAnswer:
		messages.DispatchBridgeClient(s.count, from, msg.answer, from)
	case listAnswer:
		s.listing = false
		if listed, is := msg.answer.(*messages.Listed); is {
			reportOthers(s.Manager, s.Path, s.Recipe, slices.DeleteFunc(listed.Children, isOfSemaphore))
		}
	default:
		return messages.DispatchBridgeClient(s, from, msg, from)
	}
	return true
}

// SessionChanged implements messages.BridgeClientHandler.
func (s *semaphoreActor) SessionChanged(from ask.Recipient, msg *messages.SessionChanged) {
	s.directories.SessionChanged(from, msg)
	if msg.State == messages.SessionState_CONNECTED {
		s.unlisted = true
		if s.count != nil {
			s.count.read()
		}
	}
}

// Tick implements lock.Behavior.
func (s *semaphoreActor) Tick(quiet bool) {
	if s.count != nil && s.count.readAgain {
		s.count.read()
	}
	if s.unlisted && !s.listing && !s.lost {
		s.bridge().SendList(&messages.List{Epoch: s.epoch, Directory: s.Path}, listRecipient{s.Self})
		s.unlisted, s.listing = false, true
	}
	s.stacked.Tick(quiet)
}

// listRecipient gets the answer to the question what the semaphore's own directory holds.
type listRecipient struct{ self *host.Ref }

type listAnswer struct{ answer any }

// Tell implements ask.Recipient.
func (l listRecipient) Tell(answer any) { l.self.Tell(listAnswer{answer}) }

// isOfSemaphore reports whether a child of a semaphore's directory is one of the directories of its
// locks.
func isOfSemaphore(name string) bool {
	return name == queue.RequestQueueSuffix[1:] || name == queue.LeasesSuffix[1:]
}

// ---- what the state asks for

// perform performs the effects of an event of the state. The other leases of a lost grant are given
// up once its owner does not believe in them.
func (s *semaphoreActor) perform() {
	var losing []*lock.Request
	var leases []*requests.Effect
	effects := s.state.Effects()
	for i := range effects {
		f := &effects[i]
		switch f.Kind {
		case requests.NoteNode:
			leases = append(leases, f)
		case requests.Grant:
			s.grant(f.ID, leases)
			leases = nil
		case requests.ReportTurn:
			r := s.Request(f.ID)
			r.Tell(queuePassed{r.Number()})
		case requests.Acquire:
			f.Request.Data = s.Manager.NodeData(f.Request.Data, s.Request(f.By).OwnerName()) // the directory does not know the owner
			s.stack.Add(*f)
		case requests.Release:
			s.stack.Add(*f)
		case requests.Cancel:
			if due := *f; losing == nil || !s.AwaitLossConfirmed(losing, func() { s.stack.Add(due); s.stack.Run() }) {
				s.stack.Add(due)
			}
		case requests.Lose:
			losing = append(losing, s.Request(f.ID))
			s.Answer(f)
		default:
			if f.Reason == requests.WouldDeadlock {
				s.Detail = fmt.Sprintf("owner %q has to release permits before it can have as many of a %v", s.Request(f.ID).OwnerName(), s.Recipe)
			}
			s.Answer(f)
		}
	}
	s.state.Performed()
}

// grant grants the leases of a request. It names nodes below the semaphore's path. The grant has the
// token of the lease that was created last.
func (s *semaphoreActor) grant(id requests.ID, leases []*requests.Effect) {
	one := func(l *requests.Effect) *messages.Granted {
		return s.grantedAlone(s.Path, queue.LeasesSuffix[1:]+"/"+l.Node, l.Token)
	}
	all := one(slices.MaxFunc(leases, func(a, b *requests.Effect) int { return a.Token.Compare(b.Token) }))
	if len(leases) > 1 {
		for _, l := range leases {
			all.Parts = append(all.Parts, one(l))
		}
	}
	s.Grant(s.Request(id), all, all.Step)
}

// ---- the end

// Close implements lock.Behavior.
func (s *semaphoreActor) Close(failed bool) {
	if s.count != nil {
		s.bridge().SendUnsubscribe(&messages.Unsubscribe{}, s.count)
	}
	s.stacked.Close(failed)
}
