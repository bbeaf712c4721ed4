package writer

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
	"github.com/actorlock/actorlock/zkbridge/zkpath"
)

// lookUpLater keeps a create whose outcome is unknown until the writer has looked for its node.
func (w *Writer) lookUpLater(c *Create) {
	if len(w.unknownCreates) == 0 {
		w.epoch.RetryAfter(c.group.hangUps.Pause(), w.lookUpUnknown)
	}
	w.unknownCreates = append(w.unknownCreates, c)
}

// lookUpUnknown looks for the nodes of all creates whose outcome is unknown, directory by
// directory.
func (w *Writer) lookUpUnknown() {
	byDirectory := map[string][]*Create{}
	for _, c := range w.unknownCreates {
		byDirectory[c.msg.GetDirectory()] = append(byDirectory[c.msg.GetDirectory()], c)
	}
	w.unknownCreates = nil
	for _, directory := range slices.Sorted(maps.Keys(byDirectory)) {
		creates := byDirectory[directory]
		w.epoch.Run(func(client zkconn.Client) func() {
			lookups, err := lookUpCreates(client, directory, creates)
			return func() { w.onLookups(creates, lookups, err) }
		})
	}
}

func (w *Writer) onLookups(creates []*Create, lookups []zkconn.Lookup, err error) {
	if err != nil {
		w.onLookupFailure(creates, err)
		return
	}
	for i, c := range creates {
		if !w.epoch.IsOpen(c) {
			continue // answered with another part of its atomic create
		}
		if lookups[i].Exists && lookups[i].Stat.EphemeralOwner != w.cfg.Session.ID() {
			lookups[i] = zkconn.Lookup{} // of the same name, but of another session
		}
		c.unknownSince = 0
		switch {
		case len(c.group.creates) > 1 && c.node == "":
			w.onAtomicLookup(c, &lookups[i])
		case lookups[i].Node != "":
			c.node = lookups[i].Node
			fallthrough
		case c.node != "":
			w.onLookup(c, lookups[i], nil)
		default:
			w.resubmit(c.group)
		}
	}
}

// onAtomicLookup handles the lookup of a part whose outcome is unknown. ZooKeeper has executed the
// atomic create if any of its nodes exists: the other nodes were deleted since.
func (w *Writer) onAtomicLookup(c *Create, l *zkconn.Lookup) {
	g := c.group
	c.lookup = l
	if g.lookedUp++; int(g.lookedUp) < len(g.creates) {
		return
	}
	g.lookedUp = 0
	if !slices.ContainsFunc(g.creates, func(c *Create) bool { return c.lookup.Node != "" }) {
		w.resubmit(g)
		return
	}
	for _, c := range g.creates {
		c.node = c.lookup.Node
		w.onLookup(c, *c.lookup, nil)
	}
}

var errNotExecuted = fmt.Errorf("%w: it is repeatedly lost", zk.ErrAPIError)

// resubmit sends creates again that ZooKeeper has not executed.
func (w *Writer) resubmit(g *Group) {
	if err := g.hangUps.Final(); err != nil {
		w.Fail(g, messages.Reason_UNAVAILABLE, err)
	} else if w.mayRetry(g, errNotExecuted) {
		w.Create(g)
	}
}

// lookUpCreated reads the czxid of a node whose batch has not returned its zxid.
func (w *Writer) lookUpCreated(c *Create, node string) {
	c.node = node
	w.epoch.Run(func(client zkconn.Client) func() {
		l, err := zkconn.LookUp(client, c.msg.GetDirectory(), node)
		return func() { w.onLookup(c, l, err) }
	})
}

// onLookup ends a create whose node is known to have been created. A node that does not exist was
// deleted since.
func (w *Writer) onLookup(c *Create, l zkconn.Lookup, err error) {
	switch {
	case err != nil && isPermanent(err):
		w.rollBack(c, err)
	case err != nil:
		w.lookUpLater(c)
	case !l.Exists:
		w.epoch.Fail(c, messages.Reason_NODE_DELETED, "%s was deleted right after its creation", zkpath.Join(c.msg.GetDirectory(), c.node))
	default:
		w.created(c, &messages.Created{Id: c.ID, Epoch: c.Epoch, Node: l.Node, Czxid: l.Stat.Czxid, Step: c.step,
			Children: l.Listing.Children, DirectoryCzxid: l.Listing.Czxid})
	}
}

