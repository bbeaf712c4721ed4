package actors

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
)

// handle is what the recipes have in common: a way to a lock's actor, which may come
// and go behind it.
type handle struct {
	manager *manager
	path    string
	rule    func() queue.Rule
	found   atomic.Pointer[lock]
}

// lock is the lock's actor, started if need be.
func (h *handle) lock() (*lock, error) {
	if l := h.found.Load(); l != nil {
		return l, nil
	}
	l, err := h.manager.lock(h.path, h.rule)
	if err == nil {
		h.found.Store(l)
	}
	return l, err
}

// forget makes the next request look for the lock's actor again.
func (h *handle) forget(stopped *lock) { h.found.CompareAndSwap(stopped, nil) }

func (h *handle) pin() (*actor.PID, error) { return h.manager.pin(h.path, h.rule) }

// acquire starts a request. The promise is complete already if it cannot be made.
func (h *handle) acquire(ctx context.Context, options []Option) *ask.Promise[*Grant] {
	c := &claim{handle: h}
	p := ask.NewPromise(c.abandon)
	if err := c.prepare(ctx, options); err != nil {
		p.Complete(nil, err)
		return p
	}
	c.promise.Store(p)
	if ctx.Done() != nil {
		c.unwatch = context.AfterFunc(ctx, func() { p.Abandon(h.ended(ctx)) })
	}
	c.send()
	return p
}

func (c *claim) prepare(ctx context.Context, options []Option) error {
	if ctx == nil {
		return invalid("context is nil: use context.Background for no limit")
	}
	for _, option := range options {
		if err := option(&c.msg); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return c.handle.ended(ctx)
	}
	return nil
}

func (h *handle) ended(ctx context.Context) error {
	return fmt.Errorf("lock %s: %w", h.path, context.Cause(ctx))
}

// stopped tells the answer of an actor that has stopped because it was idle.
func stopped(refused *messages.Refused) bool { return refused.Reason == messages.Reason_STOPPED }
