package simplelock

import (
	"slices"

	"github.com/actorlock/actorlock/actors/internal/invariants"
	"github.com/actorlock/actorlock/actors/internal/requests"
)

// What happens to a Simple.

// TrySimple takes an event into the Simple and gives what is to be done about it, in
// order. The slice is good until the next call.
func Step[E Event](s *Contender, e E) []Effect {
	s.out = s.out[:0]
	e.apply(s)
	invariants.Check(s)
	return s.out
}

// ---- who asks

func (e Acquire) apply(s *Contender) {
	switch {
	case s.closed != 0:
		s.effect(Effect{Kind: Refuse, ID: e.ID, Reason: s.closed})
		return
	case s.wish != nil:
		s.effect(Effect{Kind: Refuse, ID: e.ID, Reason: requests.Invalid})
		return
	}
	s.wish = &wish{id: e.ID, kind: e.Kind, try: e.Try, tell: e.NotifyContended, data: e.Data}
	if s.stage == simpleFree && s.live {
		s.take()
	}
}

func (e Cancel) apply(s *Contender) {
	if s.wish != nil && s.wish.id == e.ID {
		s.refuse(e.Reason)
		s.drop()
	}
}

func (e Release) apply(s *Contender) {
	if s.wish == nil || s.wish.id != e.ID || s.stage != simpleHolding {
		s.effect(Effect{Kind: Refuse, ID: e.ID, Reason: requests.NotHeld})
		return
	}
	s.wish = nil
	s.effect(Effect{Kind: ConfirmRelease, ID: e.ID})
	s.drop()
}

func (e Close) apply(s *Contender) {
	s.closed = e.Reason
	if s.stage == simpleHolding {
		s.lose(e.Reason)
	}
	s.refuse(e.Reason)
	s.drop()
}

// ---- what is heard of ZooKeeper

func (e Session) apply(s *Contender) {
	if e.Live && e.Epoch == s.epoch {
		return
	}
	// Whatever was there is gone, or will be.
	if s.stage == simpleHolding {
		s.lose(requests.SessionLost)
	}
	s.epoch, s.live = e.Epoch, e.Live
	s.yields = false
	s.free()
}

func (e Transacted) apply(s *Contender) {
	if e.Serial != s.asked {
		return
	}
	switch s.stage {
	case simpleTaking:
		switch {
		case e.Done:
			s.have(e)
		case e.Missing: // the directory has gone in between
			s.free()
		default:
			s.exists()
		}
	case simpleDoubting:
		switch {
		case e.Done:
			s.have(e)
		case s.gated: // the nodes were not made, or another client has deleted the mark
			s.tidy()
		default:
			s.free()
		}
	case simpleLeaving:
		s.left(e)
	}
}

func (s *Contender) left(e Transacted) {
	switch {
	case e.Done || !s.gated:
		s.free()
	case e.Op == 0: // the mark
		s.tidy()
	default:
		s.gated = false
		s.leave()
	}
}

func (e Listed) apply(s *Contender) {
	if e.Serial != s.asked {
		return
	}
	there := s.gated && slices.Contains(e.Children, s.gate)
	switch {
	case !slices.Contains(e.Children, s.mark) || s.gated != there:
		s.gated = there // somebody else has deleted it: begin anew
		s.leave()
	case s.conflict(e.Children):
		s.giveWay()
	case s.gated && s.rivals(e.Children):
		s.compare()
	default:
		s.hold()
	}
}

func (e Deleted) apply(s *Contender) {
	if e.Serial == s.asked {
		s.free()
	}
}

func (e Watched) apply(s *Contender) {
	switch {
	case e.Serial == s.asked && s.stage == simpleComparing:
		s.compared(e)
	case e.Serial == s.eye && s.eye != 0:
		s.checked(e)
	case e.Serial != s.asked || s.asked == 0:
	case s.stage == simpleTidying && s.isOurs(e):
		s.ask(simpleTidying, Effect{Kind: DeleteLockNode, LockNode: s.gate})
	case s.stage == simpleTidying:
		s.free()
	case len(e.Gone) > 0 || s.stirred:
		s.yields = false
		s.free()
	default:
		s.stage, s.asked = simpleWaiting, 0
	}
}

// trySimple: news may be of a node that is not there any more, so that what is held is
// looked at again.
func (e Wake) apply(s *Contender) {
	if e.Epoch != s.epoch {
		return
	}
	switch s.stage {
	case simpleWatching, simpleLooking, simpleComparing:
		s.stirred = true
	case simpleWaiting:
		if e.Node == s.gate {
			s.yields = false
			s.free()
		}
	case simpleStaying:
		s.look()
	case simpleHolding:
		if e.Node != "" && s.eye != 0 {
			s.check()
		}
	}
}

func (e Failed) apply(s *Contender) {
	switch {
	case e.Serial == s.eye && s.eye != 0 && e.Serial != s.asked:
		s.eye = 0 // again at the next Tick
	case e.Serial == s.asked && s.closed != 0 && e.Reason == requests.Closed:
		s.free() // the nodes go with the session
	case e.Serial == s.asked && s.closed != 0 && e.Reason == requests.SessionLost:
		s.asked = 0
	case e.Serial != s.asked || e.Reason == requests.SessionLost || e.Reason == requests.Closed: // which is told otherwise, too
	case e.Reason == requests.OutcomeUnknown && s.stage == simpleLeaving:
		s.leave()
	case e.Reason == requests.OutcomeUnknown:
		s.doubt()
	default:
		s.failed(e.Reason)
	}
}

// failed is for what was not done and is not to be had.
func (s *Contender) failed(why requests.Reason) {
	s.asked = 0
	switch s.stage {
	case simpleTaking, simpleWatching:
		if s.stage == simpleWatching || s.wanted() {
			s.refuse(why)
		}
		s.free()
	case simpleLooking, simpleComparing:
		s.refuse(why)
		s.leave()
	case simpleTidying:
		s.refuse(why)
	} // the rest is tried again at the next Tick, but not after Close
}

func (Tick) apply(s *Contender) {
	switch {
	case s.asked != 0 || !s.live:
	case s.stage == simpleHolding && s.eye == 0:
		s.check()
	case s.stage == simpleDoubting:
		s.doubt()
	case s.stage == simpleLeaving:
		s.leave()
	case s.stage == simpleTidying:
		s.tidy()
	}
}
