package zkbridge

import (
	"errors"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
)

// A node that stays although its request has been answered holds a lock until its session
// ends. The bridge does not end the session because of it: that would cost the holders of
// all other locks theirs, without the margin. It deletes the node when ZooKeeper lets it.

// orphan is a node that is to go and has no request any more. It belongs to the session:
// the epoch's end ends it, too.
type orphan struct {
	path   string
	create *create // which made the node, or may have; nil if path is the whole path
	since  time.Time
	pause  time.Duration // before the next attempt, jitter left out
	next   time.Time     // of the next attempt
	logged time.Time
	gone   bool
}

// orphans are those of an epoch.
type orphans struct {
	all      []*orphan
	timer    *time.Timer // until the first of them is due; nil during a sweep, and without orphans
	at       time.Time   // when the timer fires
	sweeping bool
}

const (
	firstOrphanPause = 250 * time.Millisecond
	maxOrphanPause   = 10 * time.Second
	orphanLogged     = 10 * time.Minute // how often the log repeats that a node stays
)

// keep adds an orphan because of err: the node at path or, if c is not nil, the node that c
// may have made. That is looked for at once, and the former after a pause.
func (ep *epoch) keep(path string, c *create, err error) {
	o := &orphan{path: path, create: c, since: time.Now(), pause: firstOrphanPause}
	ep.orphans.all = append(ep.orphans.all, o)
	if o.next = o.since; c == nil {
		ep.postpone(o, err)
	}
	if s := &ep.orphans; s.timer == nil || o.next.Before(s.at) {
		ep.armSweep()
	}
}

// postpone sets the orphan's next attempt, with a longer pause than before the last one.
func (ep *epoch) postpone(o *orphan, err error) {
	now := time.Now()
	o.next = now.Add(o.pause/2 + ep.spread.below(o.pause/2+1))
	o.pause = min(2*o.pause, maxOrphanPause)
	if !o.logged.IsZero() && now.Sub(o.logged) < orphanLogged {
		return
	}
	o.logged = now
	what := "a node cannot be deleted, and may hold a lock until it is"
	if o.create != nil {
		what = "a node may have been made, cannot be looked for, and may hold a lock until it is deleted"
	}
	ep.core.cfg.log.Error(what, "node", o.path, "since", o.since, "why", err, "epoch", ep.number,
		"do", "grant the right that is missing, or delete the node; it is tried again while the session lives, and goes with it")
}

// armSweep sets the timer for the orphan that is due first.
func (ep *epoch) armSweep() {
	s := &ep.orphans
	s.stop()
	if s.sweeping || len(s.all) == 0 {
		return
	}
	s.at = slices.MinFunc(s.all, func(a, b *orphan) int { return a.next.Compare(b.next) }).next
	sweep := task(func(*core) { ep.sweep() })
	s.timer = time.AfterFunc(time.Until(s.at), func() { ep.core.self.Tell(sweep) })
}

func (s *orphans) stop() {
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
}

// sweep tries to delete the orphans that are due. It does so one after the other, in one
// job: other requests do not wait for them, however many there are.
func (ep *epoch) sweep() {
	s := &ep.orphans
	if ep.over || s.sweeping {
		return
	}
	now := time.Now()
	var due []orphan // copies: the job may read them while the bridge runs
	var which []*orphan
	for _, o := range s.all {
		if !o.next.After(now) {
			due, which = append(due, *o), append(which, o)
		}
	}
	s.stop()
	s.sweeping = true
	session := ep.link.id.Load()
	ep.solos.do(func() func() {
		results := make([]error, len(due))
		for i := range due {
			results[i] = due[i].remove(ep.client, session)
		}
		return func() { ep.swept(which, results) }
	})
}

func (ep *epoch) swept(which []*orphan, results []error) {
	s := &ep.orphans
	s.sweeping = false
	for i, o := range which {
		if results[i] != nil {
			ep.postpone(o, results[i])
			continue
		}
		if o.gone = true; !o.logged.IsZero() {
			ep.core.cfg.log.Info("a node that could not be deleted is gone", "node", o.path, "since", o.since, "epoch", ep.number)
		}
	}
	s.all = slices.DeleteFunc(s.all, func(o *orphan) bool { return o.gone })
	ep.armSweep()
}

// remove deletes the node. It returns nil once there is none.
func (o orphan) remove(c client, session int64) error {
	path := o.path
	if o.create != nil {
		node, err := o.create.locate(c, session)
		if err != nil || node == "" {
			return err
		}
		path = joinPath(o.create.directory, node)
	}
	_, err := await(func(then taker[[]zk.MultiResponse]) { c.Delete(path, then) })
	if isMissing(err) {
		return nil
	}
	return need{right: "DELETE"}.of(path).explain(err)
}

