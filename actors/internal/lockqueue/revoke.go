package lockqueue

import "github.com/actorlock/actorlock/actors/queue"

// Another client asks a holder to release by the data that it writes to the holder's node.

// revoke goes on after a node of this process was seen with the data RevokeData. The former data
// are restored, since others may read them. To be asked again does no harm.
func (s *State) revoke(c *entry) {
	if c == nil || c.data == queue.RevokeData { // data that say so from the beginning mean nothing
		return
	}
	s.effect(Effect{Kind: RestoreData, Node: c.name, Data: []byte(c.data), Owner: c.owner})
	c.revoked = true
	if c.stage == held {
		s.notifyRevoked(c)
	}
}

// notifyRevoked sends each request of a holder one RequestRevoke, if the holder is asked to
// release. It has the node of a revocable holder watched.
func (s *State) notifyRevoked(c *entry) {
	for i := range c.requests {
		if r := &c.requests[i]; c.revoked && !r.revokeSent {
			r.revokeSent = true
			s.effect(Effect{Kind: RequestRevoke, ID: r.id})
		}
	}
	if c.revocable && s.watches[c.name] == nil {
		s.requestWatch([]string{c.name})
	}
}
