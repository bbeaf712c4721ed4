package actors

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
)

// acquisition is one request of Go code, from Acquire to the end of its grant. It is the owner that
// the lock's actor sends messages to, and the actor keeps it alive until that end. It must not keep
// the Future or the Grant alive for long: leak detection (abandon.go) has the garbage collector find a
// Future or a Grant that the user has dropped.
type acquisition struct {
	// The acquisition ignores Contended, which it does not ask for. Its handlers get a struct{} in
	// place of the sender, which is always the lock's actor.
	messages.IgnoreOwner[struct{}]

	handle  *handle
	msg     *messages.Acquire                   // other requests may share it: nothing may write to it
	promise atomic.Pointer[ask.Promise[*Grant]] // until it is complete
	unwatch func() bool                         // stops the watch of the context

	// From send on, only the lock's actor uses these.
	id            requests.ID     // of the open request; 0 for none
	unarmedFuture *Future[*Grant] // while unarmed
	unarmedGrant  *Grant          // while unarmed
	unarmed       bool            // no leak detection until the actor calls ArmLeakDetection (abandon.go)

	mu              sync.Mutex
	abandoned       bool              // the user has given the request up
	droppedHeld     bool              // the user has dropped the grant while it held: the lock stays held until a loss, after which a.end releases it
	revokeRequested bool              // the user should release: another client asks for the lock, or most of HoldAtMost is over
	announced       bool              // the grant is over, its contexts have ended, and Done is closed: see announceEndLocked
	step            uint32            // of the grant's token
	entry           *manager.Entry    // the lock's actor that has the request, as the manager knows it
	granted         *messages.Granted // the grant but for step; other acquisitions may share it
	ended           error             // why the grant is over; nil before that
	notifications   *notifications    // nil until one is needed
	release         *ask.Promise[struct{}]
}

// ---- to the lock's actor

// Acquire asks for the lock and never blocks. The future completes with the Grant once the lock
// is held. Its error is the cause of ctx if ctx ends earlier, or an error of this package. ctx
// bounds the wait only, not the grant. Cancel on the future leaves the queue, and releases a
// grant that Result has not returned yet; so does dropping the future.
//
// A wait outlives the loss of the ZooKeeper session: the request queues again in the next
// session, at the end. Exceptions are a Try, a downgrade, and FailOnSessionLoss.
func (h *handle) Acquire(ctx context.Context, options ...Option) *Future[*Grant] {
	a, p := newAcquisition(h)
	f := p.UntrackedFuture() // ArmLeakDetection tracks it later
	a.unarmedFuture = f
	if a.prepare(ctx, p, options) { // otherwise the future has an error
		a.watch(ctx) // abandon.go
		a.send()
	}
	return f
}

// send hands the request to the lock's actor. An idle actor handles it at once, in this goroutine.
func (a *acquisition) send() {
	e, err := a.handle.entry()
	if err != nil {
		a.complete(nil, err)
		return
	}
	a.mu.Lock()
	a.entry = e
	a.mu.Unlock()
	e.Self.RunInlineIfIdle((*acquireEnvelope)(a))
	a.mu.Lock()
	abandoned := a.abandoned
	a.mu.Unlock()
	if abandoned {
		// The user gave up during this call. Perhaps abandon found no entry and sent no Cancel, or
		// its Cancel came before the Acquire and was ignored. Another Cancel does no harm.
		a.cancel(e)
	}
}

// acquireEnvelope is what send passes to the actor: the acquisition in place of a pair of its
// message and its sender, so that nothing is allocated for the pair. The actor unwraps it.
type acquireEnvelope acquisition

// Unwrap implements ask.Envelope.
func (e *acquireEnvelope) Unwrap() (ask.Recipient, any) { return (*acquisition)(e), e.msg }

// ---- from the lock's actor

// Tell implements ask.Recipient.
func (a *acquisition) Tell(msg any) { messages.DispatchOwner(a, struct{}{}, msg, nil) }

// Granted implements messages.OwnerHandler.
func (a *acquisition) Granted(_ struct{}, g *messages.Granted) { a.OnGranted(g, g.Step) }

// OnGranted implements lock.Acquisition. Granted calls it. The actor of a local queue calls it
// directly, since its grants by one node share one message (lock.Actor.GrantStep).
func (a *acquisition) OnGranted(granted *messages.Granted, step uint32) {
	a.mu.Lock()
	a.granted, a.step = granted, step
	if a.msg.HoldNanos > 0 {
		a.notificationsLocked().holdEnd = time.Now().Add(time.Duration(a.msg.HoldNanos))
	}
	a.mu.Unlock()
	g := &Grant{a}
	a.detectDrop(g)
	if !a.complete(g, nil) { // the user has given up before
		a.end(ErrReleased)
		a.sendRelease()
	}
	runtime.KeepAlive(g) // else the collector could report g as dropped before the branch above has ended it
}

// complete completes the promise, and returns false if it was complete. Its callers are OnGranted,
// Refused, and the method send if that finds no actor. No two calls overlap.
func (a *acquisition) complete(g *Grant, err error) bool {
	p := a.promise.Swap(nil)
	first := p != nil && p.Complete(g, err)
	if a.unwatch != nil {
		a.unwatch()
		a.unwatch = nil // it refers to the promise, and so to the grant
	}
	return first
}
