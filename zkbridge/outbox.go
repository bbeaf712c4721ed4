package zkbridge

import (
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
)

// write is a node to be created, one to be released, or several to be created together.
type write struct {
	c *create
	r *release
	j *joint
}

// release is a ReleaseNode that is not answered. Trying it again does no harm. One that
// the session does not outlive fails: the node goes with the session, but for a session
// that was given up here that may be later than anybody here can know.
type release struct {
	asker
	path     string
	dir      *directory // where it is, if that is known
	relaxed  bool
	op       zk.DeleteRequest // of its last transaction
	failures int              // multis that failed because of others
	since    time.Time        // when it came to be in doubt
}

func (r *release) done() { r.tell(&messages.NodeReleased{Id: r.id, Epoch: r.epoch}) }

func (r *release) deleteOp() *zk.DeleteRequest {
	r.op = zk.DeleteRequest{Path: r.path, Version: anyVersion}
	return &r.op
}

// outbox is where all creates and deletes pass, first come, first sent. What is in the
// bridge's mailbox goes together, and at once if nothing is under way; otherwise they
// collect until they are worth another transaction, or what is under way has been
// answered. The transactions keep their order, and so do contenders of one lock; but what
// ZooKeeper refuses to do together is sent anew, behind those that were under way, and so
// may be what a lost connection leaves in doubt.
type outbox struct {
	lane
	queue   []write
	unsent  []write  // of transactions that could not be sent; to be ahead of the queue
	flights []*batch // under way
	spare   []*batch // for re-use
	batches uint64   // made so far
}

func (o *outbox) init(ep *epoch) { o.lane = lane{ep: ep, limit: maxMultis, next: o.pick} }

func (o *outbox) add(w write) {
	o.queue = append(o.queue, w)
	if w.r == nil || !w.r.relaxed || o.running == 0 { // else it goes with what follows
		o.due = true
	}
}

// pick makes the next transaction, if it is worth one.
func (o *outbox) pick() job {
	if len(o.queue) < o.enough() || len(o.unsent) > 0 {
		return nil
	}
	b := o.compose()
	if b == nil {
		return nil
	}
	o.flights = append(o.flights, b)
	return func(end func(func())) {
		take := func(results []zk.MultiResponse, err error) {
			end(func() { o.land(b, results, err) })
		}
		if len(b.writes) == 1 && b.writes[0].r != nil {
			o.ep.client.Delete(b.writes[0].r.path, take)
		} else {
			o.ep.client.Multi(b.ops, take)
		}
	}
}

// enough is how many writes are worth a transaction beside those under way: as many as
// these have, or half of what fits. Otherwise small ones would follow large ones, as each
// answer lets those who waited for it ask again one after the other.
func (o *outbox) enough() (n int) {
	for _, b := range o.flights {
		n += len(b.writes)
	}
	return min(n, maxOps/2)
}

// compose takes from the queue what goes together.
func (o *outbox) compose() *batch {
	b, n := o.newBatch(), 0
	for n < len(o.queue) && o.put(b, o.queue[n]) {
		n++
	}
	o.queue = slices.Delete(o.queue, 0, n)
	if len(b.writes) == 0 {
		o.spare = append(o.spare, b)
		return nil
	}
	b.seal(o.ep.core.cfg.acl)
	return b
}

// put adds w to the batch unless that is full. One whose directory is not as it was
// when it came goes back to where it came from; that does not touch the queue.
func (o *outbox) put(b *batch, w write) bool {
	for _, c := range w.creates() {
		o.ep.direct(c)
	}
	switch {
	case w.j != nil && !w.j.known():
		w.j.queued = false
		o.ep.placeJoint(w.j)
		return true
	case w.j != nil:
		return b.addJoint(w.j)
	case w.c != nil && !w.c.dir.writable():
		o.ep.place(w.c)
		return true
	}
	return b.add(w)
}

func (o *outbox) newBatch() *batch {
	b, n := &batch{}, len(o.spare)
	if n > 0 {
		b, o.spare = o.spare[n-1], o.spare[:n-1]
	}
	o.batches++
	b.number = o.batches
	return b
}

// land takes the result of a transaction.
func (o *outbox) land(b *batch, results []zk.MultiResponse, err error) {
	o.flights = slices.DeleteFunc(o.flights, func(f *batch) bool { return f == b })
	o.settle(b, results, err)
}

// settle takes the result of a transaction.
func (o *outbox) settle(b *batch, results []zk.MultiResponse, err error) {
	if err == nil && len(results) == len(b.ops) {
		o.succeed(b, results)
		return
	}
	if i, cause := culprit(results); i >= 0 && len(results) == len(b.ops) {
		o.blame(b, i, cause)
		return
	}
	if err == nil {
		err = zk.ErrAPIError // a reply for another number of operations
	}
	switch what, why := judge(err); {
	case what == refused && len(regroup(b.writes)) == 1:
		o.refuse(b.writes[0], why, err)
	case what == refused: // one of them is to blame, but the server does not say which
		for _, w := range b.writes {
			w.setFailures(maxFailures)
		}
		o.requeue(b.writes)
	case what == notSent:
		o.delay(b.writes)
	default:
		o.doubt(b)
	}
}

