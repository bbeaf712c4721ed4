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

// Future is a value that comes later, such as a Grant; see package ask.
type Future[T any] = ask.Future[T]

// handle is what the recipes have in common: a way to a lock's actor, which may come
// and go behind it.
type handle struct {
	manager *manager
	path    string
	recipe  *recipe
	kind    queue.Kind
	problem error // with the recipe's options
	cached  atomic.Pointer[actorEntry]
}

// handle makes one. Problems show at its first request.
func (l *Locks) handle(path string, recipe *recipe, options []LockOption) handle {
	with, err := recipe.with(options)
	return handle{manager: l.manager, path: path, recipe: with, problem: err}
}

// entry is the lock's actor, started if need be.
func (h *handle) entry() (*actorEntry, error) {
	if r := h.cached.Load(); r != nil {
		return r, nil
	}
	if h.problem != nil {
		return nil, h.problem
	}
	r, err := h.manager.find(h.path, h.recipe)
	if err == nil {
		h.cached.Store(r)
	}
	return r, err
}

// forget makes the next request look for the lock's actor again.
func (h *handle) forget(stopped *actorEntry) { h.cached.CompareAndSwap(stopped, nil) }

// Acquire asks for the lock and never blocks. The future gives the Grant once the
// lock is held; its error is that of ctx if ctx ends earlier, or one of this package.
// ctx bounds the wait only, not the grant. Cancel on the future leaves the queue, and
// gives back a grant that nobody has read yet; so does dropping the future.
//
// A wait outlives the loss of the ZooKeeper session: the request queues again in the
// next one, at the end.
func (h *handle) Acquire(ctx context.Context, options ...Option) *Future[*Grant] {
	c, p := newAcquisition(h)
	f := p.UntrackedFuture()
	c.unarmedFuture = f
	if c.prepare(ctx, p, options) {
		c.watch(ctx)
		c.send()
	}
	return f
}

// Lock is Acquire that blocks until the lock is held, ctx ends or the request fails.
func (h *handle) Lock(ctx context.Context, options ...Option) (*Grant, error) {
	c, p := newAcquisition(h)
	if c.prepare(ctx, p, options) {
		c.send()
		if !p.Await(ctx) {
			p.Abandon(h.ended(ctx))
		}
	}
	return p.Take()
}

// Path is the lock's path.
func (h *handle) Path() string { return h.path }

// PID is the lock's actor, which takes the messages of service Lock in lock.proto
// and answers with those of service Owner. It runs until Locks is closed, or until it
// fails, when all are told; then there is another one. All handles of one path have one
// PID, RWMutex.Read and Write as well: Acquire.Kind says what the lock is wanted for, and
// a read-write lock refuses an Acquire that does not say messages.Kind_READ or Kind_WRITE.
// An actor that it answers must have
// a mailbox that never blocks, as protoactor's are unless they are bounded: it would hold
// up the lock, and whoever asks for it.
func (h *handle) PID() (*actor.PID, error) {
	if h.problem != nil {
		return nil, h.problem
	}
	r, err := h.manager.findPinned(h.path, h.recipe)
	if err != nil {
		return nil, err
	}
	return r.self.PID(), nil
}

func newAcquisition(h *handle) (*acquisition, *ask.Promise[*Grant]) {
	c := &acquisition{handle: h, unarmed: true}
	return c, ask.NewPromise(c.abandon)
}

// watch gives the request up when ctx ends.
func (c *acquisition) watch(ctx context.Context) {
	if ctx.Done() == nil {
		return
	}
	c.unwatch = context.AfterFunc(ctx, func() {
		if p := c.promise.Load(); p != nil {
			p.Abandon(c.handle.ended(ctx))
		}
	})
}

// plainAcquires are the requests without options, by kind. All have the same messages: they are a
// good part of what a waiter costs.
var plainAcquires = func() (all [queue.MaxKinds]*messages.Acquire) {
	for kind := range all {
		all[kind] = &messages.Acquire{Kind: uint32(kind)}
	}
	return all
}()

// prepare makes the request ready to be sent. If it cannot be, the promise is complete.
func (c *acquisition) prepare(ctx context.Context, p *ask.Promise[*Grant], options []Option) bool {
	if err := c.fill(ctx, options); err != nil {
		p.Complete(nil, err)
		return false
	}
	c.promise.Store(p)
	return true
}

func (c *acquisition) fill(ctx context.Context, options []Option) error {
	if ctx == nil {
		return errNilContext
	}
	c.msg = plainAcquires[c.handle.kind]
	if len(options) > 0 {
		c.msg = &messages.Acquire{Kind: c.msg.Kind}
	}
	for i, option := range options {
		if option == nil {
			return invalid(fmt.Sprintf("option %d of %d is nil: leave it out", i+1, len(options)))
		}
		if err := option(c.msg); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return c.handle.ended(ctx)
	}
	return nil
}

func (h *handle) ended(ctx context.Context) error {
	return h.manager.zk.explain(fmt.Errorf("lock %s: %w", h.path, context.Cause(ctx)))
}

// isStopped tells the answer of an actor that has stopped because it was idle.
func isStopped(refused *messages.Refused) bool { return refused.Reason == messages.Reason_STOPPED }
