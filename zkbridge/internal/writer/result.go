package writer

import (
	"cmp"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/reply"
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
	case outcome == zkconn.Refused && len(b.groups) == 1 && len(b.containers) > 0: // because of the create or the container
		for _, c := range b.containers {
			c.of.refuse(w.epoch.Client(), err, c.path)
		}
		w.sendAgain(b, nil)
	case outcome == zkconn.Refused && len(b.groups) == 1:
		w.onRefused(b, b.writes[0], why, err)
	case outcome == zkconn.Refused: // because of one of them, but the server does not say which
		for _, g := range b.groups {
			g.failures = maxFailures
		}
		w.sendAgain(b, nil)
	case outcome == zkconn.NotSent:
		w.retryUnsent(b)
	default:
		w.onOutcomeUnknown(b, err)
	}
}

// onOpFailure handles operation i, because of which ZooKeeper has executed nothing. All other
// requests go again.
func (w *Writer) onOpFailure(b *batch, i int, err error) {
	if i < len(b.containers) {
		w.onContainerFailed(b, i, err)
		return
	}
	if i -= len(b.containers); i == len(b.writes) {
		w.epoch.SessionNodeFailed(err)
		w.sendAgain(b, nil)
		return
	}
	failed := b.writes[i]
	if c, is := failed.(*Create); is && zkconn.IsMissing(err) {
		w.onMissingDirectory(b, c)
		return
	}
	w.countFailure(b)
	w.onRefused(b, failed, zkconn.ReasonFor(err), err)
}

// onRefused ends a write of a batch that ZooKeeper refuses, and the atomic create that it is part
// of. The others are sent again.
func (w *Writer) onRefused(b *batch, refused reply.Sender, why messages.Reason, err error) {
	switch r := refused.(type) {
	case *NodeRelease:
		w.onReleaseRefused(r, err)
		w.sendAgain(b, &r.group)
	case *Create:
		if zkconn.IsMissing(err) { // it has gone alone
			w.onMissingDirectory(b, r)
			return
		}
		w.Fail(r.group, why, zkconn.ExplainRight(w.epoch.Client(), err, "CREATE", r.path()))
		w.sendAgain(b, r.group)
	}
}

// retryUnsent keeps a batch that could not be sent, and all behind it, until it is sent again.
func (w *Writer) retryUnsent(b *batch) {
	if len(w.unsent) == 0 {
		w.epoch.RetryLater(func() {
			var groups []*Group
			for _, b := range w.unsent {
				if len(b.directories) > 0 {
					w.makeReadyAgain(b)
				} else {
					groups = append(groups, b.groups...)
				}
			}
			w.unsent = nil
			w.requeue(groups)
		})
	}
	w.unsent = append(w.unsent, b)
}

// onOutcomeUnknown handles a batch that ZooKeeper has executed or not. The deletes go one by one: a
// delete that was executed would make the next batch fail.
func (w *Writer) onOutcomeUnknown(b *batch, err error) {
	for _, g := range b.groups {
		w.leave(g)
		if g.hangUps.Note(err); g.hangUps > 1 {
			g.failures = maxFailures // goes alone from now on: another one may be at fault
		}
	}
	w.makeReadyAgain(b)
	for _, unknown := range b.writes {
		switch r := unknown.(type) {
		case *Create:
			w.lookUpLater(r)
		case *NodeRelease:
			w.retryDelete(r, err)
		}
	}
}

func (w *Writer) retryDelete(r *NodeRelease, err error) {
	final := r.hangUps.Note(err)
	if final != nil || w.unknownTooLong(&r.unknownSince) {
		err = cmp.Or(final, err)
		w.abandonRelease(r, zkconn.ReasonFor(err), err)
		return
	}
	w.epoch.RetryAfter(r.hangUps.Pause(), func() {
		w.epoch.Run(func(client zkconn.Client) func() {
			err := deleteNode(client, r.path())
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
	if outcome, _ := zkconn.Classify(err); outcome == zkconn.Refused {
		w.onReleaseRefused(r, err)
		return
	}
	w.retryDelete(r, err)
}

// released answers that the node is deleted. missing reports that the first delete, whose answer
// came, found no node.
func (w *Writer) released(r *NodeRelease, missing bool) {
	w.epoch.Answer(r, &messages.NodeReleased{Id: r.ID, Epoch: r.Epoch, Missing: missing})
}

// Fail ends creates that ZooKeeper has not executed.
func (w *Writer) Fail(failed *Group, why messages.Reason, err error) {
	w.leave(failed)
	for _, c := range failed.creates {
		if w.epoch.IsOpen(c) {
			w.epoch.Fail(c, why, "create %s: %v", c.path(), err)
		}
	}
}
