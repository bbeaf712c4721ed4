package lockqueue

import (
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// Another client asks a holder to release by the data that it writes to the holder's node.

// revoke goes on after a node of this process was seen with the data RevokeData. The former data
// are restored, since others may read them. To be asked again does no harm.
func (s *State) revoke(e *entry) {
	if e.data == queue.RevokeData { // data that say so from the beginning mean nothing
		return
	}
	f := s.add(requests.RestoreData, 0)
	f.Node, f.Data, f.Owner = e.name, []byte(e.data), e.owner
	e.revoked = true
	if e.stage == held {
		s.notifyRevoked(e, e.requests)
	}
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

// watchRevocable has the node of a revocable holder watched.
func (s *State) watchRevocable(e *entry) {
	if e.revocable && s.watches[e.name] == nil {
		s.requestWatch([]string{e.name}, 0)
	}
}
