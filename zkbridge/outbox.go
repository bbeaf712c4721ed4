package zkbridge

import (
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
)

// write is a node to be created or one to be released.
type write struct {
	c *create
	r *release
}

// release is a ReleaseNode that is not answered. Trying it again does no harm.
type release struct {
	asker
	path     string
	failures int       // multis that failed because of others
	since    time.Time // when it came to be in doubt
}

// give ends the release. A node does not outlive its session.
func (r *release) give(why messages.Reason, detail string) {
	if why == messages.Reason_SESSION_LOST {
		r.done()
		return
	}
	r.asker.give(why, detail)
}

func (r *release) done() { r.tell(&messages.NodeReleased{Id: r.id, Epoch: r.epoch}) }

// outbox is where all creates and deletes pass. While fewer than maxMultis are
// under way each goes out at once; behind that they collect, and go together in
// one transaction.
type outbox struct {
	lane
	queue []write
}

func (o *outbox) init(ep *epoch) { o.lane = lane{ep: ep, limit: maxMultis, next: o.pick} }

func (o *outbox) add(w write) {
	o.queue = append(o.queue, w)
	o.pump()
}

// pick makes the next transaction.
func (o *outbox) pick() job {
	b := o.compose()
	if b == nil {
		return nil
	}
	if len(b.writes) == 1 && b.writes[0].r != nil {
		r := b.writes[0].r
		return func() func() {
			err := o.ep.client.Delete(r.path)
			return func() { o.deleted(r, err) }
		}
	}
	return func() func() {
		results, err := o.ep.client.Multi(b.ops...)
		return func() { o.settle(b, results, err) }
	}
}

// compose takes from the queue what goes together. A create waits while another one
// of its directory is under way: transactions may overtake each other, contenders of
// one lock must not.
func (o *outbox) compose() *batch {
	b := &batch{}
	left := o.queue[:0]
	for i, w := range o.queue {
		switch {
		case w.c != nil && !w.c.dir.writable():
			o.ep.place(w.c) // what is known of the directory has changed; this does not touch the queue
		case w.c != nil && w.c.dir.flying > 0:
			left = append(left, w)
		case !b.add(w):
			left = append(left, o.queue[i:]...)
			return o.seal(b, left)
		}
	}
	return o.seal(b, left)
}

func (o *outbox) seal(b *batch, left []write) *batch {
	clear(o.queue[len(left):])
	o.queue = left
	if len(b.writes) == 0 {
		return nil
	}
	for _, d := range b.dirs {
		d.dir.flying++
	}
	b.seal(o.ep.core.cfg.acl)
	return b
}

// settle takes the result of a transaction.
func (o *outbox) settle(b *batch, results []zk.MultiResponse, err error) {
	for _, d := range b.dirs {
		d.dir.flying--
	}
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
	case what == refused && len(b.writes) == 1:
		o.refuse(b.writes[0], why, err)
	case what == refused: // one of them is to blame, but the server does not say which
		for _, w := range b.writes {
			w.setFailures(maxFailures)
		}
		o.requeue(b.writes)
	case what == notSent:
		o.ep.again(func() { o.requeue(b.writes) })
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
	for i, w := range b.writes {
		if w.r != nil {
			o.ep.released(w.r)
			continue
		}
		d := b.dirs[w.c.slot]
		stat := results[len(b.writes)+w.c.slot].Stat
		_, node := splitPath(results[i].String)
		o.ep.answer(w.c, w.c.asker, &messages.Created{Id: w.c.id, Epoch: w.c.epoch, Node: node,
			Czxid: stat.Mzxid, Step: w.c.step, Others: stat.NumChildren - int32(d.creates), DirectoryCzxid: stat.Czxid})
	}
}

// blame deals with the operation because of which nothing was executed, and sends
// all others again.
func (o *outbox) blame(b *batch, i int, err error) {
	d := b.directoryOf(i)
	rest := b.writes[:0:0]
	for j, w := range b.writes {
		switch {
		case d != nil && w.c != nil && w.c.dir == d && (i >= len(b.writes) || isMissing(err)):
			// The directory is the matter, so it is with all its creates.
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

func (o *outbox) blameDirectory(b *batch, d *directory, err error) {
	if isMissing(err) {
		d.forget()
	} else {
		d.state = dirReadOnly // its data cannot be written
	}
	for _, w := range b.writes {
		if w.c != nil && w.c.dir == d {
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
			err := o.ep.client.Delete(r.path)
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
	case isMissing(err):
		w.c.dir.forget()
		o.ep.replace(w.c, err)
	default:
		o.ep.failCreate(w.c, why, err)
	}
}

// requeue puts writes in front, where they were.
func (o *outbox) requeue(writes []write) {
	o.queue = slices.Concat(writes, o.queue)
	o.pump()
}

func (ep *epoch) released(r *release) {
	delete(ep.open, r)
	r.done()
}

func (w write) failures() int {
	if w.c != nil {
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
