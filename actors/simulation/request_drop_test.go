package simulation

import (
	"math/rand/v2"
	"time"
	"unsafe"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/gen/ask"
)

// The garbage collector notices that a program has dropped a future or a grant, at a time of its
// own and on a goroutine outside the bubble. A run has no garbage collection; instead the driver
// calls what the collector would call: abandonFuture is the finalizer that ask.Watch sets,
// abandonGrant the cleanup that the package actors adds to a grant.

func abandonFuture(f *actors.Future[*actors.Grant]) {
	promise := *(**ask.Promise[*actors.Grant])(unsafe.Pointer(f)) // a Future's only field
	promise.Abandon(ask.ErrDropped)
}

func abandonGrant(g *actors.Grant) {
	grantDropped(*(*unsafe.Pointer)(unsafe.Pointer(g))) // a Grant's only field
}

//go:linkname grantDropped github.com/actorlock/actorlock/actors.(*acquisition).dropped
func grantDropped(claim unsafe.Pointer)

// drop has the program forget the future, whether or not it is complete by now.
func (r *programRequest) drop() {
	switch {
	case r.state != waiting || r.quit:
	case r.p.frozen:
		r.w.after(100*time.Millisecond, r.drop)
	default:
		answered := isDone(r.future.Done())
		r.w.line("%d is dropped; answered: %v", r.id, answered)
		if answered { // it may have held without the checker's knowledge, by a node that was gone
			r.w.ousted[r.p.name+r.uses[0].path] = r.w.now()
		}
		abandonFuture(r.future)
		r.close() // its context goes on: only the drop ends the request
	}
}

// dropGrants has a process forget some of its grants. Those that are not lost hold until its session
// ends, which the server then sees to.
func (w *world) dropGrants(p *process, r *rand.Rand, span time.Duration) {
	held := false
	for _, q := range w.open {
		if q.p != p || q.state != holds || q.dropped || r.IntN(2) == 0 {
			continue
		}
		w.line("grant %d is dropped; lost before: %v", q.id, q.over)
		abandonGrant(q.grant)
		if q.grant.Err() != nil {
			q.finish()
			continue
		}
		q.dropped, held = true, true
	}
	if !held {
		return
	}
	session := p.session
	w.lasting(span, func() {
		if p.session == session && !p.dead {
			p.disturb(3 * time.Second)
			w.expire(p)
		}
	})
}
