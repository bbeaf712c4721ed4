package actors

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
)

// acquisition is one request of Go code, from asking to the end of its grant. It is the
// owner that the lock's actor talks to, so it lives as long as that remembers it. It
// must not keep the Future or the Grant alive for long: they tell by being collected
// that their user has dropped them.
type acquisition struct {
	handle  *handle
	msg     *messages.Acquire                   // not to be written to: see plain
	promise atomic.Pointer[ask.Promise[*Grant]] // until complete
	unwatch func() bool                         // stops waiting for the context

	// For the lock's actor.
	id            requests.ID     // of the request, while it is open
	unarmedFuture *Future[*Grant] // of a young claim
	unarmedGrant  *Grant          // of a young claim
	unarmed       bool            // until a moment has passed

	mu              sync.Mutex
	abandoned       bool              // the user has given it up
	droppedHeld     bool              // the user has dropped the grant while it held
	revokeRequested bool              // somebody has asked for the grant
	entry           *actorEntry       // who has the request
	step            uint32            // of the grant's token
	granted         *messages.Granted // all else about it; other claims may have the same
	ended           error             // why the grant is over
	notifications   *notifications    // nil before there is anything in it
	release         *ask.Promise[struct{}]
}

// notifications is how the user has asked to be told of what happens to the grant. There are far
// more waiters than grants that need it.
type notifications struct {
	done     chan struct{} // closed when it is over
	revoked  chan struct{} // closed when somebody has asked for it
	contexts map[*grantContext]struct{}
}

// send hands the request to the lock's actor.
func (c *acquisition) send() {
	l, err := c.handle.entry()
	if err != nil {
		c.complete(nil, err)
		return
	}
	c.mu.Lock()
	c.entry = l
	c.mu.Unlock()
	l.self.RunInlineIfIdle((*acquiring)(c))
	c.mu.Lock()
	abandoned := c.abandoned
	c.mu.Unlock()
	if abandoned { // perhaps too early for the actor to know the request
		c.cancel(l)
	}
}

func (c *acquisition) cancel(l *actorEntry) {
	messages.LockRef{To: l.self}.SendCancel(&messages.Cancel{}, c)
}

// acquiring and releasing are a claim as the envelope that it sends.
type (
	acquiring acquisition
	releasing acquisition
)

// Unwrap implements ask.Envelope.
func (a *acquiring) Unwrap() (ask.Recipient, any) { return (*acquisition)(a), a.msg }

// Unwrap implements ask.Envelope.
func (r *releasing) Unwrap() (ask.Recipient, any) { return (*acquisition)(r), plainRelease }

// plainRelease is what all claims say in the end; it is not to be written to. A claim has one
// request, which needs no number.
var plainRelease = &messages.Release{}

// Tell hears the answers of the lock's actor.
func (c *acquisition) Tell(msg any) {
	messages.DispatchOwner(acquisitionOwner{c}, struct{}{}, msg, nil)
}

// acquisitionOwner keeps the handlers of messages out of claim's own methods.
type acquisitionOwner struct{ *acquisition }

func (c acquisitionOwner) Granted(_ struct{}, granted *messages.Granted) {
	c.onGranted(granted, granted.Step)
}

// onGranted takes a grant, whose token has a step of its own.
func (c *acquisition) onGranted(granted *messages.Granted, step uint32) {
	c.mu.Lock()
	c.granted, c.step = granted, step
	c.mu.Unlock()
	g := &Grant{c}
	if c.unarmed {
		c.unarmedGrant = g
	} else {
		g.watchDropped()
	}
	if !c.complete(g, nil) { // too late: the user has given up
		c.end(ErrReleased)
		c.sendRelease()
	}
	runtime.KeepAlive(g) // it is not dropped before it is released
}

func (c acquisitionOwner) Refused(_ struct{}, refused *messages.Refused) {
	c.mu.Lock()
	release, l := c.release, c.entry
	c.mu.Unlock()
	switch {
	case release != nil:
		release.Complete(struct{}{}, refused)
	case isStopped(refused) && c.promise.Load() != nil:
		c.handle.forget(l)
		c.send()
	default:
		c.complete(nil, refused)
	}
}

func (c acquisitionOwner) Released(struct{}, *messages.Released) {
	c.mu.Lock()
	release := c.release
	c.mu.Unlock()
	if release != nil {
		release.Complete(struct{}{}, nil)
	}
}

