package actors

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/internal/shell"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
)

// acquisition is one request of Go code, from Acquire to the end of its grant. It is the owner
// that the lock's actor sends messages to, so it lives as long as that remembers it. It must not
// keep the Future or the Grant alive for long: the garbage collector finds them when the user has
// dropped them.
type acquisition struct {
	messages.IgnoreOwner[struct{}]
	handle  *handle
	msg     *messages.Acquire                   // nothing may write to it: see plainAcquires
	promise atomic.Pointer[ask.Promise[*Grant]] // until it is complete
	unwatch func() bool                         // stops the watch of the context

	// The lock's actor uses these.
	id            requests.ID     // of the open request; 0 for none
	unarmedFuture *Future[*Grant] // while unarmed
	unarmedGrant  *Grant          // while unarmed
	unarmed       bool            // no leak detection yet; see ArmLeakDetection

	mu              sync.Mutex
	abandoned       bool              // the user has given the request up
	droppedHeld     bool              // the user has dropped the grant while it held
	revokeRequested bool              // another client has asked for the lock
	entry           *shell.Entry      // of the lock's actor that has the request
	step            uint32            // of the grant's token
	granted         *messages.Granted // the grant but for step; other acquisitions may share it
	ended           error             // why the grant is over; nil before that
	notifications   *notifications    // nil before the user has asked for any
	release         *ask.Promise[struct{}]
}

// notifications holds the channels and contexts that the user has asked for. Far more requests
// wait than have any.
type notifications struct {
	done     chan struct{} // closed when the grant is over
	revoked  chan struct{} // closed when another client has asked for the lock
	contexts map[*grantContext]struct{}
	holdEnd  time.Time // when the grant ends by HoldAtMost; zero without
	// heldSince is when the lock was granted, known once leak detection is armed; zero before.
	heldSince time.Time
	// ctx is the context of the request until the lock's actor asks for it; nil without a Monitor.
	ctx      context.Context
	acquired stack // of the goroutine that has made the request, if Config.RecordStacks is set
}

// grantContext ends with its grant.
type grantContext struct{ cancel context.CancelCauseFunc }

func newAcquisition(h *handle) (*acquisition, *ask.Promise[*Grant]) {
	a := &acquisition{handle: h, unarmed: true}
	return a, ask.NewPromise(a.abandon)
}

// ---- the request

// plainAcquires are the requests without options, by kind. All such requests share these
// messages, which are a good part of the memory of a waiter.
var plainAcquires = func() (all [queue.MaxKinds]*messages.Acquire) {
	for kind := range all {
		all[kind] = &messages.Acquire{Kind: uint32(kind)}
	}
	return all
}()

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
		return shell.ErrNilContext
	}
	a.msg = plainAcquires[a.handle.kind]
	if len(options) > 0 {
		a.msg = &messages.Acquire{Kind: a.msg.Kind}
	}
	for i, option := range options {
		if option == nil {
			return shell.Invalid(fmt.Sprintf("option %d of %d is nil: leave it out", i+1, len(options)))
		}
		if err := option(a.msg); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return a.handle.contextError(ctx)
	}
	if a.handle.manager.RecordsStacks() {
		a.notificationsLocked().acquired = callers()
	}
	if a.handle.manager.Monitored() {
		a.notificationsLocked().ctx = ctx
	}
	return nil
}

// watch abandons the request when ctx ends.
func (a *acquisition) watch(ctx context.Context) {
	if ctx.Done() == nil {
		return
	}
	a.unwatch = context.AfterFunc(ctx, func() {
		if p := a.promise.Load(); p != nil {
			p.Abandon(a.handle.contextError(ctx))
		}
	})
}

// send hands the request to the lock's actor, which handles it in this goroutine if it is idle.
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
	if abandoned { // perhaps before the actor knew the request
		a.cancel(e)
	}
}

func (a *acquisition) cancel(e *shell.Entry) {
	messages.LockRef{To: e.Self}.SendCancel(&messages.Cancel{}, a)
}

func (a *acquisition) sendRelease() { a.entry.Self.RunInlineIfIdle((*releaseEnvelope)(a)) }

// acquireEnvelope is an acquisition as the Acquire that it sends.
type acquireEnvelope acquisition

// releaseEnvelope is an acquisition as the Release that it sends.
type releaseEnvelope acquisition

// Unwrap implements ask.Envelope.
func (e *acquireEnvelope) Unwrap() (ask.Recipient, any) { return (*acquisition)(e), e.msg }

// Unwrap implements ask.Envelope.
func (e *releaseEnvelope) Unwrap() (ask.Recipient, any) { return (*acquisition)(e), plainRelease }

// plainRelease is the Release of all acquisitions; nothing may write to it. An acquisition has
// one request, which needs no number.
var plainRelease = &messages.Release{}

// complete completes the promise. It returns false if the promise was complete.
func (a *acquisition) complete(g *Grant, err error) bool {
	p := a.promise.Swap(nil)
	first := p != nil && p.Complete(g, err)
	if a.unwatch != nil {
		a.unwatch()
		a.unwatch = nil // it refers to the promise, and so to the grant
	}
	return first
}

