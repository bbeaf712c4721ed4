package simplelock

import (
	"slices"

	"github.com/actorlock/actorlock/actors/internal/invariants"
	"github.com/actorlock/actorlock/actors/internal/requests"
)

// The events of a Contender.

// Step applies an event to the Contender and returns what is to be done because of it, in order.
// The slice is valid until the next Step.
func Step[E Event](s *Contender, e E) []Effect {
	s.out = s.out[:0]
	e.apply(s)
	invariants.Check(s)
	return s.out
}

// ---- events of the owner

func (e Acquire) apply(s *Contender) {
	switch {
	case s.closed != 0:
		s.effect(Effect{Kind: Refuse, ID: e.ID, Reason: s.closed})
		return
	case s.request != nil:
		s.effect(Effect{Kind: Refuse, ID: e.ID, Reason: requests.Invalid})
		return
	}
	s.request = &request{id: e.ID, kind: e.Kind, try: e.Try, tell: e.NotifyContended, data: e.Data}
	if s.stage == free && s.live {
		s.createNodes()
	}
}

func (e Cancel) apply(s *Contender) {
	if s.request != nil && s.request.id == e.ID {
		s.refuse(e.Reason)
		s.requestEnded()
	}
}

func (e Release) apply(s *Contender) {
	if s.request == nil || s.request.id != e.ID || s.stage != holding {
		s.effect(Effect{Kind: Refuse, ID: e.ID, Reason: requests.NotHeld})
		return
	}
	s.request = nil
	s.effect(Effect{Kind: ConfirmRelease, ID: e.ID})
	s.requestEnded()
}

func (e Close) apply(s *Contender) {
	s.closed = e.Reason
	if s.stage == holding {
		s.lose(e.Reason)
	}
	s.refuse(e.Reason)
	s.requestEnded()
}

// ---- events of the bridge

func (e Session) apply(s *Contender) {
	if e.Live && e.Epoch == s.epoch {
		return
	}
	// ZooKeeper deletes the nodes of the lost session.
	if s.stage == holding {
		s.lose(requests.SessionLost)
	}
	s.epoch, s.live = e.Epoch, e.Live
	s.yielded = false
	s.nodesGone()
}

func (e Transacted) apply(s *Contender) {
	if e.Serial != s.awaited {
		return
	}
	switch s.stage {
	case creating:
		switch {
		case e.Done:
			s.nodesMade(e)
		case e.Missing: // the directory was deleted in between
			s.nodesGone()
		default:
			s.lockNodeTaken()
		}
	case proving:
		switch {
		case e.Done:
			s.nodesMade(e)
		case s.hasLockNode: // the nodes were not made, or another client has deleted the owner node
			s.readLockNode()
		default:
			s.nodesGone()
		}
	case deleting:
		s.nodesDeleted(e)
	}
}

func (s *Contender) nodesDeleted(e Transacted) {
	switch {
	case e.Done || !s.hasLockNode:
		s.nodesGone()
	case e.Op == 0: // the owner node
		s.readLockNode()
	default:
		s.hasLockNode = false
		s.deleteNodes()
	}
}

func (e Listed) apply(s *Contender) {
	if e.Serial != s.awaited {
		return
	}
	there := s.hasLockNode && slices.Contains(e.Children, s.lockNode)
	switch {
	case !slices.Contains(e.Children, s.ownerNode) || s.hasLockNode != there:
		s.hasLockNode = there // another client has deleted it: begin anew
		s.deleteNodes()
	case s.blocked(e.Children):
		s.giveWay()
	case s.hasLockNode && s.otherWriter(e.Children):
		s.compareLockNode()
	default:
		s.hold()
	}
}

func (e Deleted) apply(s *Contender) {
	if e.Serial == s.awaited {
		s.nodesGone()
	}
}

func (e Watched) apply(s *Contender) {
	switch {
	case e.Serial == s.awaited && s.stage == comparing:
		s.lockNodeCompared(e)
	case e.Serial == s.watchSerial && s.watchSerial != 0:
		s.nodesWatched(e)
	case e.Serial != s.awaited || s.awaited == 0:
	case s.stage == cleaningUp && s.isOurs(e):
		s.ask(cleaningUp, Effect{Kind: DeleteLockNode, LockNode: s.lockNode})
	case s.stage == cleaningUp:
		s.nodesGone()
	case len(e.Gone) > 0 || s.changed:
		s.yielded = false
		s.nodesGone()
	default:
		s.stage, s.awaited = waiting, 0
	}
}

// apply: the news may concern a node that is gone since, so the holder's nodes are read again.
func (e Wake) apply(s *Contender) {
	if e.Epoch != s.epoch {
		return
	}
	switch s.stage {
	case watching, listing, comparing:
		s.changed = true
	case waiting:
		if e.Node == s.lockNode {
			s.yielded = false
			s.nodesGone()
		}
	case awaitingReaders:
		s.listOthers()
	case holding:
		if e.Node != "" && s.watchSerial != 0 {
			s.watchNodes()
		}
	}
}

func (e Failed) apply(s *Contender) {
	switch {
	case e.Serial == s.watchSerial && s.watchSerial != 0 && e.Serial != s.awaited:
		s.watchSerial = 0 // again at the next Tick
	case e.Serial == s.awaited && s.closed != 0 && e.Reason == requests.Closed:
		s.nodesGone() // the nodes go with the session
	case e.Serial == s.awaited && s.closed != 0 && e.Reason == requests.SessionLost:
		s.awaited = 0
	case e.Serial != s.awaited || e.Reason == requests.SessionLost || e.Reason == requests.Closed: // a Session event says what follows
	case e.Reason == requests.OutcomeUnknown && s.stage == deleting:
		s.deleteNodes()
	case e.Reason == requests.OutcomeUnknown:
		s.proveOwnerNode()
	default:
		s.failed(e.Reason)
	}
}

// failed goes on after an effect that was not done and cannot be.
func (s *Contender) failed(why requests.Reason) {
	s.awaited = 0
	switch s.stage {
	case creating, watching:
		if s.stage == watching || s.wanted() {
			s.refuse(why)
		}
		s.nodesGone()
	case listing, comparing:
		s.refuse(why)
		s.deleteNodes()
	case cleaningUp:
		s.refuse(why)
	} // the rest is tried again at the next Tick, but not after Close
}

func (Tick) apply(s *Contender) {
	switch {
	case s.awaited != 0 || !s.live:
	case s.stage == holding && s.watchSerial == 0:
		s.watchNodes()
	case s.stage == proving:
		s.proveOwnerNode()
	case s.stage == deleting:
		s.deleteNodes()
	case s.stage == cleaningUp:
		s.readLockNode()
	}
}