func (c acquisitionOwner) Lost(_ struct{}, lost *messages.Lost) {
	c.mu.Lock()
	release := c.release
	c.mu.Unlock()
	if !c.end(lost) && release != nil { // it came too late
		release.Complete(struct{}{}, lost)
	}
}

// Suspended ends the contexts of the grant, if the configuration has it so. The grant
// itself is not over.
func (c acquisitionOwner) Suspended(struct{}, *messages.Suspended) {
	if !c.handle.manager.stopOnSuspended {
		return
	}
	c.mu.Lock()
	contexts := c.takeContexts()
	c.mu.Unlock()
	for gc := range contexts {
		gc.cancel(ErrSuspended)
	}
}

func (c acquisitionOwner) RevokeRequested(struct{}, *messages.RevokeRequested) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.notifications != nil && c.notifications.revoked != nil && !c.revokeRequested {
		close(c.notifications.revoked)
	}
	c.revokeRequested = true
}

func (c acquisitionOwner) Contended(struct{}, *messages.Contended) {}

// complete completes the promise; false if it was complete.
func (c *acquisition) complete(g *Grant, err error) bool {
	p := c.promise.Swap(nil)
	first := p != nil && p.Complete(g, err)
	if c.unwatch != nil {
		c.unwatch()
		c.unwatch = nil // it refers to the promise, and so to the grant
	}
	return first
}

// abandon is for a request whose user has given it up.
func (c *acquisition) abandon(g *Grant, why error) {
	if errors.Is(why, ask.ErrDropped) {
		c.handle.manager.log.Warn("future of a lock was dropped; the request is cancelled", "path", c.handle.path, "held", g != nil)
	}
	if g != nil {
		g.Release()
		return
	}
	c.promise.Store(nil)
	c.mu.Lock()
	c.abandoned = true
	l := c.entry
	c.mu.Unlock()
	if l != nil { // else it is not sent yet
		c.cancel(l)
	}
}

func (c *acquisition) sendRelease() {
	c.entry.self.RunInlineIfIdle((*releasing)(c))
}

// armLeakDetection is called when a moment has passed. Up to then the claim keeps its Future and its
// Grant alive, as an exception; from now on it is noticed if the user drops them. That
// is expensive, and most claims are over before.
func (c *acquisition) armLeakDetection() {
	if !c.unarmed {
		return
	}
	if c.unarmedFuture != nil {
		ask.ArmLeakDetection(c.unarmedFuture)
	}
	if c.unarmedGrant != nil {
		c.unarmedGrant.watchDropped()
	}
	c.unarmed, c.unarmedFuture, c.unarmedGrant = false, nil, nil
}

// end ends the grant because of why; false if it was over.
func (c *acquisition) end(why error) bool {
	c.mu.Lock()
	if c.ended != nil {
		c.mu.Unlock()
		return false
	}
	c.ended = why
	droppedHeld := c.droppedHeld
	contexts := c.takeContexts()
	if c.notifications != nil && c.notifications.done != nil {
		close(c.notifications.done)
	}
	c.mu.Unlock()
	for gc := range contexts {
		gc.cancel(why)
	}
	if droppedHeld {
		c.sendRelease() // no Release will tell the lock that the owner knows of the loss
	}
	return true
}

// notificationsLocked needs c.mu, as what it gives does.
func (c *acquisition) notificationsLocked() *notifications {
	if c.notifications == nil {
		c.notifications = &notifications{}
	}
	return c.notifications
}

// takeContexts needs c.mu.
func (c *acquisition) takeContexts() (contexts map[*grantContext]struct{}) {
	if c.notifications != nil {
		contexts, c.notifications.contexts = c.notifications.contexts, nil
	}
	return contexts
}

// checkEnded tells why the grant is over, or nil. A process that was paused may not have
// heard yet that its session must be taken for lost: then this ends the grant.
func (c *acquisition) checkEnded() error {
	c.mu.Lock()
	ended := c.ended
	c.mu.Unlock()
	if ended != nil || !c.handle.manager.zk.Lost(c.granted.Epoch) {
		return ended
	}
	c.end(&messages.Lost{Reason: messages.Reason_SESSION_LOST, Detail: join(c.handle.path, sessionOverdue)})
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// sessionOverdue is why a session is taken for lost that nobody has reported as such yet.
const sessionOverdue = "the session is over or past its deadline"

// grantContext ends with its grant.
type grantContext struct{ cancel context.CancelCauseFunc }
