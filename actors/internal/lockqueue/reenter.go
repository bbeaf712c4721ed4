package lockqueue

import (
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// Further requests of an owner, and downgrades.

// reenter handles a request of an owner that has other requests. It reports whether that is all;
// otherwise e is to be created, beside another entry if e.downgrade.of is set.
func (s *State) reenter(e *entry, ev Acquire) bool {
	mayEnter := s.rule.EntersFrom(ev.Kind)
	for kind := range s.rule.BlockedBy {
		has := s.owners[owner{ev.Owner, queue.Kind(kind)}]
		switch {
		case has == nil:
		case ev.Atomic, has.atomic && mayEnter.Has(has.kind):
			s.refuse(ev.ID, requests.WouldDeadlock)
			return true
		case has.kind == ev.Kind && mayEnter.Has(ev.Kind):
			s.join(has, ev)
			return true
		case has.stage == held && mayEnter.Has(has.kind):
			e.downgrade.of, e.downgrade.made = has, true
		case s.rule.Permits == 1 && s.rule.BlockedBy[ev.Kind].Has(has.kind):
			s.refuse(ev.ID, requests.WouldDeadlock)
			return true
		}
	}
	return false
}

// join lets a further request of an owner share the owner's entry.
func (s *State) join(e *entry, ev Acquire) {
	e.revocable = e.revocable || ev.Revocable
	if ev.Try && e.stage != held {
		s.refuse(ev.ID, requests.NotAcquired)
		return
	}
	s.remember(ev.ID, e)
	e.requests = append(e.requests, request{id: ev.ID, notifyContended: ev.NotifyContended})
	if e.stage == held {
		s.grantRequest(e, ev.ID)
		s.notifyRevoked(e, e.requests[len(e.requests)-1:])
		s.watchRevocable(e)
	}
}
