package actors

import (
	"context"
	"fmt"

	"github.com/actorlock/actorlock/actors/internal/check"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
)

func newAcquisition(h *handle) (*acquisition, *ask.Promise[*Grant]) {
	a := &acquisition{handle: h, unarmed: true}
	return a, ask.NewPromise[*Grant](a)
}

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
		if err := option(a.msg); err != nil {
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
