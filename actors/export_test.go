package actors

import (
	"slices"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
)

// LockClaim lets no method of the grant go on that looks at its state, until unlock.
func LockClaim(g *Grant) (unlock func()) {
	c := g.acquisition
	c.mu.Lock()
	return c.mu.Unlock
}

// LockRecipient is the lock's actor.
func LockRecipient(m *Mutex) ask.Recipient {
	l, err := m.entry()
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
	stamped.newActor = func(res *actorEntry) host.Actor { return stampingActor{r.newActor(res), generationAt} }
	stamped.deps = slices.Clone(r.deps)
	for i := range stamped.deps {
		stamped.deps[i].recipe = stamped.deps[i].recipe.stamped(generationAt)
	}
	return &stamped
}

type stampingActor struct {
	host.Actor
	generationAt func(czxid int64) uint64
}

// lockActor has other actors know it for one of this package.
func (stampingActor) lockActor() {}

func (s stampingActor) Receive(from ask.Recipient, msg any) {
	switch msg := msg.(type) {
	case *messages.Created:
		msg.Generation = s.generationAt(msg.Czxid)
	case *messages.Transacted:
		msg.Generation = s.generationAt(msg.Czxid)
	}
	s.Actor.Receive(from, msg)
}
