package lockqueue

import (
	"slices"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// The events of the requests' owners.

func (ev Acquire) apply(s *State) {
	if s.closed != 0 {
		s.refuse(ev.ID, s.closed)
		return
	}
	s.contention.wanted = s.contention.wanted || ev.NotifyContended
	e := newEntry(entry{contender: contender{kind: ev.Kind}, owner: ev.Owner, data: string(ev.Data),
		atomicCreate: ev.AtomicCreate, revocable: ev.Revocable})
	if ev.Owner != "" && s.reenter(e, ev) {
		return
	}
	if ev.Try && e.downgradeOf == nil && s.blockedLocally(ev.Kind) {
		s.refuse(ev.ID, requests.NotAcquired)
		return
	}
	e.requests = append(e.buf[:0], request{id: ev.ID, try: ev.Try, notifyContended: ev.NotifyContended})
	s.remember(ev.ID, e)
	if ev.Owner != "" {
		put(&s.owners, ownerOf(e), e)
	}
	s.requestCreate(e)
}

// remember notes the entry of a request.
func (s *State) remember(id requests.ID, e *entry) {
	if s.requests == nil {
		s.requests = &requests.Table[entry]{}
	}
	s.requests.Put(id, e)
}

// owner is the key of an owner's entry of one kind.
type owner struct {
	name string
	kind queue.Kind
}

func ownerOf(e *entry) owner { return owner{e.owner, e.kind} }

// reenter handles a request of an owner that has other requests. It reports whether that is all;
// otherwise e is to be created, beside another entry if e.downgradeOf is set.
func (s *State) reenter(e *entry, ev Acquire) bool {
	mayEnter := s.rule.EntersFrom(ev.Kind)
	for kind := range s.rule.BlockedBy {
		has := s.owners[owner{ev.Owner, queue.Kind(kind)}]
		switch {
		case has == nil:
		case has.stage == lost:
			// Its owner does not know yet, or has not released it. Either way the lock is not held
			// any more, and a re-entry must not pretend that it is.
			s.refuse(ev.ID, has.reason)
			return true
		case has.kind == ev.Kind && mayEnter.Has(ev.Kind):
			s.join(has, ev)
			return true
		case has.stage == held && mayEnter.Has(has.kind) && queue.NearEnd(has.seq):
			s.refuse(ev.ID, requests.SequenceExhausted) // the number is not its alone, so it is no place
			return true
		case has.stage == held && mayEnter.Has(has.kind):
			e.downgradeOf, e.downgraded, e.atomicCreate = has, true, has.atomicCreate
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
	switch {
	case e.stage == held:
		s.remember(ev.ID, e)
		e.requests = append(e.requests, request{id: ev.ID, notifyContended: ev.NotifyContended})
		s.grantRequest(e, ev.ID)
		s.notifyRevoked(e)
	case ev.Try:
		s.refuse(ev.ID, requests.NotAcquired)
	default:
		s.remember(ev.ID, e)
		e.requests = append(e.requests, request{id: ev.ID, notifyContended: ev.NotifyContended})
	}
}

// blockedLocally reports whether contenders of this process alone block a new request. Contenders
// of other processes may be gone unnoticed: ZooKeeper knows.
func (s *State) blockedLocally(kind queue.Kind) bool {
	set, n := s.rule.BlockedBy[kind], 0
	for i := len(s.contenders) - 1; i >= 0 && n < s.rule.Permits; i-- {
		if c := s.contenders[i]; c.entry != nil && set.Has(c.kind) {
			n++
		}
	}
	for _, early := range [][]*entry{s.unanswered, s.unsent} {
		for i := 0; i < len(early) && n < s.rule.Permits; i++ {
			e := early[i]
			if !e.listed && (e.stage == creating || e.stage == unsent) && set.Has(e.kind) {
				n++
			}
		}
	}
	return n >= s.rule.Permits
}

func (ev Cancel) apply(s *State) {
	if e := s.requests.At(ev.ID); e != nil {
		e.unclean = ev.Unclean && len(e.requests) == 1
		s.withdraw(e, ev.ID, ev.Reason)
		s.grantEligible()
	}
}

func (ev Release) apply(s *State) {
	e := s.requests.At(ev.ID)
	switch {
	case e == nil:
		s.refuse(ev.ID, requests.NotHeld)
	case e.stage == lost:
		s.drop(e, ev.ID)
		s.refuse(ev.ID, e.reason)
	case e.stage != held:
		s.refuse(ev.ID, requests.NotHeld)
	default:
		s.drop(e, ev.ID)
		if n := len(e.requests); n > 0 {
			s.effect(Effect{Kind: ConfirmRelease, ID: ev.ID, StillHeld: n})
			return
		}
		e.noteRelease(ev.ID)
		s.leave(e)
	}
	s.grantEligible()
}

// noteRelease notes the request whose release ends the entry. The entry has no requests any more,
// so their memory serves: there may be many entries.
func (e *entry) noteRelease(by requests.ID) { e.releasing, e.buf[0].id = true, by }

func (e *entry) releaser() requests.ID { return e.buf[0].id }

// withdraw ends a request, in whatever stage its entry is.
func (s *State) withdraw(e *entry, id requests.ID, why requests.Reason) {
	s.drop(e, id)
	s.refuse(id, why)
	if len(e.requests) == 0 {
		s.leave(e)
	}
}

// drop takes a request off its entry. With the last request the entry ceases to be its owner's.
func (s *State) drop(e *entry, id requests.ID) {
	s.requests.Remove(id)
	hadTry := e.hasTry()
	e.requests = slices.DeleteFunc(e.requests, func(r request) bool { return r.id == id })
	if e.stage == queued && hadTry && !e.hasTry() {
		s.waitingTries--
	}
	if len(e.requests) == 0 {
		s.disown(e)
	}
}

func (s *State) disown(e *entry) {
	if e.owner != "" && s.owners[ownerOf(e)] == e {
		delete(s.owners, ownerOf(e))
	}
}

func (s *State) refuse(id requests.ID, why requests.Reason) {
	s.effect(Effect{Kind: Refuse, ID: id, Reason: why})
}

func (s *State) grantRequest(e *entry, id requests.ID) {
	s.effect(Effect{Kind: Grant, ID: id, Node: e.name, Generation: e.generation, Czxid: e.czxid, Step: e.step})
}

// refuseAll refuses all requests of the entry, which leaves.
func (s *State) refuseAll(e *entry, why requests.Reason) {
	s.refuseEach(e, why)
	s.leave(e)
}

func (s *State) refuseEach(e *entry, why requests.Reason) {
	for len(e.requests) > 0 {
		id := e.requests[0].id
		s.drop(e, id)
		s.refuse(id, why)
	}
}

// refuseRelease refuses the release that waits for the end of the entry, if there is one: the node
// may still exist, or went before.
func (s *State) refuseRelease(e *entry, why requests.Reason) {
	if e.releasing {
		e.releasing = false
		s.refuse(e.releaser(), why)
	}
}
