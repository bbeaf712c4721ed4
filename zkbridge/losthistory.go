package zkbridge

import (
	"context"
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
// The generation itself may go back while zxids do not: an operator writes a smaller number or
// deletes the node, or an ensemble that came back empty gets a backup of greater zxids later. A
// process that has seen the greater generation raises it, for those that have not.

// formerTokens bounds the tokens of a process's former sessions: none is greater than the token of
// this generation and this zxid. A process without former sessions has the zero value.
type formerTokens struct {
	generation uint64
	zxid       int64
}

// add adds a session that is over. Its generation is 0 if it had none, and it has seen no greater
// zxid.
func (f *formerTokens) add(generation uint64, zxid int64) {
	if generation > f.generation {
		*f = formerTokens{generation: generation}
	}
	f.zxid = max(f.zxid, zxid)
}

// isHistoryLost reports whether ZooKeeper has lost transactions that a former session has seen.
// zxid is of the first transaction of the present session, 0 if it is not known.
func (f formerTokens) isHistoryLost(zxid int64) bool { return 0 < zxid && zxid <= f.zxid }

// mustRaise reports whether tokens would go back in a session with this generation and this first
// zxid: those of this process, or, if the generation is less than it was, those of a process that
// starts now.
func (f formerTokens) mustRaise(generation uint64, zxid int64) bool {
	return generation < f.generation || generation == f.generation && f.isHistoryLost(zxid)
}

// noteFirstZxid notes the zxid of the session's first transaction.
func (ep *epoch) noteFirstZxid(zxid int64) {
	ep.firstZxid = zxid
	if former := ep.cfg.Former; former.isHistoryLost(zxid) {
		ep.cfg.Log.Error("ZooKeeper has lost transactions: it came back empty, or from a backup", "epoch", ep.number,
			"zxid", fmt.Sprintf("%#x", zxid), "seen", fmt.Sprintf("%#x", former.zxid),
			"do", "find out what became of the ensemble's data")
	}
}

// raiseGeneration writes a generation to the node, which has a value and is as n shows it, and
// reads the node again.
func (ep *epoch) raiseGeneration(n NodeView, value uint64) {
	if ep.raising {
		return
	}
	why := errors.New("ZooKeeper has lost transactions")
	if former := ep.cfg.Former.generation; value < former {
		why = fmt.Errorf("%s went back from %d to %d", GenerationPath, former, value)
	}
	raised, err := NextGeneration(max(value, ep.cfg.Former.generation))
	if err != nil {
		ep.setNoGeneration(notRaised(why, err))
		return
	}
	ep.raising = true
	op := opOf(generationOp(n, raised, ep.cfg.ACL))
	ep.jobs.Start.AddBlocking(func() func() {
		results, err := multiWithin(ep.client, GenerationDirectory, op)
		if _, cause := zkconn.FirstFailedOp(results); cause != nil {
			err = zkconn.ExplainRight(ep.client, cause, op.Kind.Right, op.Path)
		}
		return func() { ep.onGenerationRaised(raised, why, err) }
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

// WriteGeneration writes the generation's node unless it has changed since it was read as n: then the
// error has zk.ErrBadVersion, zk.ErrNodeExists or zk.ErrNoNode. It creates a missing node, and the
// missing nodes above it, with GenerationACL. Otherwise it is as [Bridge.Multi].
func (b *Bridge) WriteGeneration(ctx context.Context, n NodeView, value uint64) error {
	_, err := b.MultiWithin(ctx, GenerationDirectory, generationOp(n, value, b.cfg.ACL))
	return err
}

// generationOp returns the operation of WriteGeneration.
func generationOp(n NodeView, value uint64, acl []zk.ACL) any {
	data := strconv.AppendUint(nil, value, 10)
	if n.Exists {
		return &zk.SetDataRequest{Path: GenerationPath, Data: data, Version: n.Stat.Version}
	}
	return &zk.CreateRequest{Path: GenerationPath, Data: data, Acl: zkconn.WithPublicRead(acl)}
}

// onGenerationRaised handles the result of raiseGeneration. why is why the generation had to be
// raised.
func (ep *epoch) onGenerationRaised(value uint64, why, err error) {
	ep.raising = false
	switch {
	case err == nil:
		ep.cfg.Log.Warn("the generation of tokens is raised", "generation", value, "why", why,
			"do", "nothing: tokens are greater than all before again")
		ep.readGeneration()
	case zkconn.IsTransient(err):
		ep.RetryLater(ep.readGeneration)
	case errors.Is(err, zk.ErrBadVersion), errors.Is(err, zk.ErrNodeExists), errors.Is(err, zk.ErrNoNode):
		ep.readGeneration() // another process has written the node
	default:
		ep.setNoGeneration(notRaised(why, err))
	}
}

func notRaised(why, err error) error {
	return fmt.Errorf("%w, and the generation is not raised: %w", why, err)
}
