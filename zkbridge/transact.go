package zkbridge

import (
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/reply"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

// transactOutcomes holds the errors of an operation that are an outcome of a Transact.
var transactOutcomes = map[error]messages.Transacted_Outcome{
	zk.ErrNoNode:     messages.Transacted_NO_NODE,
	zk.ErrNodeExists: messages.Transacted_NODE_EXISTS,
	zk.ErrNotEmpty:   messages.Transacted_NOT_EMPTY,
}

// answerTransact answers a Transact. An answer with a czxid waits until the generation at the czxid
// is known, or until it is known why the generation is not.
func (a *bridgeActor) answerTransact(to reply.To, results []zk.MultiResponse, err error) {
	done := &messages.Transacted{Id: to.ID, Epoch: to.Epoch}
	for _, r := range results {
		if r.Stat != nil {
			done.Czxid = r.Stat.Czxid
		}
	}
	if failed, is := errors.AsType[*OpError](err); is {
		done.Op = uint32(failed.Index)
		done.Outcome = transactOutcomes[failed.Err]
	}
	switch {
	case err != nil && done.Outcome == messages.Transacted_DONE:
		to.Fail(reasonOf(err), err.Error())
	case done.Czxid != 0:
		ep := a.epoch
		ep.addOpen(&to)
		ep.WithGeneration(done.Czxid, func(generation uint64, why messages.Reason, _ string) {
			done.Generation, done.NoGeneration = generation, why
			ep.Answer(&to, done)
		})
	default:
		to.Tell(done)
	}
}

// reasonOf returns the Reason in an error of the bridge, or the Reason for an error of ZooKeeper.
func reasonOf(err error) messages.Reason {
	if failure, is := errors.AsType[*messages.Failed](err); is {
		return failure.Reason
	}
	if why, is := errors.AsType[messages.Reason](err); is {
		return why
	}
	return zkconn.ReasonFor(err)
}
