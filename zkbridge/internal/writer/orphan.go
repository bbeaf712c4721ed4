package writer

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
	"github.com/actorlock/actorlock/zkbridge/zkpath"
)

// orphan is a node that must be deleted and has no request any more. It belongs to the session: the
// end of the epoch ends it, too.
type orphan struct {
	path    string
	create  *Create // that made the node, or may have; nil if path is the whole path
	since   time.Time
	pause   time.Duration // before the next attempt, without jitter
	next    time.Time     // of the next attempt
	logged  time.Time
	deleted bool
}

// orphans holds the orphans of an epoch. A timer is set if and only if there are orphans and no
// sweep is under way; it fires when the first of them is due.
type orphans struct {
	all       []*orphan
	stopTimer func()    // nil if no timer is set
	timerAt   time.Time // when the timer fires
	sweeping  bool
}

const (
	firstOrphanPause = 250 * time.Millisecond
	// MaxOrphanPause is the longest pause between two attempts to delete an orphan.
	MaxOrphanPause = 10 * time.Second
	orphanLogged   = 10 * time.Minute // how often the log repeats that an orphan exists

	// sweptAtOnce is how many orphans are deleted at one moment. A far process with a bad network
	// had hundreds at once, each of which takes three round trips, and free locks waited for them.
	sweptAtOnce = 16
)

// addOrphan adds an orphan because of err: the node at path or, if c is not nil, the node that c
// may have created. The writer looks for the node of c at once, and deletes the other after a
// pause.
func (w *Writer) addOrphan(path string, c *Create, err error) {
	o := &orphan{path: path, create: c, since: time.Now(), pause: firstOrphanPause}
	w.orphans.all = append(w.orphans.all, o)
	if o.next = o.since; c == nil {
		w.postpone(o, err)
	}
	if s := &w.orphans; s.stopTimer == nil || o.next.Before(s.timerAt) {
		w.armSweep()
	}
}

// postpone sets the orphan's next attempt, with a longer pause than before the last one.
func (w *Writer) postpone(o *orphan, err error) {
	now := time.Now()
	o.next = now.Add(o.pause/2 + w.jitter.Below(o.pause/2+1))
	if o.pause = min(2*o.pause, MaxOrphanPause); zkconn.IsHangUp(err) {
		o.pause = MaxOrphanPause // each attempt costs a connection
	}
	if !o.logged.IsZero() && now.Sub(o.logged) < orphanLogged {
		return
	}
	o.logged = now
	what := "a node cannot be deleted, and may hold a lock until it is"
	if o.create != nil {
		what = "a node may have been made, cannot be looked for, and may hold a lock until it is deleted"
	}
	w.cfg.Log.Error(what, "node", o.path, "since", o.since, "why", err, "epoch", w.cfg.Session.Epoch,
		"do", "grant the right that is missing, or delete the node; it is tried again while the session lives, and goes with it")
}

// armSweep sets the timer for the orphan that is due first.
func (w *Writer) armSweep() {
	s := &w.orphans
	s.stop()
	if s.sweeping || len(s.all) == 0 {
		return
	}
	s.timerAt = slices.MinFunc(s.all, func(a, b *orphan) int { return a.next.Compare(b.next) }).next
	s.stopTimer = w.epoch.AfterFunc(time.Until(s.timerAt), w.sweep)
}

func (s *orphans) stop() {
	if s.stopTimer != nil {
		s.stopTimer()
		s.stopTimer = nil
	}
}

// sweep tries to delete the orphans that are due, some at once: other requests do not wait for
// them, however many there are.
func (w *Writer) sweep() {
	now := time.Now()
	due := slices.DeleteFunc(slices.Clone(w.orphans.all), func(o *orphan) bool { return o.next.After(now) })
	w.orphans.stop()
	w.orphans.sweeping = true
	session := w.cfg.Session.ID()
	w.epoch.Run(func(client zkconn.Client) func() {
		results := make([]error, len(due))
		var all errgroup.Group
		all.SetLimit(sweptAtOnce)
		for i := range due {
			all.Go(func() error {
				results[i] = due[i].delete(client, session)
				return nil
			})
		}
		all.Wait()
		return func() { w.onSwept(due, results) }
	})
}

func (w *Writer) onSwept(due []*orphan, results []error) {
	s := &w.orphans
	s.sweeping = false
	for i, o := range due {
		if errors.Is(results[i], errHidden) {
			w.epoch.EndSession(o.path, results[i])
			return
		}
		if results[i] != nil {
			w.postpone(o, results[i])
			continue
		}
		if o.deleted = true; !o.logged.IsZero() {
			w.cfg.Log.Info("a node that could not be deleted is gone", "node", o.path, "since", o.since, "epoch", w.cfg.Session.Epoch)
		}
	}
	s.all = slices.DeleteFunc(s.all, func(o *orphan) bool { return o.deleted })
	w.armSweep()
}

// delete deletes the node. It returns nil if there is none. It reads what the actor does not change.
func (o *orphan) delete(client zkconn.Client, session int64) error {
	path := o.path
	if o.create != nil {
		node, err := o.create.findNode(client, session)
		if err != nil || node == "" {
			return err
		}
		path = zkpath.Join(o.create.msg.GetDirectory(), node)
	}
	err := deleteNode(client, path)
	if zkconn.IsMissing(err) {
		return nil
	}
	return zkconn.ExplainRight(client, err, "DELETE", path)
}

// errHidden is the error of a create whose node the session cannot look for, now or later.
var errHidden = errors.New("the server lists neither the session's nodes nor the directory")

// findNode returns the node that the create has made in the session, or "". A server that can list
// the session's nodes, as ZooKeeper can since 3.6, needs neither the right to read the directory
// nor an answer of the directory's size. The error is errHidden if there is no other way either.
func (c *Create) findNode(client zkconn.Client, session int64) (string, error) {
	err := zkconn.Barrier(client, c.msg.GetDirectory())
	switch {
	case zkconn.IsMissing(err):
		return "", nil
	case err != nil && !errors.Is(err, zk.ErrNoAuth): // a refusal is the answer to a barrier, too
		return "", err
	}
	paths, err := client.Ephemerals(c.path())
	if err == nil {
		for i, path := range paths {
			_, paths[i] = zkpath.Split(path)
		}
		slices.Sort(paths)
		return c.nodeIn(paths), nil
	}
	if outcome, _ := zkconn.Classify(err); outcome != zkconn.Refused {
		return "", err
	}
	found, err := lookUpCreates(client, c.msg.GetDirectory(), []*Create{c})
	switch {
	case err != nil && isPermanent(err):
		return "", fmt.Errorf("%w: %w", errHidden, zkconn.ExplainRight(client, err, "READ", c.msg.GetDirectory()))
	case err != nil || found[0].Exists && found[0].Stat.EphemeralOwner != session:
		return "", err
	}
	return found[0].Node, nil
}
