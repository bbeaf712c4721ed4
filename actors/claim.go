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

// claim is one request of Go code, from asking to the end of its grant. It is the
// owner that the lock's actor talks to, so it lives as long as that remembers it. It
// must not keep the Future or the Grant alive for long: they tell by being collected
// that their user has dropped them.
type claim struct {
	handle  *handle
	msg     *messages.Acquire                   // not to be written to: see plain
	promise atomic.Pointer[ask.Promise[*Grant]] // until complete
	unwatch func() bool                         // stops waiting for the context

	// For the lock's actor.
	id    requests.ID     // of the request, while it is open
	kept  *Future[*Grant] // of a young claim
	fresh *Grant          // of a young claim
	young bool            // until a moment has passed

	mu        sync.Mutex
	abandoned bool              // the user has given it up
	wanted    bool              // somebody has asked for the grant
	lock      *resident         // who has the request
	step      uint32            // of the grant's token
	granted   *messages.Granted // all else about it; other claims may have the same
	ended     error             // why the grant is over
	told      *told             // nil before there is anything in it
	release   *ask.Promise[struct{}]
}

// told is how the user has asked to be told of what happens to the grant. There are far
// more waiters than grants that need it.
type told struct {
	done     chan struct{} // closed when it is over
	revoked  chan struct{} // closed when somebody has asked for it
	contexts map[*grantContext]struct{}
}

// send hands the request to the lock's actor.
func (c *claim) send() {
	l, err := c.handle.resident()
	if err != nil {
		c.finish(nil, err)
		return
	}
	c.mu.Lock()
	c.lock = l
	c.mu.Unlock()
	l.self.RunInlineIfIdle((*acquiring)(c))
	c.mu.Lock()
	abandoned := c.abandoned
	c.mu.Unlock()
	if abandoned { // perhaps too early for the actor to know the request
		c.cancel(l)
	}
}

func (c *claim) cancel(l *resident) {
	messages.LockRef{To: l.self}.SendCancel(&messages.Cancel{}, c)
}

// acquiring and releasing are a claim as the envelope that it sends.
type (
	acquiring claim
	releasing claim
)

// Unwrap implements ask.Envelope.
func (a *acquiring) Unwrap() (ask.Recipient, any) { return (*claim)(a), a.msg }

// Unwrap implements ask.Envelope.
func (r *releasing) Unwrap() (ask.Recipient, any) { return (*claim)(r), plainRelease }

// plainRelease is what all claims say in the end; it is not to be written to. A claim has one
// request, which needs no number.
var plainRelease = &messages.Release{}

// Tell hears the answers of the lock's actor.
func (c *claim) Tell(msg any) { messages.DispatchOwner(claimOwner{c}, struct{}{}, msg, nil) }

// claimOwner keeps the handlers of messages out of claim's own methods.
type claimOwner struct{ *claim }

func (c claimOwner) Granted(_ struct{}, granted *messages.Granted) { c.hold(granted, granted.Step) }

// hold takes a grant, whose token has a step of its own.
func (c *claim) hold(granted *messages.Granted, step uint32) {
	c.mu.Lock()
	c.granted, c.step = granted, step
	c.mu.Unlock()
	g := &Grant{c}
	if c.young {
		c.fresh = g
	} else {
		g.watch()
	}
	if !c.finish(g, nil) { // too late: the user has given up
		c.end(ErrReleased)
		c.giveBack()
	}
	runtime.KeepAlive(g) // it is not dropped before it is released
}

func (c claimOwner) Refused(_ struct{}, refused *messages.Refused) {
	c.mu.Lock()
	release, l := c.release, c.lock
	c.mu.Unlock()
	switch {
	case release != nil:
		release.Complete(struct{}{}, refused)
	case stopped(refused) && c.promise.Load() != nil:
		c.handle.forget(l)
		c.send()
	default:
		c.finish(nil, refused)
	}
}

func (c claimOwner) Released(struct{}, *messages.Released) {
	c.mu.Lock()
	release := c.release
	c.mu.Unlock()
	if release != nil {
		release.Complete(struct{}{}, nil)
	}
}

func (c claimOwner) Lost(_ struct{}, lost *messages.Lost) {
	c.mu.Lock()
	release := c.release
	c.mu.Unlock()
	if !c.end(lost) && release != nil { // it came too late
		release.Complete(struct{}{}, lost)
	}
}

// Suspended ends the contexts of the grant, if the configuration has it so. The grant
// itself is not over.
func (c claimOwner) Suspended(struct{}, *messages.Suspended) {
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

func (c claimOwner) RevokeRequested(struct{}, *messages.RevokeRequested) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.told != nil && c.told.revoked != nil && !c.wanted {
		close(c.told.revoked)
	}
	c.wanted = true
}

func (c claimOwner) Contended(struct{}, *messages.Contended) {}

// finish completes the promise; false if it was complete.
func (c *claim) finish(g *Grant, err error) bool {
	p := c.promise.Swap(nil)
	first := p != nil && p.Complete(g, err)
	if c.unwatch != nil {
		c.unwatch()
		c.unwatch = nil // it refers to the promise, and so to the grant
	}
	return first
}

// abandon is for a request whose user has given it up.
func (c *claim) abandon(g *Grant, why error) {
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
	l := c.lock
	c.mu.Unlock()
	if l != nil { // else it is not sent yet
		c.cancel(l)
	}
}

func (c *claim) giveBack() {
	c.lock.self.RunInlineIfIdle((*releasing)(c))
}

// grow is called when a moment has passed. Up to then the claim keeps its Future and its
// Grant alive, as an exception; from now on it is noticed if the user drops them. That
// is expensive, and most claims are over before.
func (c *claim) grow() {
	if !c.young {
		return
	}
	if c.kept != nil {
		ask.ArmLeakDetection(c.kept)
	}
	if c.fresh != nil {
		c.fresh.watch()
	}
	c.young, c.kept, c.fresh = false, nil, nil
}

// end ends the grant because of why; false if it was over.
func (c *claim) end(why error) bool {
	c.mu.Lock()
	if c.ended != nil {
		c.mu.Unlock()
		return false
	}
	c.ended = why
	contexts := c.takeContexts()
	if c.told != nil && c.told.done != nil {
		close(c.told.done)
	}
	c.mu.Unlock()
	for gc := range contexts {
		gc.cancel(why)
	}
	return true
}

// toldLocked needs c.mu, as what it gives does.
func (c *claim) toldLocked() *told {
	if c.told == nil {
		c.told = &told{}
	}
	return c.told
}

// takeContexts needs c.mu.
func (c *claim) takeContexts() (contexts map[*grantContext]struct{}) {
	if c.told != nil {
		contexts, c.told.contexts = c.told.contexts, nil
	}
	return contexts
}

// check tells why the grant is over, or nil. A process that was paused may not have
// heard yet that its session must be taken for lost: then this ends the grant.
func (c *claim) check() error {
	c.mu.Lock()
	ended := c.ended
	c.mu.Unlock()
	if ended != nil || !c.handle.manager.zk.Lost(c.granted.Epoch) {
		return ended
	}
	c.end(&messages.Lost{Reason: messages.Reason_SESSION_LOST, Detail: join(c.handle.path, overdue)})
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// overdue is why a session is taken for lost that nobody has reported as such yet.
const overdue = "the session is over or past its deadline"

// grantContext ends with its grant.
type grantContext struct{ cancel context.CancelCauseFunc }
