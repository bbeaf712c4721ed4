package actors

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
)

// claim is one request of Go code, from asking to the end of its grant. It is the
// owner that the lock's actor talks to, so it lives as long as that remembers it. It
// must not keep the Future or the Grant alive: they tell by being collected that
// their user has dropped them.
type claim struct {
	handle  *handle
	msg     messages.Acquire
	call    ask.Call
	promise atomic.Pointer[ask.Promise[*Grant]] // until complete
	unwatch func() bool                         // stops waiting for the context

	mu        sync.Mutex
	lock      *lock // who has the request
	abandoned bool  // the user has given it up
	granted   *messages.Granted
	ended     error // why the grant is over
	done      chan struct{}
	contexts  map[*grantContext]struct{}
	release   *ask.Promise[struct{}]
}

// send hands the request to the lock's actor.
func (c *claim) send() {
	l, err := c.handle.lock()
	if err != nil {
		c.finish(nil, err)
		return
	}
	c.mu.Lock()
	c.lock = l
	c.mu.Unlock()
	c.call = ask.Call{Message: &c.msg, From: c}
	l.self.Tell(&c.call)
	c.mu.Lock()
	abandoned := c.abandoned
	c.mu.Unlock()
	if abandoned { // perhaps too early for the actor to know the request
		c.cancel(l)
	}
}

func (c *claim) cancel(l *lock) {
	messages.LockRef{To: l.self}.SendCancel(&messages.Cancel{}, c)
}

// Tell hears the answers of the lock's actor.
func (c *claim) Tell(msg any) { messages.DispatchOwner(claimOwner{c}, struct{}{}, msg, nil) }

// claimOwner keeps the handlers of messages out of claim's own methods.
type claimOwner struct{ *claim }

func (c claimOwner) Granted(_ struct{}, granted *messages.Granted) {
	c.mu.Lock()
	c.granted = granted
	c.mu.Unlock()
	if !c.finish(newGrant(c.claim), nil) { // too late: the user has given up
		c.end(ErrReleased)
		c.giveBack()
	}
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

func (c claimOwner) Lost(_ struct{}, lost *messages.Lost) { c.end(lost) }

// Suspended ends the contexts of the grant, if the configuration has it so. The grant
// itself is not over.
func (c claimOwner) Suspended(struct{}, *messages.Suspended) {
	if !c.handle.manager.stopOnSuspended {
		return
	}
	c.mu.Lock()
	contexts := c.contexts
	c.contexts = nil
	c.mu.Unlock()
	for gc := range contexts {
		gc.cancel(ErrSuspended)
	}
}

func (c claimOwner) RevokeRequested(struct{}, *messages.RevokeRequested) {}

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
	messages.LockRef{To: c.lock.self}.SendRelease(&messages.Release{}, c)
}

// end ends the grant because of why; false if it was over.
func (c *claim) end(why error) bool {
	c.mu.Lock()
	if c.ended != nil {
		c.mu.Unlock()
		return false
	}
	c.ended = why
	contexts := c.contexts
	c.contexts = nil
	if c.done != nil {
		close(c.done)
	}
	c.mu.Unlock()
	for gc := range contexts {
		gc.cancel(why)
	}
	return true
}

// grantContext ends with its grant.
type grantContext struct{ cancel context.CancelCauseFunc }