func (o *outbox) succeed(b *batch, results []zk.MultiResponse) {
	for _, r := range results[len(b.writes):] {
		if r.Stat == nil { // an answer to something else
			o.doubt(b)
			return
		}
	}
	// All together, which is quicker.
	created := make([]messages.Created, b.creates())
	for i, w := range b.writes {
		if w.r != nil {
			o.ep.released(w.r)
			continue
		}
		_, node := splitPath(results[i].String)
		if w.c.slot < 0 {
			o.ep.readBack(w.c, node)
			continue
		}
		msg := &created[0]
		created = created[1:]
		msg.Id, msg.Epoch, msg.Step = w.c.id, w.c.epoch, w.c.step
		msg.Node = strings.Clone(node)               // a waiter keeps it, and need not keep the whole path
		msg.Czxid = results[len(b.ops)-1].Stat.Mzxid // all that a transaction writes has its zxid
		d := b.dirs[w.c.slot]
		if d.op < 0 {
			msg.Others, msg.DirectoryCzxid = w.c.othersBeside(node, d.next), d.dir.czxid
		} else {
			stat := results[d.op].Stat
			msg.Others, msg.DirectoryCzxid = stat.NumChildren-int32(d.creates), stat.Czxid
		}
		d.dir.made(w.c, node, msg.Others == 0 && d.creates == 1, msg.DirectoryCzxid)
		o.ep.answer(w.c, w.c.asker, msg)
	}
	b.reset()
	o.spare = append(o.spare, b)
}

// blame deals with the operation because of which nothing was executed, and sends
// all others again.
func (o *outbox) blame(b *batch, i int, err error) {
	d := b.directoryOf(i)
	rest := b.writes[:0:0]
	blamed := b.jointsBlamed(i, d, err)
	for j, w := range b.writes {
		switch {
		case d != nil && w.c != nil && w.c.dir == d && (i >= len(b.writes) || isMissing(err)):
			// The directory is the matter, so it is with all its creates.
		case w.c != nil && w.c.joint != nil && blamed[w.c.joint] && i != j:
			// It shares the fate of another.
		case i == j:
			o.refuse(w, reasonFor(err), err)
			continue
		default:
			w.setFailures(w.failures() + 1)
			rest = append(rest, w)
		}
	}
	if d != nil && (i >= len(b.writes) || isMissing(err)) {
		o.blameDirectory(b, d, err)
	}
	o.requeue(rest)
}

// jointsBlamed are those that the failed operation is one of, or whose directory it is.
func (b *batch) jointsBlamed(i int, d *directory, err error) map[*joint]bool {
	blamed := map[*joint]bool{}
	for j, w := range b.writes {
		if w.c != nil && w.c.joint != nil && (i == j || w.c.dir == d && (i >= len(b.writes) || isMissing(err))) {
			blamed[w.c.joint] = true
		}
	}
	return blamed
}

func (o *outbox) blameDirectory(b *batch, d *directory, err error) {
	state := dirReadOnly // its data cannot be written
	if isMissing(err) {
		state = dirUnknown
	}
	for _, w := range b.writes {
		if w.c != nil && w.c.dir == d {
			w.c.dir.state = state
		}
	}
	for j := range b.jointsBlamed(len(b.writes), d, err) {
		o.ep.replaceJoint(j, err)
	}
	for _, w := range b.writes {
		if w.c != nil && w.c.dir == d && w.c.joint == nil {
			o.ep.replace(w.c, err)
		}
	}
}

// doubt deals with a transaction that was executed or not. Deletes go one by one
// now: if they were done, each would fail the next transaction.
func (o *outbox) doubt(b *batch) {
	for _, w := range b.writes {
		if w.c != nil {
			o.ep.doubt(w.c)
			continue
		}
		o.retryDelete(w.r)
		if o.ep.over {
			return // given up; all have been answered
		}
	}
}

func (o *outbox) retryDelete(r *release) {
	if o.ep.tooLong(&r.since) {
		o.ep.forsake("delete %s: there is no clear answer", r.path)
		return
	}
	o.ep.again(func() {
		o.ep.solos.do(func() func() {
			_, err := await(func(then taker[[]zk.MultiResponse]) { o.ep.client.Delete(r.path, then) })
			return func() { o.deleted(r, err) }
		})
	})
}

// deleted takes the result of a delete that went alone.
func (o *outbox) deleted(r *release, err error) {
	if err == nil {
		o.ep.released(r)
		return
	}
	if what, why := judge(err); what == refused {
		o.refuse(write{r: r}, why, err)
		return
	}
	o.retryDelete(r)
}

// refuse ends a write that ZooKeeper does not do.
func (o *outbox) refuse(w write, why messages.Reason, err error) {
	switch {
	case w.r != nil && isMissing(err):
		o.ep.released(w.r)
	case w.r != nil:
		o.ep.cannotRelease(w.r, err)
	case w.c.joint != nil && !isMissing(err):
		o.ep.failJoint(w.c.joint, why, err)
	case isMissing(err):
		w.c.dir.forget()
		o.ep.replace(w.c, err)
	default:
		o.ep.failCreate(w.c, why, err)
	}
}

// delay keeps writes that could not be sent, and all behind them, until it makes sense to
// send them.
func (o *outbox) delay(writes []write) {
	if len(o.unsent) == 0 {
		o.ep.again(func() {
			writes := o.unsent
			o.unsent = nil
			o.requeue(writes)
		})
	}
	o.unsent = append(o.unsent, writes...)
}

// requeue puts writes in front, where they were.
func (o *outbox) requeue(writes []write) {
	o.queue = slices.Concat(regroup(writes), o.queue)
	o.due = true
}

func (ep *epoch) released(r *release) {
	delete(ep.open, r)
	r.done()
}

func (w write) creates() []*create {
	switch {
	case w.j != nil:
		return w.j.creates
	case w.c != nil:
		return []*create{w.c}
	}
	return nil
}

func (w write) failures() int {
	switch {
	case w.j != nil:
		return w.j.creates[0].failures
	case w.c != nil:
		return w.c.failures
	}
	return w.r.failures
}

func (w write) setFailures(n int) {
	if w.c != nil {
		w.c.failures = n
	} else {
		w.r.failures = n
	}
}
