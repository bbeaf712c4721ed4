package writer

import (
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

// onMissingDirectory handles a batch whose create i has no directory. ZooKeeper has not looked at
// the writes behind it; the reads behind the transaction say which of their directories are
// missing.
func (w *Writer) onMissingDirectory(b *batch, i int) {
	gone := map[string]bool{b.writes[i].create.directory: true}
	for _, r := range b.reads {
		if zkconn.IsMissing(r.err) {
			gone[r.directory] = true
		}
	}
	if len(b.directories) > 0 {
		w.onMissingAgain(b, b.writes[i].create.in, gone)
		return
	}
	var others []*Group
	for _, g := range b.groups {
		if !slices.ContainsFunc(g.creates, func(c *Create) bool { return gone[c.directory] }) {
			others = append(others, g)
			continue
		}
		if !w.mayRetry(g, errDeletedAgain) {
			continue
		}
		w.forget(g)
		for _, c := range g.creates {
			if gone[c.directory] {
				w.noteMissing(c.directory) // it may be open
				c.exists, c.seen = false, false
			}
		}
		w.enter(g)
		for _, c := range g.creates {
			if gone[c.directory] {
				w.noteMissing(c.directory)
			}
		}
	}
	w.requeue(others)
}

// onMissingAgain is onMissingDirectory for a batch from the lines of directories.
func (w *Writer) onMissingAgain(b *batch, first *directory, gone map[string]bool) {
	w.countFailure(b)
	for _, d := range b.directories {
		if !gone[d.path] || d.state == missing && d != first {
			continue
		}
		if d.state = missing; d.refusal != nil {
			w.failLine(d, d.refusal)
			continue
		}
		if d == first {
			for _, g := range slices.Clone(d.line[:d.sent]) {
				w.mayRetry(g, errDeletedAgain)
			}
		}
	}
	w.offerAgain(b)
}

// failLine ends all creates that wait for a directory.
func (w *Writer) failLine(d *directory, err error) {
	_, why := zkconn.Classify(err)
	for _, g := range slices.Clone(d.line) {
		w.fail(g, why, err)
	}
}

// onContainerFailed handles a batch that could not make its directory i. ZooKeeper has not looked
// at those behind it.
func (w *Writer) onContainerFailed(b *batch, i int, err error) {
	w.countFailure(b)
	d, behind := b.containers[i], b.containers[i:]
	switch {
	case errors.Is(err, zk.ErrNodeExists):
		for _, d := range behind { // others may exist, too: reads behind the next transaction say which of them do
			d.state = there
		}
	case zkconn.IsMissing(err):
		w.makeParents(b, behind)
		return
	case !errors.Is(err, zk.ErrNoAuth):
		d.refuse(w.epoch.Client(), err)
	default:
		for _, d := range behind { // the right is missing for all in that directory
			if parentOf(d.path) == parentOf(b.containers[i].path) {
				d.refuse(w.epoch.Client(), err)
			}
		}
	}
	w.offerAgain(b)
}

// refuse notes that ZooKeeper does not make the directory. To make one that exists may take a right
// that is not granted: the next transaction shows whether it does.
func (d *directory) refuse(client zkconn.Client, err error) {
	if !d.persistent && !errors.Is(err, zk.ErrNoAuth) {
		d.persistent = true // the server may not know containers
		return
	}
	d.state = there
	d.refusal = zkconn.MakeError(client, err, d.path)
}

// countFailure counts a failure of the batch for each of its groups: after some, each goes alone.
func (w *Writer) countFailure(b *batch) {
	for _, g := range b.groups {
		g.failures++
	}
}

// makeParents makes the directories above the directories of a batch, of which the first is known
// to be missing. Then it has the batch sent again.
func (w *Writer) makeParents(b *batch, below []*directory) {
	w.newInFlight = append(w.newInFlight, b) // until the parents are made
	var parents []string
	for _, d := range below {
		if parent := parentOf(d.path); !slices.Contains(parents, parent) {
			parents = append(parents, parent)
		}
	}
	w.epoch.Run(func(client zkconn.Client) func() {
		errs := make([]error, len(parents))
		var g errgroup.Group
		for i, parent := range parents {
			g.Go(func() error {
				errs[i] = makeIfMissing(client, parent, i == 0)
				return nil
			})
		}
		g.Wait()
		return func() { w.onParentsMade(b, below, parents, errs) }
	})
}

// makeIfMissing makes a directory. To make one that exists may take a right that is not granted.
func makeIfMissing(client zkconn.Client, directory string, missing bool) error {
	if !missing {
		if _, exists, err := client.Exists(directory, false); exists { // also if it may not be read
			return nil
		} else if err != nil {
			return err
		}
	}
	return zkconn.MakeDirectory(client, directory)
}

func (w *Writer) onParentsMade(b *batch, below []*directory, parents []string, errs []error) {
	w.newInFlight = without(w.newInFlight, b)
	retry := false
	for i, err := range errs {
		switch {
		case err == nil || zkconn.IsMissing(err): // missing: another client has deleted a directory above
		case zkconn.IsTransient(err):
			retry = true
		default:
			for _, d := range below {
				if parentOf(d.path) == parents[i] {
					w.failLine(d, err)
				}
			}
		}
	}
	if retry {
		w.retryUnsent(b)
		return
	}
	w.offerAgain(b)
}

var errDeletedAgain = fmt.Errorf("%w: the directory is deleted each time that it is made", zk.ErrAPIError)

// maxTries is how often the writer sends a create again because the directory was missing, or
// because ZooKeeper had not executed the create after all.
const maxTries = 100

// mayRetry counts one more attempt. If there were too many, it fails the creates and returns false.
func (w *Writer) mayRetry(g *Group, err error) bool {
	if g.tries++; g.tries <= maxTries {
		return true
	}
	_, why := zkconn.Classify(err)
	w.fail(g, why, err)
	return false
}
