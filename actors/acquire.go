package actors

import (
	"context"
	"fmt"
	"runtime"

	"github.com/actorlock/actorlock/actors/internal/check"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
)

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

// Lock is Acquire that blocks until the lock is held, ctx ends or the request fails.
func (h *handle) Lock(ctx context.Context, options ...Option) (*Grant, error) {
	a, p := newAcquisition(h)
	if a.prepare(ctx, p, options) {
		a.send()
		if !p.Await(ctx) {
			p.Abandon(h.contextError(ctx))
		}
	}
	return p.Take()
}

// prepare makes the request ready to be sent. Otherwise it completes the promise with the error
// and returns false.
func (a *acquisition) prepare(ctx context.Context, p *ask.Promise[*Grant], options []Option) bool {
	if err := a.fill(ctx, options); err != nil {
		p.Complete(nil, err)
		return false
	}
	a.promise.Store(p)
	return true
}

func (a *acquisition) fill(ctx context.Context, options []Option) error {
	if ctx == nil {
		return check.ErrNilContext
	}
	a.msg = plainAcquires[a.handle.kind]
	if len(options) > 0 {
		a.msg = &messages.Acquire{Kind: a.msg.Kind}
	}
	for i, option := range options {
		if option == nil {
			return check.Invalid(fmt.Sprintf("option %d of %d is nil: leave it out", i+1, len(options)))
		}
		if err := option.setRequest(a.msg); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return a.handle.contextError(ctx)
	}
	if a.handle.manager.RecordStacks {
		a.notificationsLocked().acquired = callers()
	}
	if a.handle.manager.Monitor != nil { // which needs the contexts of Acquisitions
		a.notificationsLocked().ctx = ctx
	}
	return nil
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
	e.Self.RunInlineIfIdle(a) // a is an envelope: the actor gets what Unwrap returns
	a.mu.Lock()
	abandoned := a.abandoned
	a.mu.Unlock()
	if abandoned {
		// The user gave up during this call. Perhaps abandon found no entry and sent no Cancel, or
		// its Cancel came before the Acquire and was ignored. Another Cancel does no harm.
		a.cancel(e)
	}
}

// Unwrap implements ask.Envelope: what send passes to the actor is the acquisition in place of a pair of its
// message and its sender, so that nothing is allocated for the pair.
func (a *acquisition) Unwrap() (ask.Recipient, any) { return a, a.msg }

// Tell implements ask.Recipient.
func (a *acquisition) Tell(msg any) { messages.DispatchOwner(a, struct{}{}, msg, nil) }

// OnGranted implements lock.Acquisition. Grants by one node of a local queue share one message.
func (a *acquisition) OnGranted(granted *messages.Granted, step uint32) {
	a.mu.Lock()
	a.granted, a.step = granted, step
	if a.msg.HoldNanos > 0 {
		a.notificationsLocked().holdFrom = a.handle.manager.Session.Now()
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

// Refused implements messages.OwnerHandler. It answers the Release if the user has sent one,
// else the Acquire.
func (a *acquisition) Refused(_ struct{}, refused *messages.Refused) {
	a.mu.Lock()
	release, e := a.release, a.entry
	a.mu.Unlock()
	switch {
	case release != nil:
		release.Complete(struct{}{}, refused)
	case refused.Reason == messages.Reason_STOPPED && a.promise.Load() != nil: // the actor was idle
		a.handle.forget(e)
		a.send()
	default:
		a.complete(nil, refused)
	}
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