// locate returns the node that the create has made in the session, or "". It takes neither
// the right to read the directory nor an answer of its size from a server that can list the
// session's nodes, as ZooKeeper can since 3.6.
func (c *create) locate(in client, session int64) (string, error) {
	err := barrier(in, c.directory)
	switch {
	case isMissing(err):
		return "", nil
	case err != nil && !errors.Is(err, zk.ErrNoAuth): // which is the answer of a barrier, too
		return "", err
	}
	paths, err := in.Ephemerals(c.path())
	if err == nil {
		for i, path := range paths {
			_, paths[i] = splitPath(path)
		}
		return c.find(paths), nil
	}
	if what, _ := judge(err); what != refused {
		return "", err
	}
	found, err := search(in, c.directory, []*create{c})
	if err != nil || found[0].exists && found[0].stat.EphemeralOwner != session {
		return "", need{"READ", c.directory}.explain(err)
	}
	return found[0].node, nil
}

// unresolvedFor is how many session timeouts a request may be without a result
// while its session lives.
const unresolvedFor = 3

// tooLong reports whether a request has been in doubt for so long that it is answered
// without a result. since is when that began; the first call sets it.
func (ep *epoch) tooLong(since *time.Time) bool {
	if since.IsZero() {
		*since = time.Now()
	}
	return time.Since(*since) > unresolvedFor*time.Duration(ep.link.timeout.Load())
}

// inTheEnd is the reason to give for a request that is answered because of err although its
// session lives.
func inTheEnd(err error) messages.Reason {
	if _, why := judge(err); why != messages.Reason_SESSION_LOST {
		return why
	}
	return messages.Reason_UNAVAILABLE
}

// hopeless reports whether a read that failed would fail the next time, too.
func hopeless(err error) bool {
	what, why := judge(err)
	return what == refused || why == messages.Reason_LIMIT_EXCEEDED
}

// cannotRelease deals with a release that ZooKeeper does not do because of err. If the
// node is not of this session, the bridge does not try again.
func (ep *epoch) cannotRelease(r *release, err error) {
	ep.solos.do(func() func() {
		node, exists, lookErr := ep.client.Exists(r.path)
		return func() { ep.mustGo(r, err, node, exists, lookErr) }
	})
}

func (ep *epoch) mustGo(r *release, err error, node zk.Stat, exists bool, lookErr error) {
	_, why := judge(err)
	explained := need{right: "DELETE"}.of(r.path).explain(err)
	switch {
	case lookErr != nil && !hopeless(lookErr) && !ep.tooLong(&r.since):
		ep.again(func() { ep.cannotRelease(r, err) })
	case lookErr == nil && !exists:
		ep.released(r, false)
	case lookErr == nil && node.EphemeralOwner != ep.link.id.Load():
		ep.fail(r, why, "delete %s: %v", r.path, explained)
	default:
		ep.abandonRelease(r, why, explained)
	}
}

// abandonRelease answers a release whose node may be there still. The node goes later.
func (ep *epoch) abandonRelease(r *release, why messages.Reason, err error) {
	ep.keep(r.path, nil, err)
	ep.fail(r, why, "delete %s: it is tried again while the session lives: %v", r.path, err)
}

// undo deletes the node of a create that cannot be answered because of err.
func (ep *epoch) undo(c *create, err error) {
	why := inTheEnd(err)
	err = need{"READ", c.directory}.explain(err)
	failed := undone(func(become string) { ep.fail(c, why, "create %s: it was made and %s: %v", c.path(), become, err) })
	ep.outbox.add(write{r: &release{asker: asker{to: failed}, path: joinPath(c.directory, c.node)}})
}

// undone hears what has become of the node. While it has not heard so the create is open.
type undone func(become string)

func (f undone) Tell(msg any) {
	if failed, ok := msg.(*messages.Failed); ok {
		f("is left: " + failed.GetDetail())
		return
	}
	f("is deleted again")
}

// unresolved puts creates off again about which nothing could be learned because of err,
// or answers them if they have been in doubt for too long.
func (ep *epoch) unresolved(creates []*create, err error) {
	for _, c := range creates {
		if _, open := ep.open[c]; !open {
			continue
		}
		switch final := hopeless(err) || ep.tooLong(&c.since); {
		case final && c.node != "":
			ep.undo(c, err)
		case final:
			ep.abandonCreate(c, err)
		default:
			ep.doubt(c)
		}
	}
}

// abandonCreate answers a create, and all creates of its transaction, which may have been
// executed. Nodes that are found later are deleted.
func (ep *epoch) abandonCreate(c *create, err error) {
	all := []*create{c}
	if c.joint != nil {
		all = c.joint.creates
	}
	why := inTheEnd(err)
	err = need{"READ", c.directory}.explain(err)
	for _, c := range all {
		ep.keep(c.path(), c, err)
		ep.fail(c, why, "create %s may have been executed, and a node that is found later is deleted: %v", c.path(), err)
	}
}
