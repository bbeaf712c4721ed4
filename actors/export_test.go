package actors

import (
	"slices"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
)

// LockClaim lets no method of the grant go on that looks at its state, until unlock.
func LockClaim(g *Grant) (unlock func()) {
	c := g.claim
	c.mu.Lock()
	return c.mu.Unlock
}

// LockRecipient is the lock's actor.
func LockRecipient(m *Mutex) ask.Recipient {
	l, err := m.resident()
	if err != nil {
		panic(err)
	}
	return l.self
}

// Stamp has the lock's actors, as far as this handle starts them, hear of generationAt as
// the generation in force at each czxid, whatever the bridge tells.
func (h *handle) Stamp(generationAt func(czxid int64) uint64) {
	h.recipe = h.recipe.stamped(generationAt)
}

func (r *recipe) stamped(generationAt func(czxid int64) uint64) *recipe {
	stamped := *r
	stamped.make = func(res *resident) host.Actor { return stamping{r.make(res), generationAt} }
	stamped.upon = slices.Clone(r.upon)
	for i := range stamped.upon {
		stamped.upon[i].recipe = stamped.upon[i].recipe.stamped(generationAt)
	}
	return &stamped
}

type stamping struct {
	host.Actor
	generationAt func(czxid int64) uint64
}

// atDesk has other actors know it for one of this package.
func (stamping) atDesk() {}

func (s stamping) Receive(from ask.Recipient, msg any) {
	switch msg := msg.(type) {
	case *messages.Created:
		msg.Generation = s.generationAt(msg.Czxid)
	case *messages.Transacted:
		msg.Generation = s.generationAt(msg.Czxid)
	}
	s.Actor.Receive(from, msg)
}
