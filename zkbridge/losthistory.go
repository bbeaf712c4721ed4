package zkbridge

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

// An ensemble may come back empty, or from a backup. Its transactions then have lower zxids than
// before, and so would the tokens. A server refuses a session that has seen a later zxid, but not a
// new one. The first transaction of a session goes through the leader, so its zxid is greater than
// each that a former session has seen, or history was lost. Then the bridge raises the generation
// before any lock is granted, unless another process has done so. Without the right to do it the
// bridge refuses all creates.
//
// The generation itself may go back while zxids do not: an ensemble that came back empty gets a
// backup of greater zxids later. A process that has seen the greater generation raises it, for
// those that have not.

// onFirstZxid notes the zxid of a transaction of the session.
func (ep *epoch) onFirstZxid(zxid int64) {
	if zxid <= 0 || zxid >= ep.firstZxid {
		return
	}
	ep.firstZxid = zxid
	if g := &ep.actor.generations; g.isHistoryLost(zxid) {
		ep.actor.cfg.Log.Error("ZooKeeper has lost transactions: it came back empty, or from a backup", "epoch", ep.number,
			"zxid", fmt.Sprintf("%#x", zxid), "seen", fmt.Sprintf("%#x", g.formerZxid),
			"do", "find out what became of the ensemble's data")
	}
}

// raiseGeneration writes a generation to the node, which n shows, and reads the node again.
// wentBack says, if it is no error of the zxids, what is wrong with the node.
func (ep *epoch) raiseGeneration(n NodeView, wentBack error) {
	ep.generationReading = true
	g := &ep.actor.generations
	if g.isStale(ep.firstZxid) {
		g.changed() // creates wait for the read
	}
	value, err := uint64(0), error(nil)
	if n.Exists {
		_, err = ParseGeneration(n.Data)
	}
	if err == nil {
		value, err = NextGeneration(max(g.formerGeneration, g.present()))
	}
	if err != nil {
		ep.onGenerationRaised(value, wentBack, err)
		return
	}
	ep.startQueue.addBlocking(func() func() {
		err := ep.writeGeneration(n, value)
		return func() { ep.onGenerationRaised(value, wentBack, err) }
	})
}

// NextGeneration returns the generation above one: the present Unix time in seconds, or one more if
// the generation is not below that. The error is INVALID if the generation is the greatest.
func NextGeneration(was uint64) (uint64, error) {
	if was == math.MaxUint64 {
		return 0, fmt.Errorf("zkbridge: %w: generation %d: it is the greatest, and cannot be raised", messages.Reason_INVALID, was)
	}
	return max(was+1, uint64(max(time.Now().Unix(), 0))), nil
}

// writeGeneration writes the node unless it has changed since it was read as n. An error names the
// right that is missing.
func (ep *epoch) writeGeneration(n NodeView, value uint64) error {
	op := zkconn.Op{Kind: zkconn.OpCreate, Path: GenerationPath, Data: strconv.AppendUint(nil, value, 10), ACL: ep.actor.bridge.GenerationACL()}
	if n.Exists {
		op.Kind, op.Version = zkconn.OpSet, n.Stat.Version
	}
	results, err := zkconn.Multi(ep.client, op)
	if _, cause := zkconn.FirstFailedOp(results); cause != nil {
		err = cause
	}
	if zkconn.IsMissing(err) && !n.Exists {
		if err = zkconn.MakeDirectory(ep.client.WithPublicRead(), homeDirectory); err == nil {
			return zk.ErrNoNode // it is tried again
		}
	}
	return zkconn.ExplainRight(ep.client, err, op.Kind.Right, op.Path)
}

// onGenerationRaised handles the result of raiseGeneration.
func (ep *epoch) onGenerationRaised(value uint64, wentBack, err error) {
	ep.generationReading = false
	switch {
	case err == nil:
		ep.actor.cfg.Log.Warn("the generation of tokens is raised", "generation", value,
			"why", cmp.Or(wentBack, errors.New("ZooKeeper has lost transactions")),
			"do", "nothing: tokens are greater than all before again")
		ep.readGeneration()
	case zkconn.IsTransient(err):
		ep.RetryLater(ep.readGeneration)
	case errors.Is(err, zk.ErrBadVersion), errors.Is(err, zk.ErrNodeExists), errors.Is(err, zk.ErrNoNode):
		ep.readGeneration() // another process has written the node
	case !ep.actor.generations.isStale(ep.firstZxid):
		ep.useGeneration(fmt.Errorf("%w; it is not raised: %w", wentBack, err))
	default:
		ep.setGenerationError(fmt.Errorf("ZooKeeper has lost transactions, and the generation is not raised: %w", err))
	}
}
