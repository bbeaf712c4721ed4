package actors

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
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

// handle returns a handle for a kind. Problems with the path or the options show at its first
// request.
func (l *Locks) handle(path string, r *recipe, kind queue.Kind, options []LockOption) handle {
	with, err := withOptions(r, options)
	return handle{manager: l.manager, path: path, recipe: with, kind: kind, problem: err}
}

// withOptions returns the recipe with the options.
func withOptions(r *recipe, options []LockOption) (*recipe, error) {
	var set []func(*recipe) error
	for _, option := range options {
		if option == nil {
			set = append(set, nil) // refused
			continue
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

// at returns what a question about a path needs.
func (l *Locks) at(path string) *inspection.Target {
	return &inspection.Target{Manager: l.manager, Path: path}
}

// needsZooKeeper returns the error of a call that a lock server does not answer; nil in a process
// with ZooKeeper.
func (l *Locks) needsZooKeeper(call, instead string) error {
	if l.manager.Remote == nil {
		return nil
	}
	return check.Invalid(fmt.Sprintf("%s needs a process with a ZooKeeper session of its own: %s", call, instead))
}

// First blocks until one of the futures has a grant, and returns that grant. It cancels the other
// futures, which releases grants that they have or get. The first of several grants in the order of
// the arguments wins. If all futures fail, the error has all their errors; if ctx ends before, the
// error is its cause. Either way no grant is left. The Path of the grant says which lock it is:
//
//	g, err := actors.First(ctx, primary.Acquire(ctx), secondary.Acquire(ctx))
func First(ctx context.Context, futures ...*Future[*Grant]) (*Grant, error) {
	defer func() {
		for _, f := range futures {
			if f != nil {
				f.Cancel() // does nothing to the one whose grant is returned
			}
		}
	}()
	if err := checkFirst(ctx, futures); err != nil {
		return nil, err
	}
	cases := []reflect.SelectCase{{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(ctx.Done())}}
	for _, f := range futures {
		cases = append(cases, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(f.Done())})
	}
	errs := make([]error, len(futures))
	for failed := 0; failed < len(futures); {
		for i, f := range futures {
			if errs[i] != nil || !isDone(f) {
				continue
			}
			g, err := f.Result()
			if err == nil {
				return g, nil
			}
			errs[i], cases[i+1].Chan = err, reflect.Value{} // which blocks for ever
			failed++
		}
		if failed == len(futures) {
			break
		}
		if chosen, _, _ := reflect.Select(cases); chosen == 0 {
			return nil, context.Cause(ctx)
		}
	}
	runtime.KeepAlive(futures)
	return nil, errors.Join(errs...)
}

func checkFirst(ctx context.Context, futures []*Future[*Grant]) error {
	if ctx == nil {
		return check.ErrNilContext
	}
	if len(futures) == 0 {
		return check.Invalid("First of no futures: it needs one at least")
	}
	if i := slices.Index(futures, nil); i >= 0 {
		return check.Invalid(fmt.Sprintf("First: future %d of %d is nil", i+1, len(futures)))
	}
	return nil
}

func isDone(f *Future[*Grant]) bool {
	select {
	case <-f.Done():
		return true
	default:
		return false
	}
}
