package writer

import (
	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

// onFailure handles a batch that failed, or whose answer is incomplete.
func (w *Writer) onFailure(b *batch) {
	results, err := b.results, b.err
	if i, cause := zkconn.FirstFailedOp(results); i >= 0 && len(results) == len(b.ops) {
		w.onOpFailure(b, i, cause)
		return
	}
	if err == nil {
		err = zk.ErrAPIError // an answer to something else
	}
	switch outcome, why := zkconn.Classify(err); {
	case outcome == zkconn.Refused && len(regrouped(b.writes)) == 1:
		w.onRefused(b.writes[0], why, err)
	case outcome == zkconn.Refused: // because of one of them, but the server does not say which
		for _, failed := range b.writes {
			failed.setFailures(maxFailures)
		}
		w.requeue(regrouped(b.writes))
	case outcome == zkconn.NotSent:
		w.retryUnsent(regrouped(b.writes))
	default:
		w.onOutcomeUnknown(b, err)
	}
}

// onOpFailure handles operation i, because of which ZooKeeper has executed nothing. All other
// requests go again.
func (w *Writer) onOpFailure(b *batch, i int, err error) {
	if i == len(b.writes) {
		w.epoch.SessionNodeFailed(err)
		w.requeue(regrouped(b.writes))
		return
	}
	failed := b.writes[i]
	if failed.create != nil && zkconn.IsMissing(err) {
		w.onMissingDirectory(b, i)
		return
	}
	var others []write
	for _, each := range regrouped(b.writes) {
		if each.contains(failed) {
			w.onRefused(failed, zkconn.ReasonFor(err), err)
			continue
		}
		each.setFailures(each.failures() + 1)
		others = append(others, each)
	}
	w.requeue(others)
}

// onRefused ends a write of a batch that ZooKeeper refuses, and the atomic create that it is part of.
func (w *Writer) onRefused(refused write, why messages.Reason, err error) {
	switch c, r := refused.create, refused.release; {
	case r != nil && zkconn.IsMissing(err):
		w.released(r, r.unknownSince.IsZero()) // otherwise an earlier delete may have deleted the node
	case r != nil:
		w.onReleaseRefused(r, err)
	case zkconn.IsMissing(err):
		w.waitForDirectory(c.directory, true, regrouped([]write{refused}))
	default:
		w.fail(regrouped([]write{refused})[0], why, zkconn.ExplainRight(err, "CREATE", c.path()))
	}
}

// retryUnsent keeps writes that could not be sent, and all writes behind them, until they are sent
// again.
func (w *Writer) retryUnsent(writes []write) {
	if len(w.unsent) == 0 {
		w.epoch.RetryLater(func() {
			writes := w.unsent
			w.unsent = nil
			w.requeue(writes)
		})
	}
	w.unsent = append(w.unsent, writes...)
}

// onOutcomeUnknown handles a batch that ZooKeeper has executed or not. The deletes go one by one: a
// delete that was executed would make the next batch fail.
func (w *Writer) onOutcomeUnknown(b *batch, err error) {
	for _, unknown := range b.writes {
		if unknown.create != nil {
			w.lookUpLater(unknown.create)
			continue
		}
		w.retryDelete(unknown.release, err)
	}
}

func (w *Writer) retryDelete(r *NodeRelease, err error) {
	if w.unknownTooLong(&r.unknownSince) {
		w.abandonRelease(r, finalReason(err), err)
		return
	}
	w.epoch.RetryLater(func() {
		w.epoch.Run(func(client zkconn.Client) func() {
			err := deleteNode(client, r.path)
			return func() { w.onDeleted(r, err) }
		})
	})
}

func deleteNode(client zkconn.Client, path string) error {
	_, err := zkconn.Await(func(then zkconn.Callback[[]zk.MultiResponse]) { client.Delete(path, then) })
	return err
}

// onDeleted handles the result of a delete that went alone.
func (w *Writer) onDeleted(r *NodeRelease, err error) {
	if err == nil {
		w.released(r, false)
		return
	}
	if outcome, why := zkconn.Classify(err); outcome == zkconn.Refused {
		w.onRefused(write{release: r}, why, err)
		return
	}
	w.retryDelete(r, err)
}

// released answers that the node is deleted. missing reports that the first delete, whose answer came,
// found no node.
func (w *Writer) released(r *NodeRelease, missing bool) {
	w.epoch.Answer(r, &messages.NodeReleased{Id: r.ID, Epoch: r.Epoch, Missing: missing})
}

// fail ends creates that ZooKeeper has not executed.
func (w *Writer) fail(failed write, why messages.Reason, err error) {
	for _, c := range failed.creates() {
		if w.epoch.IsOpen(c) {
			w.epoch.Fail(c, why, "create %s: %v", c.path(), err)
		}
	}
}
