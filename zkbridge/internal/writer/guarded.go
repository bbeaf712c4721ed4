package writer

import (
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
	"github.com/actorlock/actorlock/zkbridge/zkpath"
)

// createGuarded creates a node on condition that another node of its directory exists.
func (w *Writer) createGuarded(c *Create) {
	c.step = 0
	w.epoch.Run(func(client zkconn.Client) func() {
		err := client.CreateGuarded(c.path(), c.data(), zkpath.Join(c.msg.GetDirectory(), c.msg.GetGuard()))
		if err != nil {
			return func() { w.onGuardedFailure(c, err) }
		}
		found, err := zkconn.LookUp(client, c.msg.GetDirectory(), c.msg.GetPrefix())
		return func() {
			c.node = c.msg.GetPrefix()
			w.onLookup(c, found, err)
		}
	})
}

func (w *Writer) onGuardedFailure(c *Create, err error) {
	switch outcome, why := zkconn.Classify(err); {
	case zkconn.IsMissing(err):
		w.epoch.Fail(c, messages.Reason_NOT_HELD, "create %s: %s is not there any more", c.path(), c.msg.GetGuard())
	case errors.Is(err, zk.ErrNodeExists): // the name has no sequence number that could be exhausted
		w.Fail(c.group, messages.Reason_INVALID, err)
	case outcome == zkconn.Refused:
		w.Fail(c.group, why, zkconn.ExplainRight(w.epoch.Client(), err, "CREATE", c.path()))
	case outcome == zkconn.NotSent:
		w.epoch.RetryLater(func() { w.Create(c.group) })
	default:
		c.group.hangUps.Note(err) // a further attempt looks whether there is to be one
		w.lookUpLater(c)
	}
}
