package zkbridge

import (
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
)

// A node that stays although nobody answers for it holds a lock until its session
// ends. Where there is no other way to be rid of one, the session has to end.

// forsake gives the session up. The server removes its nodes as it closes.
func (ep *epoch) forsake(format string, args ...any) {
	detail := "the session is given up, so that no node is left: " + fmt.Sprintf(format, args...)
	ep.core.cfg.log.Error("bridge closes its session", "epoch", ep.number, "why", detail)
	ep.core.befalls(forsaken, detail)
}

// unresolvedFor is how many session timeouts a request may be without a result
// while its session lives.
const unresolvedFor = 3

// tooLong tells if a request has been in doubt for longer than can be borne. since
// is when that began; the first call sets it.
func (ep *epoch) tooLong(since *time.Time) bool {
	if since.IsZero() {
		*since = time.Now()
	}
	return time.Since(*since) > unresolvedFor*time.Duration(ep.link.timeout.Load())
}

// hopeless tells if a read that failed would fail the next time, too.
func hopeless(err error) bool {
	what, why := judge(err)
	return what == refused || why == messages.Reason_LIMIT_EXCEEDED
}

// cannotRelease deals with a release that ZooKeeper does not do. If the node is not
// of this session, it is no concern of ours.
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
	case ep.tooLong(&r.since):
		ep.forsake("delete %s: %v", r.path, explained)
	case lookErr != nil && !hopeless(lookErr):
		ep.again(func() { ep.cannotRelease(r, err) })
	case lookErr == nil && !exists:
		ep.released(r, false)
	case lookErr == nil && node.EphemeralOwner != ep.link.id.Load():
		ep.fail(r, why, "delete %s: %v", r.path, explained)
	default:
		ep.forsake("delete %s: %v", r.path, explained)
	}
}

// undo deletes the node of a create that cannot be answered because of err.
func (ep *epoch) undo(c *create, err error) {
	_, why := judge(err)
	err = need{"READ", c.directory}.explain(err)
	failed := undone(func() { ep.fail(c, why, "create %s: it was made and is deleted again: %v", c.path(), err) })
	ep.outbox.add(write{r: &release{asker: asker{to: failed}, path: joinPath(c.directory, c.node)}})
}

// undone hears that the node is gone. While that is open the create is, too.
type undone func()

func (f undone) Tell(any) { f() }

// unresolved puts creates off again about which nothing could be learned, if there
// is hope still.
func (ep *epoch) unresolved(creates []*create, err error) {
	for _, c := range creates {
		if hopeless(err) || ep.tooLong(&c.since) {
			err = need{"READ", c.directory}.explain(err)
			ep.forsake("create %s may have been executed: %v", c.path(), err)
			return // they all have been answered
		}
	}
	for _, c := range creates {
		ep.doubt(c)
	}
}
