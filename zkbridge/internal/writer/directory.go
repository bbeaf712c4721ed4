package writer

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

// onMissingDirectory handles a batch whose operation i has no directory. The creates in that
// directory wait until the writer has made it. ZooKeeper has not looked at the operations behind i,
// so the writer looks for their directories, too, all at once.
func (w *Writer) onMissingDirectory(b *batch, i int) {
	missing := b.writes[i].create.directory
	var others []*Group
	for _, g := range b.groups {
		k := slices.IndexFunc(g.creates, func(c *Create) bool { return !createsIn(b.writes[:i], c.directory) })
		if k < 0 {
			others = append(others, g)
			continue
		}
		directory := g.creates[k].directory
		w.waitForDirectory(g, directory, directory == missing)
	}
	w.requeue(others)
}

// waitForDirectory keeps creates until a directory is made. missing reports that ZooKeeper has
// said that there is none; otherwise there may be one.
func (w *Writer) waitForDirectory(g *Group, directory string, missing bool) {
	_, making := w.missingDirectories[directory]
	w.addWaiting(g, directory)
	if !making {
		w.makeDirectory(directory, missing)
	}
}

// awaitedDirectory returns the directory that earlier creates of c's directory wait for, and reports
// whether there is one. It is another directory if the earlier create is part of an atomic create.
func (w *Writer) awaitedDirectory(c *Create) (directory string, waits bool) {
	directory, waits = w.awaited[c.directory]
	return directory, waits
}

// addWaiting has a group wait for a directory, and with it all later creates in the group's directories.
func (w *Writer) addWaiting(g *Group, directory string) {
	w.missingDirectories[directory] = append(w.missingDirectories[directory], g)
	for _, c := range g.creates {
		if _, waits := w.awaited[c.directory]; !waits {
			w.awaited[c.directory] = directory
		}
	}
}

func (w *Writer) makeDirectory(directory string, missing bool) {
	w.epoch.Run(func(client zkconn.Client) func() {
		exists, err := false, error(nil)
		if !missing { // to make a directory that exists may take a right that is not granted
			_, exists, err = client.Exists(directory, false)
		}
		if exists {
			err = nil // also if it may not be read
		} else if err == nil {
			err = zkconn.MakeDirectory(client, directory)
		}
		return func() { w.onDirectoryMade(directory, missing, err) }
	})
}

var errDeletedAgain = fmt.Errorf("%w: the directory is deleted each time that it is made", zk.ErrAPIError)

func (w *Writer) onDirectoryMade(directory string, missing bool, err error) {
	if zkconn.IsTransient(err) {
		w.epoch.RetryLater(func() { w.makeDirectory(directory, missing) })
		return
	}
	creates := w.missingDirectories[directory]
	delete(w.missingDirectories, directory)
	for _, g := range creates {
		for _, c := range g.creates {
			if w.awaited[c.directory] == directory {
				delete(w.awaited, c.directory)
			}
		}
	}
	// Creates of batches that were in flight have come behind later ones.
	slices.SortStableFunc(creates, func(a, b *Group) int { return cmp.Compare(a.arrival, b.arrival) })
	if err == nil || zkconn.IsMissing(err) { // missing: another client has deleted a directory above
		w.requeue(slices.DeleteFunc(creates, func(g *Group) bool { return !w.mayRetry(g, errDeletedAgain) }))
		return
	}
	_, why := zkconn.Classify(err)
	for _, g := range creates {
		w.fail(g, why, err)
	}
}

// maxTries is how often the writer sends a create again because the directory was missing, or because
// ZooKeeper had not executed the create after all.
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
