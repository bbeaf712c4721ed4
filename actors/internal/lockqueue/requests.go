package lockqueue

import (
	"slices"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// The events of the requests' owners.

func (e Acquire) apply(s *State) {
	if s.closed != 0 {
		s.refuse(e.ID, s.closed)
		return
	}
	s.contention.wanted = s.contention.wanted || e.NotifyContended
	c := newEntry(entry{contender: contender{kind: e.Kind}, owner: e.Owner, data: string(e.Data),
		atomicCreate: e.AtomicCreate, revocable: e.Revocable})
	if e.Owner != "" && s.reenter(c, e) {
		return
	}
	if e.Try && c.downgradeOf == nil && s.blockedLocally(e.Kind) {
		s.refuse(e.ID, requests.NotAcquired)
		return
	}
	c.requests = append(c.buf[:0], request{id: e.ID, try: e.Try, notifyContended: e.NotifyContended})
	s.remember(e.ID, c)
	if e.Owner != "" {
		put(&s.owners, ownerOf(c), c)
	}
	s.requestCreate(c)
}

// remember notes the entry of a request.
func (s *State) remember(id requests.ID, c *entry) {
	if s.requests == nil {
		s.requests = &requests.Table[entry]{}
	}
	s.requests.Put(id, c)
}

// owner is the key of an owner's entry of one kind.
type owner struct {
	name string
	kind queue.Kind
}

func ownerOf(c *entry) owner { return owner{c.owner, c.kind} }

// reenter handles a request of an owner that has other requests. It reports whether that is all;
// otherwise c is to be created, beside another entry if c.downgradeOf is set.
func (s *State) reenter(c *entry, e Acquire) bool {
	mayEnter := s.rule.EntersFrom(e.Kind)
	for kind := range s.rule.BlockedBy {
		has := s.owners[owner{e.Owner, queue.Kind(kind)}]
		switch {
		case has == nil:
		case has.stage == lost:
			// Its owner does not know yet, or has not released it. Either way the lock is not held
			// any more, and a re-entry must not pretend that it is.
			s.refuse(e.ID, has.reason)
			return true
		case has.kind == e.Kind && mayEnter.Has(e.Kind):
			s.join(has, e)
			return true
		case has.stage == held && mayEnter.Has(has.kind) && queue.NearEnd(has.seq):
			s.refuse(e.ID, requests.SequenceExhausted) // the number is not its alone, so it is no place
			return true
		case has.stage == held && mayEnter.Has(has.kind):
			c.downgradeOf, c.downgraded, c.atomicCreate = has, true, has.atomicCreate
		case s.rule.Permits == 1 && s.rule.BlockedBy[e.Kind].Has(has.kind):
			s.refuse(e.ID, requests.WouldDeadlock)
			return true
		}
	}
	return false
}

// join lets a further request of an owner share the owner's entry.
func (s *State) join(c *entry, e Acquire) {
	c.revocable = c.revocable || e.Revocable
	switch {
	case c.stage == held:
		s.remember(e.ID, c)
		c.requests = append(c.requests, request{id: e.ID, notifyContended: e.NotifyContended})
		s.grantRequest(c, e.ID)
		s.notifyRevoked(c)
	case e.Try:
		s.refuse(e.ID, requests.NotAcquired)
	default:
		s.remember(e.ID, c)
		c.requests = append(c.requests, request{id: e.ID, notifyContended: e.NotifyContended})
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
			c := early[i]
			if !c.listed && (c.stage == creating || c.stage == unsent) && set.Has(c.kind) {
				n++
			}
		}
	}
	return n >= s.rule.Permits
}

func (e Cancel) apply(s *State) {
	if c := s.requests.At(e.ID); c != nil {
		c.unclean = e.Unclean && len(c.requests) == 1
		s.withdraw(c, e.ID, e.Reason)
		s.grantEligible()
	}
}

func (e Release) apply(s *State) {
	c := s.requests.At(e.ID)
	switch {
	case c == nil:
		s.refuse(e.ID, requests.NotHeld)
	case c.stage == lost:
		s.drop(c, e.ID)
		s.refuse(e.ID, c.reason)
	case c.stage != held:
		s.refuse(e.ID, requests.NotHeld)
	default:
		s.drop(c, e.ID)
		if n := len(c.requests); n > 0 {
			s.effect(Effect{Kind: ConfirmRelease, ID: e.ID, StillHeld: n})
			return
		}
		c.noteRelease(e.ID)
		s.leave(c)
	}
	s.grantEligible()
}

// noteRelease notes the request whose release ends the entry. The entry has no requests any more,
// so their memory serves: there may be many entries.
func (c *entry) noteRelease(by requests.ID) { c.releasing, c.buf[0].id = true, by }

func (c *entry) releaser() requests.ID { return c.buf[0].id }

// withdraw ends a request, in whatever stage its entry is.
func (s *State) withdraw(c *entry, id requests.ID, why requests.Reason) {
	s.drop(c, id)
	s.refuse(id, why)
	if len(c.requests) == 0 {
		s.leave(c)
	}
}

// drop takes a request off its entry. With the last request the entry ceases to be its owner's.
func (s *State) drop(c *entry, id requests.ID) {
	s.requests.Remove(id)
	hadTry := c.hasTry()
	c.requests = slices.DeleteFunc(c.requests, func(r request) bool { return r.id == id })
	if c.stage == queued && hadTry && !c.hasTry() {
		s.waitingTries--
	}
	if len(c.requests) == 0 {
		s.disown(c)
	}
}

func (s *State) disown(c *entry) {
	if c.owner != "" && s.owners[ownerOf(c)] == c {
		delete(s.owners, ownerOf(c))
	}
}

func (s *State) refuse(id requests.ID, why requests.Reason) {
	s.effect(Effect{Kind: Refuse, ID: id, Reason: why})
}

func (s *State) grantRequest(c *entry, id requests.ID) {
	s.effect(Effect{Kind: Grant, ID: id, Node: c.name, Generation: c.generation, Czxid: c.czxid, Step: c.step})
}

// refuseAll refuses all requests of the entry, which leaves.
func (s *State) refuseAll(c *entry, why requests.Reason) {
	s.refuseEach(c, why)
	s.leave(c)
}

func (s *State) refuseEach(c *entry, why requests.Reason) {
	for len(c.requests) > 0 {
		id := c.requests[0].id
		s.drop(c, id)
		s.refuse(id, why)
	}
}

// refuseRelease refuses the release that waits for the end of the entry, if there is one: the node
// may still exist, or went before.
func (s *State) refuseRelease(c *entry, why requests.Reason) {
	if c.releasing {
		c.releasing = false
		s.refuse(c.releaser(), why)
	}
}
