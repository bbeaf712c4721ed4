package requests

import (
	"context"
	"errors"
	"fmt"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/jobs"
	"github.com/actorlock/actorlock/zkbridge/internal/watches"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
	"github.com/actorlock/actorlock/zkbridge/zkpath"
)

// Read is a Waited that only reads. The bridge may send it again at any time.
type Read[T any] struct {
	Call
	Ctx    context.Context
	Result *ask.Promise[T]
	Path   string // for errors
	Survey bool   // it may read many nodes
	// Watcher gets a Wake for the watch on the names in Path that Do sets, if it is not nil.
	Watcher ask.Recipient
	Barrier string // a directory, or NoBarrier: nothing that is older than the call is read in it
	Do      func(zkconn.Client, jobs.ReadSlots) (T, error)

	hangUps zkconn.HangUps
	watcher *watches.Watcher // not nil if Watcher is not, while the read is under way
}

// NoBarrier is in the place of a barrier's directory.
const NoBarrier = ""

// Start implements Waited.
func (r *Read[T]) Start(ep InEpoch) {
	if r.Watcher != nil { // before the read is sent: the event may come before the answer
		r.watcher = ep.Watches().Add(r.Watcher, zkpath.Children(r.Path))
	}
	in := ep.Jobs().Calls
	if r.Survey {
		in = ep.Jobs().Surveys
	}
	in.AddBlocking(func() func() {
		value, err := r.behindBarrier(ep.Client(), in.Slots)
		return func() { r.handleResult(ep, value, err) }
	})
}

func (r *Read[T]) behindBarrier(c zkconn.Client, s jobs.ReadSlots) (value T, err error) {
	if err = context.Cause(r.Ctx); err != nil {
		return value, err
	}
	barrier := func() error { return nil }
	if r.Barrier != NoBarrier {
		barrier = zkconn.SendBarrier(c, r.Barrier)
	}
	value, err = r.Do(c, s) // which is answered behind the barrier
	if passed := barrier(); passed != nil && !zkconn.IsMissing(passed) {
		err = zkconn.ExplainRight(c, passed, "READ", r.Barrier)
	}
	return value, err
}

func (r *Read[T]) handleResult(ep InEpoch, value T, err error) {
	ep.Watches().OnRead(r.watcher, err == nil)
	if !ep.IsOpen(r) {
		return // the caller has stopped waiting
	}
	if zkconn.IsMissing(err) { // the directory, and all its nodes
		err = nil
	}
	if err != nil && !errors.Is(err, messages.Reason_LIMIT_EXCEEDED) { // otherwise it has its reason
		if err = retryRead(ep, &r.hangUps, err, func() { r.Start(ep) }); err == nil {
			return
		}
		why := zkconn.ReasonFor(err)
		err = fmt.Errorf("zkbridge: look at %s: %w: %w", r.Path, why, err)
	}
	ep.Close(r)
	r.Result.Complete(value, err)
}

// Fail implements reply.Failer.
func (r *Read[T]) Fail(why messages.Reason, detail string) {
	var none T
	r.Result.Complete(none, fmt.Errorf("zkbridge: look at %s: %w", r.Path,
		&messages.Failed{Epoch: r.Epoch, Reason: why, Detail: detail}))
}
