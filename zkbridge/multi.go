package zkbridge

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

// Multi performs ops, go-zookeeper's *zk.CreateRequest, *zk.DeleteRequest,
// *zk.SetDataRequest and *zk.CheckVersionRequest, as one transaction of the
// present session: all of them or none, and with nothing else among them. It
// blocks until that is done, ctx ends or the session is lost; while the session is
// SUSPENDED it waits. The results are in the order of ops. It keeps a copy of ops
// and leaves them as they are. A create without an ACL has that of [Config].
//
// The errors, beside the context's own:
//   - [*OpError]: an operation failed, and so nothing was executed.
//   - [messages.Reason_OUTCOME_UNKNOWN]: the transaction was sent, and the answer
//     is lost, or the wait for it is over. It was executed or not, or may still
//     be. It is not sent again.
//   - [messages.Reason_SESSION_LOST], [messages.Reason_CLOSED]: there is no session,
//     or it was lost before the transaction was sent.
//   - [messages.Reason_INVALID]: ops cannot be sent. It names the operation.
//   - [messages.Reason_LIMIT_EXCEEDED]: see Config.MaxOutstanding.
//
// Only after OUTCOME_UNKNOWN may anything have been executed. An actor must not
// call it.
func (b *Bridge) Multi(ctx context.Context, ops ...any) ([]zk.MultiResponse, error) {
	return b.MultiIn(ctx, b.Session().Epoch, ops...)
}

// MultiIn is Multi for the session of one epoch, such as that of a grant: in any
// other session it fails with [messages.Reason_SESSION_LOST], and nothing is sent.
func (b *Bridge) MultiIn(ctx context.Context, epoch uint64, ops ...any) ([]zk.MultiResponse, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("zkbridge: transaction was not sent: %w", context.Cause(ctx))
	}
	copies, err := copyOps(ops, b.cfg.ACL, b.cfg.Root)
	if err != nil {
		return nil, fmt.Errorf("zkbridge: %w: %w", messages.Reason_INVALID, err)
	}
	c := newCall[[]zk.MultiResponse](epoch)
	t := &transaction{epoch: epoch, ops: copies, deliver: c.deliver}
	b.ref.Tell(t)
	select {
	case r := <-c.done:
		return r.value, r.err
	case <-ctx.Done():
		return t.stopWaiting(b, c, context.Cause(ctx))
	}
}

// OpError tells because of which operation a transaction was not executed. It wraps
// go-zookeeper's error, and [messages.Reason_NO_AUTH] where a right is missing.
type OpError struct {
	Index int    // of the operation, from 0
	Kind  string // "create", "delete", "set" or "check"
	Path  string
	Err   error
}

func (e *OpError) Error() string {
	return fmt.Sprintf("zkbridge: operation %d of the transaction, %s %s: %v", e.Index, e.Kind, e.Path, e.Err)
}

// Unwrap gives what errors.Is looks for.
func (e *OpError) Unwrap() []error {
	if errors.Is(e.Err, zk.ErrNoAuth) {
		return []error{e.Err, messages.Reason_NO_AUTH}
	}
	return []error{e.Err}
}

// transaction is a Multi or Transact that is not answered. Its caller and the bridge
// decide by its phase, without waiting for each other, whether it is still sent.
type transaction struct {
	epoch   uint64
	ops     []any
	within  string // see Transact.directory
	phase   atomic.Int32
	deliver func([]zk.MultiResponse, error)
}

func (t *transaction) forEpoch() uint64 { return t.epoch }

const (
	phaseWaiting = iota // not sent
	phaseSent           // sent, or will be at once
	phaseOver           // not sent, nor will it be
)

func (t *transaction) start(ep *epoch) {
	ep.singles.addBlocking(func() func() {
		if !t.phase.CompareAndSwap(phaseWaiting, phaseSent) {
			return func() {}
		}
		results, err := t.send(ep.client)
		return func() { t.handleResult(ep, results, err) }
	})
}

// send does not send again what was executed, or may have been.
func (t *transaction) send(c zkconn.Client) ([]zk.MultiResponse, error) {
	results, err := zkconn.Multi(c, t.ops...)
	if _, cause := zkconn.FirstFailedOp(results); t.within == "" || !errors.Is(cause, zk.ErrNoNode) {
		return results, err
	}
	if _, err := zkconn.MakeDirectory(c, t.within); err != nil {
		return nil, err
	}
	return zkconn.Multi(c, t.ops...)
}

func (t *transaction) handleResult(ep *epoch, results []zk.MultiResponse, err error) {
	if err == nil && len(results) == len(t.ops) {
		t.finish(ep, results, nil)
		return
	}
	if i, cause := zkconn.FirstFailedOp(results); i >= 0 && len(results) == len(t.ops) {
		d := describe(t.ops[i])
		t.finish(ep, nil, &OpError{Index: i, Kind: d.kind, Path: d.path, Err: d.right.Explain(cause)})
		return
	}
	if err == nil {
		err = zk.ErrAPIError // a reply for another number of operations
	}
	switch what, why := zkconn.Classify(err); what {
	case zkconn.Refused:
		t.finish(ep, nil, fmt.Errorf("zkbridge: transaction: %w: %w", why, err))
	case zkconn.NotSent:
		// Unless its caller was told that the outcome is unknown: then it stays so.
		if t.phase.CompareAndSwap(phaseSent, phaseWaiting) {
			ep.retryLater(func() { t.start(ep) })
		}
	default:
		t.finish(ep, nil, unknown(err))
	}
}

func (t *transaction) finish(ep *epoch, results []zk.MultiResponse, err error) {
	delete(ep.open, t)
	t.deliver(results, err)
}

// fail implements request: the epoch is over, or was before it came.
func (t *transaction) fail(why messages.Reason, detail string) {
	failure := &messages.Failed{Epoch: t.epoch, Reason: why, Detail: detail}
	if t.phase.CompareAndSwap(phaseWaiting, phaseOver) {
		t.deliver(nil, fmt.Errorf("zkbridge: transaction was not sent: %w", failure))
		return
	}
	t.deliver(nil, unknown(errors.New(failure.Error())))
}

// stopWaiting is for a caller that waits no longer.
func (t *transaction) stopWaiting(b *Bridge, c call[[]zk.MultiResponse], cause error) ([]zk.MultiResponse, error) {
	was := t.phase.Swap(phaseOver)
	select {
	case r := <-c.done: // it came just now
		return r.value, r.err
	default:
	}
	b.withdraw(t)
	if was == phaseSent {
		return nil, unknown(cause)
	}
	return nil, fmt.Errorf("zkbridge: transaction was not sent: %w", cause)
}

func unknown(cause error) error {
	return fmt.Errorf("zkbridge: transaction: %w: %w", messages.Reason_OUTCOME_UNKNOWN, cause)
}
