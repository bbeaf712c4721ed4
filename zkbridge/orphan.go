package zkbridge

import (
	"errors"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

// A node that stays although its request has been answered holds a lock until its session
// ends. The bridge does not end the session because of it: that would cost the holders of
// all other locks theirs, without the margin. It deletes the node when ZooKeeper lets it.

// orphan is a node that is to go and has no request any more. It belongs to the session:
// the epoch's end ends it, too.
type orphan struct {
	path    string
	create  *createRequest // which made the node, or may have; nil if path is the whole path
	since   time.Time
	pause   time.Duration // before the next attempt, jitter left out
	next    time.Time     // of the next attempt
	logged  time.Time
	deleted bool
}

// orphans are those of an epoch.
type orphans struct {
	all      []*orphan
	timer    *time.Timer // until the first of them is due; nil during a sweep, and without orphans
	timerAt  time.Time   // when the timer fires
	sweeping bool
}

const (
	firstOrphanPause = 250 * time.Millisecond
	maxOrphanPause   = 10 * time.Second
	orphanLogged     = 10 * time.Minute // how often the log repeats that a node stays
)

// addOrphan adds an orphan because of err: the node at path or, if c is not nil, the node that c
// may have made. That is looked for at once, and the former after a pause.
func (ep *epoch) addOrphan(path string, c *createRequest, err error) {
	o := &orphan{path: path, create: c, since: time.Now(), pause: firstOrphanPause}
	ep.orphans.all = append(ep.orphans.all, o)
	if o.next = o.since; c == nil {
		ep.postpone(o, err)
	}
	if s := &ep.orphans; s.timer == nil || o.next.Before(s.timerAt) {
		ep.armSweep()
	}
}

// postpone sets the orphan's next attempt, with a longer pause than before the last one.
func (ep *epoch) postpone(o *orphan, err error) {
	now := time.Now()
	o.next = now.Add(o.pause/2 + ep.jitter.Below(o.pause/2+1))
	o.pause = min(2*o.pause, maxOrphanPause)
	if !o.logged.IsZero() && now.Sub(o.logged) < orphanLogged {
		return
	}
	o.logged = now
	what := "a node cannot be deleted, and may hold a lock until it is"
	if o.create != nil {
		what = "a node may have been made, cannot be looked for, and may hold a lock until it is deleted"
	}
	ep.actor.cfg.Log.Error(what, "node", o.path, "since", o.since, "why", err, "epoch", ep.number,
		"do", "grant the right that is missing, or delete the node; it is tried again while the session lives, and goes with it")
}

// armSweep sets the timer for the orphan that is due first.
func (ep *epoch) armSweep() {
	s := &ep.orphans
	s.stop()
	if s.sweeping || len(s.all) == 0 {
		return
	}
	s.timerAt = slices.MinFunc(s.all, func(a, b *orphan) int { return a.next.Compare(b.next) }).next
	sweep := task(func(*bridgeActor) { ep.sweep() })
	s.timer = time.AfterFunc(time.Until(s.timerAt), func() { ep.actor.self.Tell(sweep) })
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
	session := ep.conn.ID()
	ep.singles.addBlocking(func() func() {
		results := make([]error, len(due))
		for i := range due {
			results[i] = due[i].delete(ep.client, session)
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
		if o.deleted = true; !o.logged.IsZero() {
			ep.actor.cfg.Log.Info("a node that could not be deleted is gone", "node", o.path, "since", o.since, "epoch", ep.number)
		}
	}
	s.all = slices.DeleteFunc(s.all, func(o *orphan) bool { return o.deleted })
	ep.armSweep()
}

// delete deletes the node. It returns nil once there is none.
func (o orphan) delete(c zkconn.Client, session int64) error {
	path := o.path
	if o.create != nil {
		node, err := o.create.locateNode(c, session)
		if err != nil || node == "" {
			return err
		}
		path = zkconn.JoinPath(o.create.directory, node)
	}
	_, err := zkconn.Await(func(then zkconn.Callback[[]zk.MultiResponse]) { c.Delete(path, then) })
	if zkconn.IsMissing(err) {
		return nil
	}
	return zkconn.RightOnParent("DELETE", path).Explain(err)
}

// locateNode returns the node that the create has made in the session, or "". It takes neither
// the right to read the directory nor an answer of its size from a server that can list the
// session's nodes, as ZooKeeper can since 3.6.
func (c *createRequest) locateNode(in zkconn.Client, session int64) (string, error) {
	err := barrier(in, c.directory)
	switch {
	case zkconn.IsMissing(err):
		return "", nil
	case err != nil && !errors.Is(err, zk.ErrNoAuth): // which is the answer of a barrier, too
		return "", err
	}
	paths, err := in.Ephemerals(c.path())
	if err == nil {
		for i, path := range paths {
			_, paths[i] = zkconn.SplitPath(path)
		}
		return c.nodeIn(paths), nil
	}
	if what, _ := zkconn.Classify(err); what != zkconn.Refused {
		return "", err
	}
	found, err := lookUpCreates(in, c.directory, []*createRequest{c})
	if err != nil || found[0].exists && found[0].stat.EphemeralOwner != session {
		return "", zkconn.RightOn("READ", c.directory).Explain(err)
	}
	return found[0].node, nil
}

// maxUnknownTimeouts is how many session timeouts a request may be without a result
// while its session lives.
const maxUnknownTimeouts = 3

// unknownTooLong reports whether a request has been in doubt for so long that it is answered
// without a result. since is when that began; the first call sets it.
func (ep *epoch) unknownTooLong(since *time.Time) bool {
	if since.IsZero() {
		*since = time.Now()
	}
	return time.Since(*since) > maxUnknownTimeouts*ep.conn.Timeout()
}

// finalReason is the reason to give for a request that is answered because of err although its
// session lives.
func finalReason(err error) messages.Reason {
	if _, why := zkconn.Classify(err); why != messages.Reason_SESSION_LOST {
		return why
	}
	return messages.Reason_UNAVAILABLE
}

// isPermanent reports whether a read that failed would fail the next time, too.
func isPermanent(err error) bool {
	what, why := zkconn.Classify(err)
	return what == zkconn.Refused || why == messages.Reason_LIMIT_EXCEEDED
}

// onReleaseRefused deals with a release that ZooKeeper does not do because of err. If the
// node is not of this session, the bridge does not try again.
func (ep *epoch) onReleaseRefused(r *releaseRequest, err error) {
	ep.singles.addBlocking(func() func() {
		node, exists, lookErr := ep.client.Exists(r.path)
		return func() { ep.onReleaseLookup(r, err, node, exists, lookErr) }
	})
}

func (ep *epoch) onReleaseLookup(r *releaseRequest, err error, node zk.Stat, exists bool, lookErr error) {
	_, why := zkconn.Classify(err)
	explained := zkconn.RightOnParent("DELETE", r.path).Explain(err)
	switch {
	case lookErr != nil && !isPermanent(lookErr) && !ep.unknownTooLong(&r.unknownSince):
		ep.retryLater(func() { ep.onReleaseRefused(r, err) })
	case lookErr == nil && !exists:
		ep.released(r, false)
	case lookErr == nil && node.EphemeralOwner != ep.conn.ID():
		ep.fail(r, why, "delete %s: %v", r.path, explained)
	default:
		ep.abandonRelease(r, why, explained)
	}
}

// abandonRelease answers a release whose node may be there still. The node goes later.
func (ep *epoch) abandonRelease(r *releaseRequest, why messages.Reason, err error) {
	ep.addOrphan(r.path, nil, err)
	ep.fail(r, why, "delete %s: it is tried again while the session lives: %v", r.path, err)
}

// rollBackFor deletes the node of a create that cannot be answered because of err.
func (ep *epoch) rollBackFor(c *createRequest, err error) {
	why := finalReason(err)
	err = zkconn.RightOn("READ", c.directory).Explain(err)
	failed := rollbackReply(func(become string) { ep.fail(c, why, "create %s: it was made and %s: %v", c.path(), become, err) })
	ep.batcher.add(write{release: &releaseRequest{replyTo: replyTo{to: failed}, path: zkconn.JoinPath(c.directory, c.node)}})
}

// rollbackReply hears what has become of the node. While it has not heard so the create is open.
type rollbackReply func(become string)

func (f rollbackReply) Tell(msg any) {
	if failed, ok := msg.(*messages.Failed); ok {
		f("is left: " + failed.GetDetail())
		return
	}
	f("is deleted again")
}

// onLookupFailure puts creates off again about which nothing could be learned because of err,
// or answers them if they have been in doubt for too long.
func (ep *epoch) onLookupFailure(creates []*createRequest, err error) {
	for _, c := range creates {
		if _, open := ep.open[c]; !open {
			continue
		}
		switch final := isPermanent(err) || ep.unknownTooLong(&c.unknownSince); {
		case final && c.node != "":
			ep.rollBackFor(c, err)
		case final:
			ep.abandonCreate(c, err)
		default:
			ep.lookUpLater(c)
		}
	}
}

// abandonCreate answers a create, and all creates of its transaction, which may have been
// executed. Nodes that are found later are deleted.
func (ep *epoch) abandonCreate(c *createRequest, err error) {
	all := []*createRequest{c}
	if c.atomic != nil {
		all = c.atomic.creates
	}
	why := finalReason(err)
	err = zkconn.RightOn("READ", c.directory).Explain(err)
	for _, c := range all {
		ep.addOrphan(c.path(), c, err)
		ep.fail(c, why, "create %s may have been executed, and a node that is found later is deleted: %v", c.path(), err)
	}
}
