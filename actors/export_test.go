package actors

import (
	"slices"

	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
)

// LockAcquisition blocks the methods of the grant that read its state, until unlock.
func LockAcquisition(g *Grant) (unlock func()) {
	a := g.acquisition
	a.mu.Lock()
	return a.mu.Unlock
}

// BridgeOf returns the bridge of Locks.
func BridgeOf(l *Locks) zkbridge.Internals { return l.manager.Bridge.FailFast(false) }

// Paths returns the paths of the locks whose actors run.
func Paths(l *Locks) []string { return l.manager.Paths() }

// LockRecipient returns the lock's actor.
func LockRecipient(lock interface {
	entry() (*manager.Entry, error)
}) ask.Recipient {
	e, err := lock.entry()
	if err != nil {
		panic(err)
	}
	return e.Self
}

// SetGenerations has the actors that this handle starts get generationAt(czxid) as the generation
// at each czxid, in place of the one that the bridge reports.
func (h *handle) SetGenerations(generationAt func(czxid int64) uint64) {
	h.recipe = withGenerations(h.recipe, generationAt)
}

func withGenerations(r *recipe, generationAt func(czxid int64) uint64) *recipe {
	changed := *r
	changed.NewActor = func(e *manager.Entry) host.Actor { return generationActor{r.NewActor(e).(lockActor), generationAt} }
	changed.Members = slices.Clone(r.Members)
	for i := range changed.Members {
		changed.Members[i].Recipe = withGenerations(changed.Members[i].Recipe, generationAt)
	}
	return &changed
}

// lockActor is the actor of a lock.
type lockActor interface {
	host.Actor
	LockActor()
}

type generationActor struct {
	lockActor
	generationAt func(czxid int64) uint64
}

func (s generationActor) Receive(from ask.Recipient, msg any) {
	switch msg := msg.(type) {
	case *messages.Created:
		msg.Generation = s.generationAt(msg.Czxid)
	case *messages.Transacted:
		msg.Generation = s.generationAt(msg.Czxid)
	}
	s.lockActor.Receive(from, msg)
}
