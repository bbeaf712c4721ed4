package simulation

import (
	"context"
	"fmt"
	"time"

	"github.com/actorlock/actorlock/messages"
)

// What holders are told while they hold. A notice is about a state, of the connection or of a node:
// who is granted while that state lasts is told, too.

// noticed is a holder by one node, and whether it was asked to release.
type noticed struct {
	fmt.Stringer
	p     *process
	node  string
	asked bool
}

// checkNotices checks that each holder knows that its process has no connection, and that a client
// asks for its node. What one holder by a node was told, all must know.
func (sim *simulation) checkNotices(now time.Duration) {
	var all []noticed
	for _, r := range sim.requests {
		if !r.believed || r.p.frozen {
			continue
		}
		// The present state: that of a process that drains is not noted any more.
		if r.work != nil && r.p.locks.Session().State == messages.SessionState_SUSPENDED && r.work.Err() == nil {
			sim.fail(now, "%v: the connection is lost, and its context has not ended", r)
		}
		if nodes := r.grant.Nodes(); len(nodes) == 1 && r.holdAtMost == 0 {
			all = append(all, noticed{r, r.p, nodes[0], isDone(r.grant.Revoked())})
		}
	}
	for _, a := range sim.actorRequests {
		if !a.believed || a.stage != stageHeld || a.p.frozen || a.name != "" {
			continue
		}
		// The connection may be lost, back and lost again between two checks.
		suspensions := a.p.locks.Stats().Suspensions
		if suspended := a.p.state == messages.SessionState_SUSPENDED; !suspended {
			a.suspended, a.suspensions = 0, suspensions
		} else if a.suspended < 1 || a.suspended > int(max(suspensions-a.suspensions, 1)) {
			sim.fail(now, "%v: the connection is lost, and it got Suspended %d times", a, a.suspended)
		}
		if len(a.nodes) == 1 {
			all = append(all, noticed{a, a.p, a.nodes[0], a.asked})
		}
	}
	for _, h := range all {
		switch {
		case !h.asked:
		case !sim.askedFor[h.node]: // a reader that was a writer is asked together with that, by the writer's node
			sim.askedByFormer[h.Stringer] = true
		case !sim.askedByFormer[h.Stringer]:
			sim.heard[h.p.name+h.node] = true
		}
	}
	for _, h := range all {
		if !h.asked && sim.heard[h.p.name+h.node] {
			sim.fail(now, "%v: another holder by its node was asked to release, and it was not", h)
		}
	}
}

// suspensionsBefore returns how often the process had lost its connection before it last had one.
func (p *process) suspensionsBefore() uint64 {
	n := p.locks.Stats().Suspensions
	if p.locks.Session().State == messages.SessionState_SUSPENDED {
		n-- // a holder that is granted now hears of it
	}
	return n
}

// checkAskedBefore checks that no other owner is granted by a node for which a client asks, once
// its process has heard of that.
func (r *programRequest) checkAskedBefore(now time.Duration) {
	if node := r.grant.Node(); !r.named && r.sim.heard[r.p.name+node] {
		r.sim.fail(now, "%v is granted by %s, for which another client asks", r, node)
	}
}

// beginWork makes the context of the work under the grant, which ends when the connection is lost.
func (r *programRequest) beginWork() {
	if r.p.stopOnSuspended {
		r.work = r.grant.Context(context.Background())
	}
}
