package actors

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
)

// Revoke asks the holder whose node it is to release: a node's path as Grant.Node gives
// it, on any session and of any library. It writes what Curator's Revoker does; this
// library's holders hear of it by Grant.Revoked, and what WithData gave them is written
// back; Curator's hear of it by makeRevocable. A node that is gone needs no asking.
//
// With grace 0 that is all. Otherwise it blocks until the node is gone, and if that
// takes longer than grace, deletes it: broken tells that. Then the holder has lost the
// lock, as it learns within about two seconds (ErrNodeDeleted), and another may have it
// before: only tokens keep the former from doing harm. When ctx ends the node is left.
//
// The errors are those of Multi and of ctx, ErrSuspended if there is no connection to
// ZooKeeper for what is to be sent, and ErrInvalid.
func (l *Locks) Revoke(ctx context.Context, node string, grace time.Duration) (broken bool, err error) {
	return l.manager.revoke(ctx, node, grace)
}

func (m *manager) revoke(ctx context.Context, node string, grace time.Duration) (broken bool, err error) {
	directory, name := split(node)
	if !queue.IsContender(name) {
		return false, invalid(fmt.Sprintf("node %q: it must be the path of a contender's node, as Grant.Node gives it", node))
	}
	if grace < 0 {
		return false, invalid(fmt.Sprintf("grace %v: it must be positive, or 0 for asking only", grace))
	}
	there, err := m.repeat(ctx, &zk.SetDataRequest{Path: node, Data: []byte(queue.RevokeData), Version: -1})
	if err != nil || !there || grace == 0 {
		return false, err
	}
	patience, cancel := context.WithTimeoutCause(ctx, grace, errGraceOver)
	defer cancel()
	err = m.awaitNodeDeleted(patience, directory, name)
	if errors.Is(err, errGraceOver) {
		return m.repeat(ctx, &zk.DeleteRequest{Path: node, Version: -1})
	}
	if err != nil && ctx.Err() != nil {
		err = m.zk.explain(err)
	}
	return false, err
}

var errGraceOver = errors.New("the grace is over")

// repeat performs an operation on a node that may be done twice. It tells if it was
// done; if not, the node is gone. It does not begin without a connection. What went with
// the connection it repeats over the next one, unless the session is lost before.
func (m *manager) repeat(ctx context.Context, op any) (done bool, err error) {
	perform := m.zk.Multi
	for {
		_, err := perform(ctx, op)
		perform = m.zk.Bridge.Multi
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, messages.Reason_OUTCOME_UNKNOWN) && ctx.Err() == nil:
			done = true // perhaps: then it is so if the node is gone now
		case errors.Is(err, zk.ErrNoNode):
			return done, nil
		default:
			return false, err
		}
	}
}

// awaitNodeDeleted blocks until a node is gone.
func (m *manager) awaitNodeDeleted(ctx context.Context, directory, node string) error {
	d := &nodeDeletion{bridge: m.bridge, directory: directory, node: node, deleted: ask.NewPromise[struct{}](nil)}
	m.bridge.SendSubscribe(&messages.Subscribe{}, d)
	defer m.bridge.SendUnsubscribe(&messages.Unsubscribe{}, d)
	_, err := d.deleted.Future().Wait(ctx)
	return err
}

// nodeDeletion waits for a node to go. The bridge tells it one thing after the other.
type nodeDeletion struct {
	bridge          messages.BridgeRef
	directory, node string
	deleted         *ask.Promise[struct{}]
	epoch           uint64
}

// Tell hears of the session and of the node. It implements ask.Recipient.
func (d *nodeDeletion) Tell(msg any) {
	switch msg := msg.(type) {
	case *messages.SessionChanged:
		if msg.State == messages.SessionState_SHUT {
			d.deleted.Complete(struct{}{}, &messages.Lost{Reason: messages.Reason_CLOSED, Detail: d.directory})
		} else if msg.State == messages.SessionState_CONNECTED && msg.Epoch != d.epoch {
			d.epoch = msg.Epoch
			d.watch()
		}
	case *messages.Watched:
		if len(msg.Gone) > 0 {
			d.deleted.Complete(struct{}{}, nil)
		}
	case *messages.Wake:
		if msg.Deleted {
			d.deleted.Complete(struct{}{}, nil)
		} else {
			d.watch()
		}
	case *messages.Failed:
		if msg.Reason != messages.Reason_SESSION_LOST { // then there will be another
			d.deleted.Complete(struct{}{}, msg)
		}
	}
}

func (d *nodeDeletion) watch() {
	d.bridge.SendWatch(&messages.Watch{Epoch: d.epoch, Directory: d.directory, Nodes: []string{d.node}}, d)
}

// RevokeHolders is Locks.Revoke for all who hold the lock at the moment, by this
// handle's rule: one for a mutex, perhaps several readers, all leases of a semaphore. It
// tells how many of them it has deleted. It asks them all before it waits, and waits for
// them together.
func (h *handle) RevokeHolders(ctx context.Context, grace time.Duration) (broken int, err error) {
	all, err := h.Participants(ctx)
	if err != nil {
		return 0, err
	}
	var n atomic.Int32
	var g errgroup.Group
	for _, p := range all {
		if !p.Holds {
			continue
		}
		g.Go(func() error {
			was, err := h.manager.revoke(ctx, p.Node, grace)
			if was {
				n.Add(1)
			}
			return err
		})
	}
	err = g.Wait()
	return int(n.Load()), err
}
