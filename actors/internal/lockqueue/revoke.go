package lockqueue

import "github.com/actorlock/actorlock/actors/queue"

// Holders can be asked to release: by what is written to their nodes.

// revoke is for a contender of ours whose node's data is Revoke. What it was before is
// restored: others may want to read that, and to be asked again does no harm.
func (s *State) revoke(c *entry) {
	if c == nil || c.data == queue.RevokeData { // the latter says nothing
		return
	}
	if len(c.data) > 0 {
		s.effect(Effect{Kind: RestoreData, Node: c.name, Data: []byte(c.data)})
	}
	c.revoked = true
	if c.stage == held {
		s.notifyRevoked(c)
	}
}

// heed tells those who hold that somebody wants the lock back, each of them once, and
// sees to it that they can be told soon if they want that.
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
