package zkbridge

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

// write is a node to be created, one to be released, or several to be created together.
type write struct {
	create  *createRequest
	release *releaseRequest
	atomic  *atomicCreate
}

// releaseRequest is a ReleaseNode that is not answered. Trying it again does no harm. One that
// the session does not outlive fails: the node goes with the session, but for a session
// that was given up here that may be later than anybody here can know.
type releaseRequest struct {
	replyTo
	path         string
	relaxed      bool
	op           zk.DeleteRequest // of its last transaction
	failures     int              // multis that failed because of others
	unknownSince time.Time        // when it came to be in doubt
}

// answer answers. missing reports that the first delete, whose answer came, found no node.
func (r *releaseRequest) answer(missing bool) {
	r.tell(&messages.NodeReleased{Id: r.id, Epoch: r.epoch, Missing: missing})
}

func (r *releaseRequest) deleteOp() *zk.DeleteRequest {
	r.op = zk.DeleteRequest{Path: r.path, Version: zkconn.AnyVersion}
	return &r.op
}

// batcher is where all creates and deletes pass, first come, first sent. What is in the
// bridge's mailbox goes together, and at once if nothing is under way; otherwise they
// collect until they are worth another transaction, or what is under way has been
// answered. The transactions keep their order, and so do contenders of one lock, also where
// their directory is missing. A transaction that ZooKeeper refuses for another reason is sent
// again behind those that were under way, and so may be one whose outcome is unknown.
type batcher struct {
	jobRunner
	queue       []write
	unsent      []write  // of transactions that could not be sent; to be ahead of the queue
	inFlight    []*batch // under way
	freeBatches []*batch // for re-use

	arrivals uint64 // creates that have come so far
}

func (q *batcher) init(ep *epoch) {
	q.jobRunner = jobRunner{epoch: ep, limit: maxTransactions, next: q.nextJob}
}

func (q *batcher) add(w write) {
	for _, c := range w.creates() {
		if c.arrival == 0 {
			q.arrivals++
			c.arrival = q.arrivals
		}
	}
	q.queue = append(q.queue, w)
	if w.release == nil || !w.release.relaxed || q.running == 0 { // else it goes with what follows
		q.mayStart = true
	}
}

// nextJob makes the next transaction, if it is worth one.
func (q *batcher) nextJob() job {
	if len(q.queue) < q.minBatch() || len(q.unsent) > 0 {
		return nil
	}
	b := q.buildBatch()
	if b == nil {
		return nil
	}
	q.inFlight = append(q.inFlight, b)
	return func(end func(func())) {
		b.send(q.epoch.client, func() { end(func() { q.onBatchDone(b) }) })
	}
}

// minBatch is how many writes are worth a transaction beside those under way: as many as
// these have, or half of what fits. Otherwise small ones would follow large ones, as each
// answer lets those who waited for it ask again one after the other.
func (q *batcher) minBatch() (n int) {
	for _, b := range q.inFlight {
		n += len(b.writes)
	}
	return min(n, maxOps/2)
}

// buildBatch takes from the queue what goes together.
func (q *batcher) buildBatch() *batch {
	b, n := q.newBatch(), 0
	for n < len(q.queue) && q.addToBatch(b, q.queue[n]) {
		n++
	}
	q.queue = slices.Delete(q.queue, 0, n)
	if len(b.writes) == 0 {
		q.freeBatches = append(q.freeBatches, b)
		return nil
	}
	b.buildOps(q.epoch.actor.cfg.ACL, q.epoch.ownNode)
	return b
}

// addToBatch adds w to the batch unless that is full. A create waits for the earlier creates of
// its directory while these wait for a missing directory, or while their transaction, which may
// lack a directory, is under way.
func (q *batcher) addToBatch(b *batch, w write) bool {
	missing := q.epoch.missingDirectories
	for _, c := range w.creates() {
		if directory, waits := q.epoch.waitsForDirectory(c); waits {
			missing[directory] = append(missing[directory], w)
			return true
		}
		if slices.ContainsFunc(q.inFlight, func(b *batch) bool { return b.mayMiss && b.createsIn(c.directory) }) {
			return false
		}
	}
	return b.add(w, q.epoch.ownNode != "")
}

