package zkbridge

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/epoch"
	"github.com/actorlock/actorlock/zkbridge/internal/jobs"
	"github.com/actorlock/actorlock/zkbridge/internal/requests"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

// Result is the result of one operation of a transaction: the path of a node that was created in
// String, the Stat of a node whose data was set.
type Result = zk.MultiResponse

// CheckNode returns the operation that lets a transaction fail unless the node exists.
func CheckNode(path string) any {
	return &zk.CheckVersionRequest{Path: path, Version: zkconn.AnyVersion}
}

// Multi executes ops, go-zookeeper's *zk.CreateRequest, *zk.DeleteRequest, *zk.SetDataRequest and
// *zk.CheckVersionRequest, as one transaction of the present session: all of them or none, and
// nothing else among them. The results are in the order of ops. Multi keeps a copy of ops and
// leaves them as they are. A create without an ACL has the ACL of [Config].
//
// Multi blocks until the transaction is answered, until ctx ends or until the session is lost. It
// waits while the session is SUSPENDED, unless the bridge is one of FailFast. The errors, beside the
// context's own:
//   - [*OpError]: an operation failed, and so nothing was executed.
//   - [messages.Reason_OUTCOME_UNKNOWN]: the transaction was sent, and the answer is lost, or ctx has
//     ended. It was executed or not, or may still be. It is not sent again.
//   - [messages.Reason_SESSION_LOST], [messages.Reason_CLOSED]: there is no session, or it was lost
//     before the transaction was sent.
//   - [messages.Reason_INVALID]: ops cannot be sent. The error names the operation.
//   - [messages.Reason_LIMIT_EXCEEDED]: see Config.MaxOutstanding.
//
// Only after OUTCOME_UNKNOWN may anything have been executed. An actor must not call Multi.
func (b *internals) Multi(ctx context.Context, ops ...any) ([]zk.MultiResponse, error) {
	return b.multi(ctx, b.Session().Epoch, "", ops)
}

// MultiWithin is Multi for nodes in a directory: if a node is missing it creates the directory
// unless that exists, and the missing nodes above it, and tries ops once more. After an error the
// directory may exist.
func (b *internals) MultiWithin(ctx context.Context, directory string, ops ...any) ([]zk.MultiResponse, error) {
	return b.multi(ctx, b.Session().Epoch, directory, ops)
}

// MultiIn is Multi for the session of one epoch, such as the epoch of a grant. In any other session
// it fails with [messages.Reason_SESSION_LOST] and sends nothing.
func (b *internals) MultiIn(ctx context.Context, epoch uint64, ops ...any) ([]zk.MultiResponse, error) {
	return b.multi(ctx, epoch, "", ops)
}

func (b *internals) multi(ctx context.Context, epoch uint64, within string, ops []any) ([]zk.MultiResponse, error) {
	return b.execute(ctx, epoch, within, func() ([]zkconn.Op, error) { return opsOf(ops) })
}

func (b *internals) execute(ctx context.Context, epoch uint64, within string, ops func() ([]zkconn.Op, error)) ([]zk.MultiResponse, error) {
	if ctx == nil {
		return nil, errNilContext
	}
	if ctx.Err() != nil {
		return nil, b.explained(ctx, fmt.Errorf("zkbridge: transaction was not sent: %w", context.Cause(ctx)))
	}
	copies, err := ops()
	if err == nil {
		err = checkTransaction(copies, within, b.cfg)
	}
	if err != nil {
		return nil, fmt.Errorf("zkbridge: %w: %w", messages.Reason_INVALID, err)
	}
	result := ask.NewPromise[[]zk.MultiResponse](nil)
	t := &transaction{Call: b.callIn(epoch), ops: copies, within: within, deliver: func(results []zk.MultiResponse, err error) { result.Complete(results, err) }}
	b.ref.Tell(t)
	if !result.Await(ctx) {
		result.Complete(nil, t.abandon(context.Cause(ctx))) // unless the result has come just now
		b.withdraw(t)
	}
	results, err := result.Take()
	return results, b.explained(ctx, err)
}

