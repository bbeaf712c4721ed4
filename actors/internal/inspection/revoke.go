package inspection

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/actorlock/actorlock/actors/internal/check"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
	"github.com/actorlock/actorlock/zkbridge/zkpath"
)

// revoke asks the holder with the node at the path to release, and deletes a node that still exists after
// the grace, if that is not 0. It reports whether it has deleted the node; otherwise the node is gone
// anyway.
func (t *Target) revoke(ctx context.Context, grace time.Duration) (broken bool, err error) {
	bridge, node := t.Manager.Bridge, t.Path
	directory, name := zkpath.Split(node)
	if !queue.IsContender(name) {
		return false, check.Invalid(fmt.Sprintf("node %q: it must be the path of a contender's node, as Grant.Node gives it", node))
	}
	if grace < 0 {
		return false, check.Invalid(fmt.Sprintf("grace %v: it must be positive, or 0 for asking only", grace))
	}
	exists, err := repeat(ctx, bridge, &zk.SetDataRequest{Path: node, Data: []byte(queue.RevokeData), Version: -1})
	if err != nil || !exists || grace == 0 {
		return false, err
	}
	graceCtx, cancel := context.WithTimeoutCause(ctx, grace, errGraceOver)
	defer cancel()
	err = awaitDeleted(graceCtx, bridge.Ref(), directory, name)
	if errors.Is(err, errGraceOver) {
		return repeat(ctx, bridge, &zk.DeleteRequest{Path: node, Version: -1})
	}
	if err != nil && ctx.Err() != nil {
		err = bridge.Explain(err)
	}
	return false, err
}

var errGraceOver = errors.New("the grace is over")

// repeat performs an operation on a node that may be done twice. It reports whether the
// operation was done; otherwise the node is gone. It does not begin without a connection. An
// operation that was lost with the connection it repeats over the next one, unless the session
// is lost before: the error then has OUTCOME_UNKNOWN, since the operation may have been done.
func repeat(ctx context.Context, bridge zkbridge.Internals, op any) (done bool, err error) {
	var unknown error
	for {
		_, err := bridge.Multi(ctx, op)
		bridge = bridge.FailFast(false)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, messages.Reason_OUTCOME_UNKNOWN) && ctx.Err() == nil:
			unknown = err // it was done if the node is gone now
		case errors.Is(err, zk.ErrNoNode):
			return unknown != nil, nil
		case unknown != nil:
			return false, fmt.Errorf("%w; then %w", unknown, err)
		default:
			return false, err
		}
	}
}

// awaitDeleted blocks until a node is gone.
func awaitDeleted(ctx context.Context, bridge messages.BridgeRef, directory, node string) error {
	w := &deletionWatch{bridge: bridge, directory: directory, node: node, deleted: ask.NewPromise[struct{}](nil)}
	bridge.SendSubscribe(&messages.Subscribe{}, w)
	defer bridge.SendUnsubscribe(&messages.Unsubscribe{}, w)
	_, err := w.deleted.Future().Wait(ctx)
	return err
}

// deletionWatch waits for the deletion of a node. The bridge calls Tell for one message after
// the other.
type deletionWatch struct {
	messages.IgnoreBridgeClient[struct{}]
	bridge          messages.BridgeRef
	directory, node string
	deleted         *ask.Promise[struct{}]
	epoch           uint64
}

// Tell implements ask.Recipient, for messages about the session and the node.
func (w *deletionWatch) Tell(msg any) { messages.DispatchBridgeClient(w, struct{}{}, msg, nil) }

func (w *deletionWatch) watch() {
	w.bridge.SendWatch(&messages.Watch{Epoch: w.epoch, Directory: w.directory, Nodes: []string{w.node}}, w)
}

// SessionChanged implements messages.BridgeClientHandler.
func (w *deletionWatch) SessionChanged(_ struct{}, msg *messages.SessionChanged) {
	switch {
	case msg.State == messages.SessionState_ENDED:
		w.deleted.Complete(struct{}{}, &messages.Lost{Reason: messages.Reason_CLOSED, Detail: w.directory})
	case msg.State == messages.SessionState_CONNECTED && msg.Epoch != w.epoch:
		w.epoch = msg.Epoch
		w.watch()
	}
}

// Watched implements messages.BridgeClientHandler.
func (w *deletionWatch) Watched(_ struct{}, msg *messages.Watched) {
	if len(msg.Gone) > 0 {
		w.deleted.Complete(struct{}{}, nil)
	}
}

// Wake implements messages.BridgeClientHandler.
func (w *deletionWatch) Wake(_ struct{}, msg *messages.Wake) {
	if msg.Deleted {
		w.deleted.Complete(struct{}{}, nil)
	} else {
		w.watch()
	}
}

// Failed implements messages.BridgeClientHandler. After the loss of a session it waits for the
// next one.
func (w *deletionWatch) Failed(_ struct{}, msg *messages.Failed) {
	if msg.Reason != messages.Reason_SESSION_LOST {
		w.deleted.Complete(struct{}{}, msg)
	}
}

// revokeHolders is revoke for those contenders that hold, all at once. It returns how many nodes it
// has deleted.
func (t *Target) revokeHolders(ctx context.Context, grace time.Duration) (broken int, err error) {
	all, err := t.contenders(ctx)
	if err != nil {
		return 0, err
	}
	var n atomic.Int32
	var g errgroup.Group
	for _, c := range all {
		if !c.Holds {
			continue
		}
		g.Go(func() error {
			was, err := (&Target{Manager: t.Manager, Path: c.Node}).revoke(ctx, grace)
			if was {
				n.Add(1)
			}
			return err
		})
	}
	err = g.Wait()
	return int(n.Load()), err
}