// abandon is called when the user has given the request up, or the grant before taking it.
func (a *acquisition) abandon(g *Grant, why error) {
	if errors.Is(why, ask.ErrDropped) {
		log := a.droppedLog()
		log.Warn("future of a lock was dropped; the request is cancelled", "held", g != nil, "do", "take the result of each future, or cancel it")
	}
	if g != nil {
		g.Release()
		return
	}
	a.promise.Store(nil)
	a.mu.Lock()
	a.abandoned = true
	e := a.entry
	a.mu.Unlock()
	if e != nil { // otherwise the request is not sent yet
		a.cancel(e)
	}
}

// ---- messages of the lock's actor: acquisition is a shell.Acquisition and a messages.OwnerHandler

// RequestID implements shell.Acquisition.
func (a *acquisition) RequestID() *requests.ID { return &a.id }

// Owner implements shell.Acquisition.
func (a *acquisition) Owner() string { return a.msg.Owner }

// Context implements shell.Acquisition.
func (a *acquisition) Context() context.Context {
	a.mu.Lock()
	defer a.mu.Unlock()
	ctx := a.notifications.ctx
	a.notifications.ctx = nil
	return ctx
}

// Tell implements ask.Recipient.
func (a *acquisition) Tell(msg any) { messages.DispatchOwner(a, struct{}{}, msg, nil) }

// Granted implements messages.OwnerHandler.
func (a *acquisition) Granted(_ struct{}, granted *messages.Granted) {
	a.OnGranted(granted, granted.Step)
}

// OnGranted implements shell.Acquisition.
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
	runtime.KeepAlive(g) // the grant is not dropped before it is released
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

// Released implements messages.OwnerHandler.
func (a *acquisition) Released(struct{}, *messages.Released) {
	a.mu.Lock()
	release := a.release
	a.mu.Unlock()
	if release != nil {
		release.Complete(struct{}{}, nil)
	}
}

// Lost implements messages.OwnerHandler.
func (a *acquisition) Lost(_ struct{}, lost *messages.Lost) {
	a.mu.Lock()
	release := a.release
	a.mu.Unlock()
	if !a.end(lost) && release != nil { // the user had released before
		release.Complete(struct{}{}, lost)
	}
}

// Suspended implements messages.OwnerHandler. It ends the contexts of the grant if the
// configuration says so. The grant itself is not over.
func (a *acquisition) Suspended(struct{}, *messages.Suspended) {
	if !a.handle.manager.StopsOnSuspended() {
		return
	}
	a.mu.Lock()
	contexts := a.takeContextsLocked()
	a.mu.Unlock()
	for gc := range contexts {
		gc.cancel(ErrSuspended)
	}
}

// RevokeRequested implements messages.OwnerHandler.
func (a *acquisition) RevokeRequested(struct{}, *messages.RevokeRequested) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := a.notifications; n != nil && n.revoked != nil && !a.revokeRequested {
		close(n.revoked)
	}
	a.revokeRequested = true
}

// ---- the end of the grant

// end ends the grant because of why. It returns false if the grant was over.
func (a *acquisition) end(why error) bool {
	a.mu.Lock()
	if a.ended != nil {
		a.mu.Unlock()
		return false
	}
	a.ended = why
	droppedHeld := a.droppedHeld
	contexts := a.takeContextsLocked()
	if n := a.notifications; n != nil && n.done != nil {
		close(n.done)
	}
	a.mu.Unlock()
	for gc := range contexts {
		gc.cancel(why)
	}
	if droppedHeld {
		a.sendRelease() // the lock waits for a Release after the loss, and the user has dropped the grant
	}
	return true
}

// notificationsLocked needs a.mu, as do the fields of its result.
func (a *acquisition) notificationsLocked() *notifications {
	if a.notifications == nil {
		a.notifications = &notifications{}
	}
	return a.notifications
}

// takeContextsLocked needs a.mu.
func (a *acquisition) takeContextsLocked() (contexts map[*grantContext]struct{}) {
	if a.notifications != nil {
		contexts, a.notifications.contexts = a.notifications.contexts, nil
	}
	return contexts
}

// checkEnded returns why the grant is over, or nil. It ends the grant if the session must be
// taken for lost, or if the time of HoldAtMost is over: a process that was paused may not have noticed
// that yet.
func (a *acquisition) checkEnded() error {
	a.mu.Lock()
	ended := a.ended
	holdExpired := a.notifications != nil && !a.notifications.holdEnd.IsZero() && !time.Now().Before(a.notifications.holdEnd)
	a.mu.Unlock()
	switch {
	case ended != nil:
		return ended
	case a.handle.manager.Bridge.Lost(a.granted.Epoch):
		a.end(&messages.Lost{Reason: messages.Reason_SESSION_LOST, Detail: shell.JoinDetail(a.handle.path, shell.SessionOverdue)})
	case holdExpired:
		a.end(&messages.Lost{Reason: messages.Reason_HOLD_EXPIRED, Detail: a.handle.path})
	default:
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ended
}
