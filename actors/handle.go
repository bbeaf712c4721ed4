package actors

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/actors/internal/check"
	"github.com/actorlock/actorlock/actors/internal/inspection"
	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/actors/internal/recipes"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/gen/ask"
)

// Future is a value that comes later, such as a Grant. Done returns the channel to select on.
// Result blocks until the future is complete, and returns its value or its error. Cancel ends the
// request. See package github.com/actorlock/actorlock/gen/ask.
type Future[T any] = ask.Future[T]

// recipe has what a manager needs to start the actor behind a handle.
type recipe = manager.Recipe

// handle is what all lock types have in common: a way to a lock's actor, which may stop and
// start again behind it.
type handle struct {
	manager *manager.Manager
	path    string
	recipe  *recipe
	kind    queue.Kind
	problem error                         // with the options of the lock
	cached  atomic.Pointer[manager.Entry] // of the lock's actor; nil before the first request
}

// LockOption sets something for a lock as a whole, in this process. All handles of one path must
// have the same options: a request by a handle with others ends with ErrInvalid while the first
// options are in use.
type LockOption interface {
	setLock(*recipe) error
}

type lockOption func(*recipe) error

func (set lockOption) setLock(r *recipe) error { return set(r) }

// withOptions returns the recipe with the options.
func withOptions(r *recipe, options []LockOption) (*recipe, error) {
	var set []func(*recipe) error
	for _, option := range options {
		if option == nil {
			return nil, check.Invalid("a lock option is nil: leave it out")
		}
		set = append(set, option.setLock)
	}
	return recipes.With(r, set)
}

// entry returns the entry of the lock's actor, which it starts if there is none.
func (h *handle) entry() (*manager.Entry, error) {
	if e := h.cached.Load(); e != nil {
		return e, nil
	}
	if h.problem != nil {
		return nil, h.problem
	}
	e, err := h.manager.Find(h.path, h.recipe)
	if err == nil {
		h.cached.Store(e)
	}
	return e, err
}

// forget makes the next request ask the manager for the lock's actor.
func (h *handle) forget(stopped *manager.Entry) { h.cached.CompareAndSwap(stopped, nil) }

// Path returns the lock's path.
func (h *handle) Path() string { return h.path }

// PID returns the address of the lock's actor, which takes the messages of service Lock in
// lock.proto and answers with those of service Owner. The actor runs until Locks is closed, or
// until it fails: then it answers all open requests, and the next call of PID returns another
// address. All handles of one path have one PID, RWMutex.Read and RWMutex.Write as well:
// Acquire.Kind says which kind is wanted, and a read-write lock refuses an Acquire whose kind is
// neither messages.Kind_READ nor Kind_WRITE.
//
// An actor that the lock answers must have a mailbox that never blocks, as protoactor's mailboxes
// do unless they are bounded: a mailbox that blocks would hold up the lock and all its owners.
func (h *handle) PID() (*actor.PID, error) {
	if h.problem != nil {
		return nil, h.problem
	}
	e, err := h.manager.FindPinned(h.path, h.recipe)
	if err != nil {
		return nil, err
	}
	return e.Self.PID(), nil
}

// contextError returns the error of a request whose ctx has ended.
func (h *handle) contextError(ctx context.Context) error {
	return h.manager.Session.Explain(fmt.Errorf("lock %s: %w", h.path, context.Cause(ctx)))
}

// target returns what a question about the lock needs.
func (h *handle) target() *inspection.Target {
	return &inspection.Target{Manager: h.manager, Path: h.path, Recipe: h.recipe, Problem: h.problem}
}
