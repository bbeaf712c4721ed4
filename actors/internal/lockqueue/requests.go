package lockqueue

import (
	"slices"

	"github.com/actorlock/actorlock/actors/internal/requests"
)

// The ends of requests.

// remember notes the entry of a request.
func (s *State) remember(id requests.ID, e *entry) {
	if s.requests == nil {
		s.requests = &requests.Table[entry]{}
	}
	s.requests.Put(id, e)
}

func (ev Cancel) apply(s *State) {
	if e := s.requests.At(ev.ID); e != nil {
		if ev.Unclean && len(e.requests) == 1 {
			e.ending = unclean
		}
		s.withdraw(e, ev.ID, ev.Reason)
	}
}

func (ev Release) apply(s *State) {
	e := s.requests.At(ev.ID)
	switch {
	case e == nil || e.stage != held:
		s.refuse(ev.ID, requests.NotHeld)
	default:
		s.drop(e, ev.ID)
		if n := len(e.requests); n > 0 {
			s.add(requests.ConfirmRelease, ev.ID).StillHeld = n
			return
		}
		e.noteRelease(ev.ID)
		s.leave(e)
	}
}

func (ev Resize) apply(s *State) {
	rule := *s.rule
	rule.Permits = ev.Permits
	s.rule = &rule
}

// noteRelease notes the request whose release ends the entry. The entry has no requests any more,
// so their memory serves: there may be many entries.
func (e *entry) noteRelease(by requests.ID) { e.ending, e.buf[0].id = releasing, by }

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
	i := e.index(id)
	wasTry := e.requests[i].try
	e.requests = slices.Delete(e.requests, i, i+1)
	if e.stage == queued && wasTry { // it has no other: join refuses those
		s.waitingTries--
	}
	if len(e.requests) == 0 && e.owner != "" && s.owners[ownerOf(e)] == e {
		delete(s.owners, ownerOf(e))
	}
}

// index returns the place of a request. An owner that enters again leaves in reverse order.
func (e *entry) index(id requests.ID) int {
	if last := len(e.requests) - 1; e.requests[last].id == id {
		return last
	}
	return slices.IndexFunc(e.requests, func(r request) bool { return r.id == id })
}

// refuseAll refuses all requests of the entry, which leaves.
func (s *State) refuseAll(e *entry, why requests.Reason) {
	s.endEach(e, requests.Refuse, why)
	s.leave(e)
}

// endEach drops all requests of the entry, with a Refuse or a Lose for each.
func (s *State) endEach(e *entry, end requests.EffectKind, why requests.Reason) {
	for len(e.requests) > 0 {
		id := e.requests[0].id
		s.drop(e, id)
		s.add(end, id).Reason = why
	}
}

// refuseRelease refuses the release that waits for the end of the entry, if there is one: the node
// may still exist, or went before.
func (s *State) refuseRelease(e *entry, why requests.Reason) {
	if e.ending == releasing {
		e.ending = clean
		s.refuse(e.releaser(), why)
	}
}