// OpError is the operation because of which ZooKeeper did not execute a transaction. It wraps
// go-zookeeper's error, and [messages.Reason_NO_AUTH] if a right is missing, or
// [messages.Reason_LIMIT_EXCEEDED] if a quota of ZooKeeper is used up.
type OpError struct {
	Index int    // of the operation, from 0
	Kind  string // "create", "delete", "set" or "check"
	Path  string
	Err   error
}

func (e *OpError) Error() string {
	return fmt.Sprintf("zkbridge: operation %d of the transaction, %s %s: %v", e.Index, e.Kind, e.Path, e.Err)
}

// Unwrap returns the errors that errors.Is looks at.
func (e *OpError) Unwrap() []error {
	if why := zkconn.ReasonFor(e.Err); why == messages.Reason_NO_AUTH || why == messages.Reason_LIMIT_EXCEEDED {
		return []error{e.Err, why}
	}
	return []error{e.Err}
}

// transaction is a Multi, a Transact or a write of the generation that is not answered. The caller
// and the actor decide by its phase, without waiting for each other, whether the bridge still sends
// it.
type transaction struct {
	requests.Call
	ops     []zkconn.Op
	within  string // see Transact.directory
	phase   atomic.Int32
	deliver func([]zk.MultiResponse, error)
}

const (
	phaseWaiting = iota // not sent
	phaseSent           // sent, or will be at once
	phaseOver           // not sent, nor will it be
)

// Start implements requests.Waited, for a Multi.
func (t *transaction) Start(ep requests.InEpoch) { t.startIn(ep, ep.Jobs().Calls) }

func (t *transaction) startIn(ep requests.InEpoch, in *jobs.Jobs) {
	in.AddBlocking(func() func() {
		if !t.phase.CompareAndSwap(phaseWaiting, phaseSent) {
			return func() {}
		}
		results, err := epoch.MultiWithin(ep.Client(), t.within, t.ops...)
		return func() { t.handleResult(ep, in, results, err) }
	})
}

func (t *transaction) handleResult(ep requests.InEpoch, in *jobs.Jobs, results []zk.MultiResponse, err error) {
	if err == nil && len(results) == len(t.ops) {
		t.finish(ep, results, nil)
		return
	}
	if i, cause := zkconn.FirstFailedOp(results); i >= 0 && len(results) == len(t.ops) {
		op := t.ops[i]
		t.finish(ep, nil, &OpError{Index: i, Kind: op.Kind.Name, Path: op.Path, Err: zkconn.ExplainRight(ep.Client(), cause, op.Kind.Right, op.Path)})
		return
	}
	if err == nil {
		err = zk.ErrAPIError // an answer for another number of operations
	}
	switch outcome, why := zkconn.Classify(err); outcome {
	case zkconn.Refused:
		t.finish(ep, nil, fmt.Errorf("zkbridge: transaction: %w: %w", why, err))
	case zkconn.NotSent:
		// A caller that has been told OUTCOME_UNKNOWN has set the phase: the transaction is not
		// sent again.
		if t.phase.CompareAndSwap(phaseSent, phaseWaiting) {
			ep.RetryLater(func() { t.startIn(ep, in) })
		}
	default:
		t.finish(ep, nil, outcomeUnknown(err))
	}
}

func (t *transaction) finish(ep requests.InEpoch, results []zk.MultiResponse, err error) {
	ep.Close(t)
	t.deliver(results, err)
}

// Fail implements reply.Failer: the epoch is over, or was before the transaction came, or the
// transaction does not wait for a connection.
func (t *transaction) Fail(why messages.Reason, detail string) {
	t.deliver(nil, t.abandon(&messages.Failed{Epoch: t.Epoch, Reason: why, Detail: detail}))
}

// abandon returns the error for a caller that does not wait any longer. The transaction is not sent
// any more.
func (t *transaction) abandon(cause error) error {
	if t.phase.Swap(phaseOver) == phaseSent {
		return outcomeUnknown(cause)
	}
	return fmt.Errorf("zkbridge: transaction was not sent: %w", cause)
}

func outcomeUnknown(cause error) error {
	return fmt.Errorf("zkbridge: transaction: %w: %w", messages.Reason_OUTCOME_UNKNOWN, cause)
}
