package zkbridge

import (
	"maps"
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
	relaxed  bool
	op       zk.DeleteRequest // of its last transaction
	failures int              // multis that failed because of others
	since    time.Time        // when it came to be in doubt
}

// done answers. missing reports that the first delete, whose answer came, found no node.
func (r *release) done(missing bool) {
	r.tell(&messages.NodeReleased{Id: r.id, Epoch: r.epoch, Missing: missing})
}

func (r *release) deleteOp() *zk.DeleteRequest {
	r.op = zk.DeleteRequest{Path: r.path, Version: anyVersion}
	return &r.op
}

// outbox is where all creates and deletes pass, first come, first sent. What is in the
// bridge's mailbox goes together, and at once if nothing is under way; otherwise they
// collect until they are worth another transaction, or what is under way has been
// answered. The transactions keep their order, and so do contenders of one lock, also where
// their directory is missing; but what ZooKeeper refuses to do together for another reason is
// sent anew, behind those that were under way, and so may be what a lost connection leaves in
// doubt.
type outbox struct {
	lane
	queue   []write
	unsent  []write  // of transactions that could not be sent; to be ahead of the queue
	flights []*batch // under way
	spare   []*batch // for re-use

	arrivals uint64 // creates that have come so far
}

func (o *outbox) init(ep *epoch) { o.lane = lane{ep: ep, limit: maxMultis, next: o.pick} }

func (o *outbox) add(w write) {
	for _, c := range w.creates() {
		if c.arrival == 0 {
			o.arrivals++
			c.arrival = o.arrivals
		}
	}
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
		b.send(o.ep.client, func() { end(func() { o.land(b) }) })
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
	b.seal(o.ep.core.cfg.acl, o.ep.own)
	return b
}

// put adds w to the batch unless that is full. A create waits for the earlier creates of its
// directory: as long as these wait for a directory that is being made, or are in a transaction
// that may have to be sent again because it lacks one.
func (o *outbox) put(b *batch, w write) bool {
	for _, c := range w.creates() {
		if directory, waits := o.ep.waitsForMaking(c); waits {
			o.ep.makings[directory] = append(o.ep.makings[directory], w)
			return true
		}
		if slices.ContainsFunc(o.flights, func(f *batch) bool { return f.missing && f.createsIn(c.directory) }) {
			return false
		}
	}
	return b.add(w, o.ep.own != "")
}

func (o *outbox) newBatch() *batch {
	n := len(o.spare)
	if n == 0 {
		return &batch{}
	}
	b := o.spare[n-1]
	o.spare = o.spare[:n-1]
	return b
}

// land takes the result of a transaction.
func (o *outbox) land(b *batch) {
	o.flights = slices.DeleteFunc(o.flights, func(f *batch) bool { return f == b })
	o.settle(b)
}

// settle takes the result of a transaction.
func (o *outbox) settle(b *batch) {
	results, err := b.results, b.err
	if err == nil && len(results) == len(b.ops) && !(b.stamped && b.czxid() == 0) {
		o.succeed(b)
		return
	}
	if i, cause := culprit(results); i >= 0 && len(results) == len(b.ops) {
		o.blame(b, i, cause)
		return
	}
	if err == nil {
		err = zk.ErrAPIError // a reply to something else
	}
	switch what, why := judge(err); {
	case what == refused && len(regroup(b.writes)) == 1:
		o.refuse(b.writes[0], why, err)
	case what == refused: // one of them is to blame, but the server does not say which
		for _, w := range b.writes {
			w.setFailures(maxFailures)
		}
		o.requeue(regroup(b.writes))
	case what == notSent:
		o.delay(regroup(b.writes))
	default:
		o.doubt(b, err)
	}
}

