package writer

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

// onMissingDirectory handles a batch whose create c has no directory. ZooKeeper has not looked at the
// writes behind it; the reads behind the transaction say which of their directories are missing.
func (w *Writer) onMissingDirectory(b *batch, c *Create) {
	gone := map[string]bool{c.msg.GetDirectory(): true}
	for _, r := range b.reads {
		if zkconn.IsMissing(r.Err) {
			gone[r.Path] = true
		}
	}
	if len(b.directories) > 0 {
		w.onMissingAgain(b, c.in, gone)
		return
	}
	var others []*Group
	for _, g := range b.groups {
		if !slices.ContainsFunc(g.creates, func(c *Create) bool { return gone[c.msg.GetDirectory()] }) {
			others = append(others, g)
			continue
		}
		if !w.mayRetry(g, errDeletedAgain) {
			continue
		}
		w.forget(g)
		for _, c := range g.creates {
			if gone[c.msg.GetDirectory()] {
				w.noteMissing(c.msg.GetDirectory()) // it may be open
				c.exists, c.seen = false, false
			}
		}
		w.enter(g, true)
		for _, c := range g.creates {
			if gone[c.msg.GetDirectory()] {
				w.noteMissing(c.msg.GetDirectory())
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
		w.tell(d, missing)
		if d.refusal != nil {
			w.failSent(d, d.refusal)
			if d.required == d.path {
				d.state = exists // no later transaction makes it
			} else {
				d.refusal = nil // the next transaction tries to make it again
			}
		} else if d == first {
			w.countTry(d)
		}
	}
	w.makeReadyAgain(b)
}

// countTry counts one more attempt of the creates of a directory that are sent.
func (w *Writer) countTry(d *directory) {
	for _, g := range slices.Clone(d.line[:d.sent]) {
		w.mayRetry(g, errDeletedAgain)
	}
}

// failSent ends the creates of a directory that are sent. For those behind them ZooKeeper is asked
// anew: they may have come after another client has made the directory.
func (w *Writer) failSent(d *directory, err error) {
	_, why := zkconn.Classify(err)
	for _, g := range slices.Clone(d.line[:d.sent]) {
		w.Fail(g, why, err)
	}
}

// onContainerFailed handles a batch that could not make its directory i. ZooKeeper has not looked
// at those behind it.
func (w *Writer) onContainerFailed(b *batch, i int, err error) {
	w.countFailure(b)
	failed, behind := b.containers[i], b.containers[i:]
	switch {
	case errors.Is(err, zk.ErrNodeExists):
		for _, c := range behind {
			w.onExisting(c.of, failed.path)
		}
	case zkconn.IsMissing(err):
		w.countTry(failed.of)
		w.survey(b, behind)
		return
	case !errors.Is(err, zk.ErrNoAuth):
		failed.of.refuse(w.epoch.Client(), err, failed.path)
	default:
		for _, c := range behind { // the right is missing for all in that directory
			for _, path := range c.of.paths() {
				if parentOf(path) == parentOf(failed.path) {
					c.of.refuse(w.epoch.Client(), err, path)
				}
			}
		}
	}
	w.makeReadyAgain(b)
}

// onExisting notes what it says of a directory that another, or itself, exists and was taken for
// missing. What was guessed in the same way is guessed the other way: reads behind the next
// transaction say whether that is right.
func (w *Writer) onExisting(d *directory, path string) {
	switch i := slices.Index(d.paths(), path); {
	case i == 0:
		w.tell(d, exists)
	case d.guessed:
		d.state, d.above = exists, 0
	case i > 0:
		d.above = i - 1
	}
}

// refuse notes that ZooKeeper does not make the directory, or the one above it at path. To make one
// that exists may take a right that is not granted: the next transaction shows whether it does.
func (d *directory) refuse(client zkconn.Client, err error, path string) {
	if !d.persistent && !errors.Is(err, zk.ErrNoAuth) {
		d.persistent = true // the server may not know containers
		return
	}
	d.state, d.above = exists, 0
	d.refusal = zkconn.MakeError(client, err, path)
}

// missingError returns the error for a directory that must exist, and does not.
func missingError(client zkconn.Client, path string) error {
	return fmt.Errorf("directory %s %w", client.FullPath(path), zkconn.ErrNoDirectory)
}

// countFailure counts a failure of the batch for each of its groups: after some, each goes alone.
func (w *Writer) countFailure(b *batch) {
	for _, g := range b.groups {
		g.failures++
	}
}

// survey reads which directories are missing above those that a batch was to make. Then it sends the
// batch again, with all that is missing.
func (w *Writer) survey(b *batch, behind []container) {
	clear(b.readIndex)
	b.reads = b.reads[:0]
	for _, c := range behind {
		for path := parentOf(c.of.path); ; path = parentOf(path) { // the root is above itself
			if _, asked := b.readIndex[path]; asked {
				break
			}
			b.readIndex[path] = int32(len(b.reads))
			b.reads = append(b.reads, zkconn.DirectoryRead{Path: path})
		}
	}
	w.newInFlight.add(b)
	w.epoch.Client().ReadDirectories(b.reads, func() { w.epoch.Post(func() { w.onSurveyed(b, behind) }) })
}

func (w *Writer) onSurveyed(b *batch, behind []container) {
	w.newInFlight.remove(b)
	isMissing := func(path string) bool { return zkconn.IsMissing(b.reads[b.readIndex[path]].Err) } // one that may not be read exists
	switch {
	case slices.ContainsFunc(b.reads, func(r zkconn.DirectoryRead) bool { return zkconn.IsTransient(r.Err) }):
		w.retryUnsent(b)
		return
	case isMissing("/"):
		w.makeMissing(b, b.directories, func(client zkconn.Client) error { return zkconn.MakeDirectory(client, "/") })
		return
	}
	for _, c := range behind {
		d := c.of
		if d.required != "" && isMissing(d.required) {
			w.failSent(d, missingError(w.epoch.Client(), d.required))
			continue
		}
		d.above = 0
		for path := parentOf(d.path); isMissing(path); path = parentOf(path) {
			d.above++
			w.tell(d, missing)
		}
	}
	if paths, of := b.tooManyAbove(); len(paths) > 0 {
		for _, d := range of {
			d.above = 0 // the next transaction shows what is missing after all
		}
		w.makeMissing(b, of, func(client zkconn.Client) error { return w.makeAll(client, paths) })
		return
	}
	w.makeReadyAgain(b)
}

// tooManyAbove returns the directories above those of the batch that are too many for the
// transaction of their creates, or too large, in an order in which they can be made. of has those
// that they are above.
func (b *batch) tooManyAbove() (paths []string, of []*directory) {
	for _, g := range b.groups {
		made, size := map[string]bool{}, b.bytesOf(g)
		for _, d := range g.directories {
			for _, path := range d.paths() {
				if d.state == missing && !made[path] {
					made[path] = true
					size += containerBytes(path, b.root, int(g.creates[0].aclBytes))
				}
			}
		}
		if size <= zkconn.MaxRequest && len(made)+len(g.creates)+1 <= maxOps {
			continue
		}
		for _, d := range g.directories {
			if d.state == missing && d.above > 0 && !slices.Contains(of, d) {
				of = append(of, d)
				paths = append(paths, d.paths()[1:]...)
			}
		}
	}
	slices.SortFunc(paths, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) })
	return slices.Compact(paths), of
}

