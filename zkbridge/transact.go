package zkbridge

import (
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/epoch"
	"github.com/actorlock/actorlock/zkbridge/internal/reply"
	"github.com/actorlock/actorlock/zkbridge/internal/requests"
)

// transactOutcomes holds the errors of an operation that are an outcome of a Transact.
var transactOutcomes = map[error]messages.Transacted_Outcome{
	zk.ErrNoNode:     messages.Transacted_NO_NODE,
	zk.ErrNodeExists: messages.Transacted_NODE_EXISTS,
	zk.ErrNotEmpty:   messages.Transacted_NOT_EMPTY,
}

// startTransact starts a Transact when the session is ready. done gets the generation, which is in force
// until the session ends.
func startTransact(ep *epoch.Epoch, t *transaction, done *messages.Transacted) {
	ep.WhenReady(func() {
		var missing error
		if done.Generation, missing = ep.Tokens(); missing != nil {
			done.NoGeneration = requests.ReasonOf(missing)
		}
		t.startIn(ep, ep.Jobs().Singles)
	})
}

// answerTransact answers a Transact by done, which has the generation, or by the error.
func answerTransact(to reply.To, done *messages.Transacted, results []zk.MultiResponse, err error) {
	for _, r := range results {
		if r.Stat != nil {
			done.Czxid = r.Stat.Czxid
		}
	}
	if failed, is := errors.AsType[*OpError](err); is {
		done.Op = uint32(failed.Index)
		done.Outcome = transactOutcomes[failed.Err]
	}
	if err != nil && done.Outcome == messages.Transacted_DONE {
		to.Fail(requests.ReasonOf(err), err.Error())
		return
	}
	to.Tell(done)
}