func (o *outbox) succeed(b *batch) {
	czxid := b.czxid()
	created := make([]messages.Created, b.creates) // all together, which is quicker
	for i, w := range b.writes {
		if w.r != nil {
			o.ep.released(w.r, false)
			continue
		}
		_, node := splitPath(b.results[i].String)
		if czxid == 0 {
			o.ep.readBack(w.c, node)
			continue
		}
		msg := &created[0]
		created = created[1:]
		msg.Id, msg.Epoch, msg.Czxid, msg.Step = w.c.id, w.c.epoch, czxid, w.c.step
		msg.Node = strings.Clone(node) // a waiter keeps it, and need not keep the whole path
		if w.c.slot == inDirectoryOfAfter {
			msg.SameDirectory = true
		} else if l := &b.looks[w.c.slot]; l.err == nil {
			msg.DirectoryCzxid = l.in.czxid
			if w.c.look {
				msg.Children = l.in.children
			}
		}
		o.ep.answerCreated(w.c, msg)
	}
	b.reset()
	o.spare = append(o.spare, b)
}

// blame deals with the operation because of which nothing was executed, and sends
// all others again.
func (o *outbox) blame(b *batch, i int, err error) {
	if i == len(b.writes) {
		o.ep.ownFailed(err)
		o.requeue(regroup(b.writes))
		return
	}
	culprit := b.writes[i]
	if culprit.c != nil && isMissing(err) {
		o.blameDirectory(b, i)
		return
	}
	var rest []write
	for _, w := range regroup(b.writes) {
		if w.has(culprit) {
			o.refuse(culprit, reasonFor(err), err)
			continue
		}
		w.setFailures(w.failures() + 1)
		rest = append(rest, w)
	}
	o.requeue(rest)
}

// blameDirectory deals with a transaction whose operation i has no directory. It keeps the
// creates in that directory until the bridge has made it. ZooKeeper has not looked at the
// operations behind i, so the bridge looks for their directories, too, all at once.
func (o *outbox) blameDirectory(b *batch, i int) {
	missing := b.writes[i].c.directory
	seen := map[string]bool{missing: false}
	for k, w := range b.writes {
		if w.c == nil {
			continue
		}
		if _, known := seen[w.c.directory]; !known {
			seen[w.c.directory] = k < i
		}
	}
	in := map[string][]write{}
	var rest []write
	for _, w := range regroup(b.writes) {
		creates := w.creates()
		k := slices.IndexFunc(creates, func(c *create) bool { return c.directory == missing })
		if k < 0 {
			k = slices.IndexFunc(creates, func(c *create) bool { return !seen[c.directory] })
		}
		if k < 0 {
			rest = append(rest, w)
			continue
		}
		in[creates[k].directory] = append(in[creates[k].directory], w)
	}
	for _, directory := range slices.Sorted(maps.Keys(in)) {
		o.ep.inMissing(directory, directory == missing, in[directory])
	}
	o.requeue(rest)
}

// has reports whether w is, or contains, the one of a batch.
func (w write) has(one write) bool {
	return w == one || w.j != nil && one.c != nil && one.c.joint == w.j
}

// doubt deals with a transaction that was executed or not. Deletes go one by one
// now: if they were done, each would fail the next transaction.
func (o *outbox) doubt(b *batch, err error) {
	for _, w := range b.writes {
		if w.c != nil {
			o.ep.doubt(w.c)
			continue
		}
		o.retryDelete(w.r, err)
	}
}

func (o *outbox) retryDelete(r *release, err error) {
	if o.ep.tooLong(&r.since) {
		o.ep.abandonRelease(r, inTheEnd(err), err)
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
		o.ep.released(r, false)
		return
	}
	if what, why := judge(err); what == refused {
		o.refuse(write{r: r}, why, err)
		return
	}
	o.retryDelete(r, err)
}

// refuse ends a write of a transaction that ZooKeeper does not do, and its joint.
func (o *outbox) refuse(w write, why messages.Reason, err error) {
	switch {
	case w.r != nil && isMissing(err):
		o.ep.released(w.r, w.r.since.IsZero()) // else an earlier delete may have deleted it
	case w.r != nil:
		o.ep.cannotRelease(w.r, err)
	case isMissing(err):
		o.ep.inMissing(w.c.directory, true, regroup([]write{w}))
	default:
		o.ep.failWrite(regroup([]write{w})[0], why, w.c.needs().explain(err))
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
	o.queue = slices.Concat(writes, o.queue)
	o.due = true
}

func (ep *epoch) released(r *release, missing bool) {
	delete(ep.open, r)
	r.done(missing)
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
	for _, c := range w.creates() {
		c.failures = n
	}
	if w.r != nil {
		w.r.failures = n
	}
}