// makeMissing calls run, which makes directories above those in of, or the chroot. Then the batch is sent again.
func (w *Writer) makeMissing(b *batch, of []*directory, run func(zkconn.Client) error) {
	w.newInFlight.add(b)
	w.epoch.Run(func(client zkconn.Client) func() {
		err := run(client)
		return func() {
			w.newInFlight.remove(b)
			switch {
			case zkconn.IsTransient(err):
				w.retryUnsent(b)
				return
			case err != nil && !zkconn.IsMissing(err): // missing: another client has deleted one
				for _, d := range of {
					w.failSent(d, err)
				}
			}
			w.makeReadyAgain(b)
		}
	})
}

// makeAll makes directories, each of which comes behind the one above it.
func (w *Writer) makeAll(client zkconn.Client, paths []string) error {
	acl := zkconn.ACLBytes(w.cfg.ACL)
	for len(paths) > 0 {
		piece := paths[:zkconn.Sharing(len(paths), maxOps, func(i int) int { return containerBytes(paths[i], len(w.cfg.Root), acl) })]
		paths = paths[len(piece):]
		ops := make([]zkconn.Op, len(piece))
		for i, path := range piece {
			ops[i] = zkconn.Op{Kind: zkconn.OpContainer, Path: path, Data: zkconn.NoData, ACL: w.cfg.ACL}
		}
		switch _, err := zkconn.Multi(client, ops...); {
		case err == nil:
			continue
		case zkconn.IsTransient(err):
			return err
		}
		for _, path := range piece { // one exists meanwhile, or may not be a container
			if err := zkconn.MakeDirectory(client, path); err != nil {
				return err
			}
		}
	}
	return nil
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
	w.Fail(g, why, err)
	return false
}