func (q *batcher) newBatch() *batch {
	n := len(q.freeBatches)
	if n == 0 {
		return &batch{}
	}
	b := q.freeBatches[n-1]
	q.freeBatches = q.freeBatches[:n-1]
	return b
}

// onBatchDone takes the result of a transaction.
func (q *batcher) onBatchDone(b *batch) {
	q.inFlight = slices.DeleteFunc(q.inFlight, func(f *batch) bool { return f == b })
	q.handleResult(b)
}

// handleResult takes the result of a transaction.
func (q *batcher) handleResult(b *batch) {
	results, err := b.results, b.err
	if err == nil && len(results) == len(b.ops) && !(b.writesOwnNode && b.czxid() == 0) {
		q.onSuccess(b)
		return
	}
	if i, cause := zkconn.FirstFailedOp(results); i >= 0 && len(results) == len(b.ops) {
		q.onOpFailure(b, i, cause)
		return
	}
	if err == nil {
		err = zk.ErrAPIError // a reply to something else
	}
	switch what, why := zkconn.Classify(err); {
	case what == zkconn.Refused && len(ungrouped(b.writes)) == 1:
		q.refuse(b.writes[0], why, err)
	case what == zkconn.Refused: // one of them is to blame, but the server does not say which
		for _, w := range b.writes {
			w.setFailures(maxFailures)
		}
		q.requeue(ungrouped(b.writes))
	case what == zkconn.NotSent:
		q.retryUnsent(ungrouped(b.writes))
	default:
		q.onOutcomeUnknown(b, err)
	}
}

func (q *batcher) onSuccess(b *batch) {
	czxid := b.czxid()
	created := make([]messages.Created, b.creates) // all together, which is quicker
	for i, w := range b.writes {
		if w.release != nil {
			q.epoch.released(w.release, false)
			continue
		}
		_, node := zkconn.SplitPath(b.results[i].String)
		if czxid == 0 {
			q.epoch.lookUpCreated(w.create, node)
			continue
		}
		msg := &created[0]
		created = created[1:]
		msg.Id, msg.Epoch, msg.Czxid, msg.Step = w.create.id, w.create.epoch, czxid, w.create.step
		msg.Node = strings.Clone(node) // a waiter keeps it, and need not keep the whole path
		if w.create.read == noReadNeeded {
			msg.SameDirectory = true
		} else if l := &b.reads[w.create.read]; l.err == nil {
			msg.DirectoryCzxid = l.listing.Czxid
			if w.create.withNames {
				msg.Children = l.listing.Children
			}
		}
		q.epoch.answerCreated(w.create, msg)
	}
	b.reset()
	q.freeBatches = append(q.freeBatches, b)
}

// onOpFailure deals with the operation because of which nothing was executed, and sends
// all others again.
func (q *batcher) onOpFailure(b *batch, i int, err error) {
	if i == len(b.writes) {
		q.epoch.onOwnNodeFailure(err)
		q.requeue(ungrouped(b.writes))
		return
	}
	culprit := b.writes[i]
	if culprit.create != nil && zkconn.IsMissing(err) {
		q.onMissingDirectory(b, i)
		return
	}
	var rest []write
	for _, w := range ungrouped(b.writes) {
		if w.has(culprit) {
			q.refuse(culprit, zkconn.ReasonFor(err), err)
			continue
		}
		w.setFailures(w.failures() + 1)
		rest = append(rest, w)
	}
	q.requeue(rest)
}