// onLookupFailure has creates looked for again about which the writer has learned nothing because
// of err, or answers those whose outcome has been unknown for too long.
func (w *Writer) onLookupFailure(creates []*Create, err error) {
	for _, c := range creates {
		if !w.epoch.IsOpen(c) {
			continue
		}
		switch final := isPermanent(err) || w.unknownTooLong(&c.unknownSince); {
		case final && c.node != "":
			w.rollBack(c, err)
		case final:
			w.abandonCreate(c, err)
		default:
			w.lookUpLater(c)
		}
	}
}

// lookUpCreates looks for the nodes of creates in their directory, behind a barrier: a transaction
// may still be on its way to the server.
func lookUpCreates(client zkconn.Client, directory string, creates []*Create) ([]zkconn.Lookup, error) {
	var listing zkconn.Listing
	err := zkconn.Barrier(client, directory)
	if err == nil {
		listing, err = zkconn.Children(client, directory, false)
	}
	if err != nil && !zkconn.IsMissing(err) {
		return nil, err
	}
	slices.Sort(listing.Children)
	found := make([]zkconn.Lookup, len(creates))
	var g errgroup.Group
	g.SetLimit(8)
	for i, c := range creates {
		node := c.nodeIn(listing.Children) // none in a missing directory
		if node == "" {
			continue
		}
		g.Go(func() (err error) {
			l := &found[i]
			l.Node, l.Listing = node, listing
			if !c.msg.GetListAfter() && i < len(creates)-1 { // one list is enough for the lock: there may be many creates, and many names
				l.Listing.Children = nil
			}
			path := zkpath.Join(directory, node)
			l.Stat, l.Exists, err = client.Exists(path)
			return zkconn.ExplainRight(client, err, "READ", path)
		})
	}
	return found, g.Wait()
}

// nodeIn returns the create's node among the sorted names in the directory, or "".
func (c *Create) nodeIn(sorted []string) string {
	if c.msg.GetGuard() == "" {
		return findSequential(sorted, c.msg.GetPrefix())
	}
	if _, found := slices.BinarySearch(sorted, c.msg.GetPrefix()); found {
		return c.msg.GetPrefix()
	}
	return ""
}

// findSequential returns the name that is the prefix and a sequence number, or "", of names that
// are sorted.
func findSequential(sorted []string, prefix string) string {
	first, _ := slices.BinarySearch(sorted, prefix)
	for _, name := range sorted[first:] {
		rest, ok := strings.CutPrefix(name, prefix)
		switch {
		case !ok:
			return ""
		case isSequenceNumber(rest):
			return name
		}
	}
	return ""
}

// isSequenceNumber reports whether ZooKeeper appends s to a name: ten digits, or a minus sign and
// nine or ten. A name of another prefix that begins alike has more.
func isSequenceNumber(s string) bool {
	_, err := strconv.ParseInt(s, 10, 32)
	digits := strings.TrimPrefix(s, "-")
	return err == nil && len(s) >= sequenceSize && len(digits) <= sequenceSize && digits[0] != '+'
}

// MaxUnknownTimeouts is how many session timeouts the outcome of a request may stay unknown. After
// that the writer answers without it, though the session lives.
const MaxUnknownTimeouts = 3

// unknownTooLong reports whether the outcome of a request has been unknown for too long. since is
// when that began; the first call sets it.
func (w *Writer) unknownTooLong(since *time.Duration) bool {
	now := w.cfg.Clock.Now()
	if *since == 0 {
		*since = max(now, 1) // the clock may begin with 0
	}
	return now-*since > MaxUnknownTimeouts*w.cfg.Session.Timeout()
}

// isPermanent reports whether a read that failed would fail the next time, too.
func isPermanent(err error) bool {
	outcome, why := zkconn.Classify(err)
	return outcome == zkconn.Refused || why == messages.Reason_LIMIT_EXCEEDED
}
