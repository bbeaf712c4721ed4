package lockqueue

import (
	"slices"

	"github.com/actorlock/actorlock/actors/internal/requests"
)

// The requests of the entries.

// remember notes the entry of a request.
func (s *State) remember(id requests.ID, e *entry) {
	if s.requests == nil {
		s.requests = &requests.Table[entry]{}
	}
	s.requests.Put(id, e)
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

// refuseTriesOf refuses the tries of an entry, and reports whether there were any.
func (s *State) refuseTriesOf(e *entry) (any bool) {
	for i := len(e.requests) - 1; i >= 0; i-- {
		if r := e.requests[i]; r.try {
			s.drop(e, r.id)
			s.refuse(r.id, requests.NotAcquired)
			any = true
		}
	}
	return any
}

func (s *State) grantRequest(e *entry, id requests.ID) {
	f := s.add(requests.Grant, id)
	f.Node, f.Token = e.name, e.token
}

// notifyRevoked sends each of some requests of a holder a RequestRevoke, if the holder is asked to
// release. A further one has no effect.
func (s *State) notifyRevoked(e *entry, granted []request) {
	if e.revoked {
		for _, r := range granted {
			s.add(requests.RequestRevoke, r.id)
		}
	}
}

func (s *State) notifyContended(e *entry) {
	for i := range e.requests {
		if r := &e.requests[i]; r.notifyContended {
			r.notifyContended = false
			s.add(requests.NotifyContended, r.id)
		}
	}
}
