package simulation

import (
	"math/rand/v2"
	"time"
	"unsafe"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/gen/ask"
)

// The garbage collector notices that a program has dropped a future or a grant, at an unknown time
// and on a goroutine outside the bubble. A run has no garbage collection. Instead the simulation
// makes the calls of the collector: abandonFuture calls what the finalizer of ask.Watch calls, and
// abandonGrant the cleanup that package actors adds to a grant.

func abandonFuture(f *actors.Future[*actors.Grant]) {
	promise := *(**ask.Promise[*actors.Grant])(unsafe.Pointer(f)) // a Future's only field
	promise.Abandon(ask.ErrDropped)
}

func abandonGrant(g *actors.Grant) {
	grantDropped(*(*unsafe.Pointer)(unsafe.Pointer(g))) // a Grant's only field
}

//go:linkname grantDropped github.com/actorlock/actorlock/actors.(*acquisition).dropped
func grantDropped(acquisition unsafe.Pointer)

// longestTick is the time between two ticks of a lock, at most.
const longestTick = time.Second

// dropFuture has the program drop the future, whether or not it is complete.
func (r *programRequest) dropFuture() {
	switch {
	case r.stage != stageWaiting || r.killed:
	case r.p.frozen:
		r.sim.after(100*time.Millisecond, r.dropFuture)
	default:
		r.sim.record("%d is dropped; answered: %v", r.id, isDone(r.future.Done()))
		// It may hold by a deleted node, unknown to the checker, until the tick at which the lock
		// hears of this.
		r.sim.noteDeletedNodeEnd(r.p.holder(r.p.session)+r.uses[0].path, r.sim.now()+longestTick)
		abandonFuture(r.future)
		r.close() // the context does not end: only the drop may end the request
		r.sim.noteUse(r.p, r.uses, r.sim.now()+longestTick)
		r.endOwnerAtTick()
	}
}

// endOwnerAtTick notes that the owner has the request until the tick at which the lock hears of its
// end.
func (r *programRequest) endOwnerAtTick() { r.sim.ownerEnded[r.owner] = r.sim.now() + longestTick }

// dropGrants has a process drop some of its grants. The grants that are not lost hold until the
// session ends, so the server ends it later.
func (sim *simulation) dropGrants(p *process, r *rand.Rand, span time.Duration) {
	held := false
	for _, q := range sim.requests {
		if q.p != p || q.stage != stageHeld || q.dropped || r.IntN(2) == 0 {
			continue
		}
		sim.record("grant %d is dropped; lost before: %v", q.id, q.endErr)
		abandonGrant(q.grant)
		if q.grant.Err() != nil {
			q.finish()
			q.endOwnerAtTick()
			continue
		}
		q.dropped, held = true, true
	}
	if !held {
		return
	}
	session := p.session
	sim.undoAfter(span, func() {
		if p.session == session && !p.dead {
			p.markAffected(3 * time.Second)
			sim.expireSession(p)
		}
	})
}