// onMissingDirectory deals with a transaction whose operation i has no directory. It keeps the
// creates in that directory until the bridge has made it. ZooKeeper has not looked at the
// operations behind i, so the bridge looks for their directories, too, all at once.
func (q *batcher) onMissingDirectory(b *batch, i int) {
	missing := b.writes[i].create.directory
	seen := map[string]bool{missing: false}
	for k, w := range b.writes {
		if w.create == nil {
			continue
		}
		if _, known := seen[w.create.directory]; !known {
			seen[w.create.directory] = k < i
		}
	}
	in := map[string][]write{}
	var rest []write
	for _, w := range ungrouped(b.writes) {
		creates := w.creates()
		k := slices.IndexFunc(creates, func(c *createRequest) bool { return c.directory == missing })
		if k < 0 {
			k = slices.IndexFunc(creates, func(c *createRequest) bool { return !seen[c.directory] })
		}
		if k < 0 {
			rest = append(rest, w)
			continue
		}
		in[creates[k].directory] = append(in[creates[k].directory], w)
	}
	for _, directory := range slices.Sorted(maps.Keys(in)) {
		q.epoch.waitForDirectory(directory, directory == missing, in[directory])
	}
	q.requeue(rest)
}

// has reports whether w is, or contains, the one of a batch.
func (w write) has(one write) bool {
	return w == one || w.atomic != nil && one.create != nil && one.create.atomic == w.atomic
}

// onOutcomeUnknown deals with a transaction that was executed or not. Deletes go one by one
// now: if they were done, each would fail the next transaction.
func (q *batcher) onOutcomeUnknown(b *batch, err error) {
	for _, w := range b.writes {
		if w.create != nil {
			q.epoch.lookUpLater(w.create)
			continue
		}
		q.retryDelete(w.release, err)
	}
}

func (q *batcher) retryDelete(r *releaseRequest, err error) {
	if q.epoch.unknownTooLong(&r.unknownSince) {
		q.epoch.abandonRelease(r, finalReason(err), err)
		return
	}
	q.epoch.retryLater(func() {
		q.epoch.singles.addBlocking(func() func() {
			_, err := zkconn.Await(func(then zkconn.Callback[[]zk.MultiResponse]) { q.epoch.client.Delete(r.path, then) })
			return func() { q.deleted(r, err) }
		})
	})
}

// deleted takes the result of a delete that went alone.
func (q *batcher) deleted(r *releaseRequest, err error) {
	if err == nil {
		q.epoch.released(r, false)
		return
	}
	if what, why := zkconn.Classify(err); what == zkconn.Refused {
		q.refuse(write{release: r}, why, err)
		return
	}
	q.retryDelete(r, err)
}

// refuse ends a write of a transaction that ZooKeeper does not do, and its joint.
func (q *batcher) refuse(w write, why messages.Reason, err error) {
	switch {
	case w.release != nil && zkconn.IsMissing(err):
		q.epoch.released(w.release, w.release.unknownSince.IsZero()) // else an earlier delete may have deleted it
	case w.release != nil:
		q.epoch.onReleaseRefused(w.release, err)
	case zkconn.IsMissing(err):
		q.epoch.waitForDirectory(w.create.directory, true, ungrouped([]write{w}))
	default:
		q.epoch.failWrite(ungrouped([]write{w})[0], why, w.create.right().Explain(err))
	}
}

// retryUnsent keeps writes that could not be sent, and all behind them, until it makes sense to
// send them.
func (q *batcher) retryUnsent(writes []write) {
	if len(q.unsent) == 0 {
		q.epoch.retryLater(func() {
			writes := q.unsent
			q.unsent = nil
			q.requeue(writes)
		})
	}
	q.unsent = append(q.unsent, writes...)
}

// requeue puts writes in front, where they were.
func (q *batcher) requeue(writes []write) {
	q.queue = slices.Concat(writes, q.queue)
	q.mayStart = true
}

func (ep *epoch) released(r *releaseRequest, missing bool) {
	delete(ep.open, r)
	r.answer(missing)
}

func (w write) creates() []*createRequest {
	switch {
	case w.atomic != nil:
		return w.atomic.creates
	case w.create != nil:
		return []*createRequest{w.create}
	}
	return nil
}

func (w write) failures() int {
	switch {
	case w.atomic != nil:
		return w.atomic.creates[0].failures
	case w.create != nil:
		return w.create.failures
	}
	return w.release.failures
}

func (w write) setFailures(n int) {
	for _, c := range w.creates() {
		c.failures = n
	}
	if w.release != nil {
		w.release.failures = n
	}
}
