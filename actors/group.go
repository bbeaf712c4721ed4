package actors

import (
	"sync"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
)

// group is what a request for several locks has in common: their actors, each in its
// own time, hand in what they would have had the bridge create, and the last one sends
// it all.
type group struct {
	bridge *zkbridge.Bridge

	mu      sync.Mutex
	missing int
	parts   []zkbridge.Part
	over    bool
}

// acquireJoint is an Acquire whose node is to be made together with others.
type acquireJoint struct {
	*messages.Acquire
	group *group
}

func newGroup(bridge *zkbridge.Bridge, n int) *group { return &group{bridge: bridge, missing: n} }

// add hands in a part.
func (g *group) add(p zkbridge.Part) {
	g.mu.Lock()
	if g.over {
		g.mu.Unlock()
		refusePart(p)
		return
	}
	g.parts = append(g.parts, p)
	g.mu.Unlock()
	g.skip()
}

// skip says that one of the locks needs no node.
func (g *group) skip() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.missing--; g.missing == 0 && !g.over && len(g.parts) > 0 {
		g.over = true
		g.bridge.CreateAll(g.parts)
	}
}

// abort ends a group that is not complete, since not all of the locks will hand in.
func (g *group) abort() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over {
		return
	}
	g.over = true
	for _, p := range g.parts {
		refusePart(p)
	}
}

func refusePart(p zkbridge.Part) {
	p.From.Tell(&messages.Failed{Id: p.Create.Id, Epoch: p.Create.Epoch, Reason: messages.Reason_CANCELLED})
}
