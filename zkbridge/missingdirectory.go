package zkbridge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

// maxTries is how often a create is sent again because its directory was missing, or
// because it was not executed after all.
const maxTries = 100

// submit sends a create on its way.
func (ep *epoch) submit(c *createRequest) {
	if c.beside != "" {
		ep.createBeside(c)
		return
	}
	ep.batcher.add(write{create: c})
}

// resubmit sends a create again that was not executed because of err.
func (ep *epoch) resubmit(c *createRequest, err error) {
	if ep.mayRetry(write{create: c}, err) {
		ep.submit(c)
	}
}

// mayRetry counts one more attempt. It fails the creates of w and reports false if there
// were too many.
func (ep *epoch) mayRetry(w write, err error) bool {
	first := w.creates()[0]
	if first.tries++; first.tries <= maxTries {
		return true
	}
	_, why := zkconn.Classify(err)
	ep.failWrite(w, why, err)
	return false
}

// failWrite ends creates that were not executed.
func (ep *epoch) failWrite(w write, why messages.Reason, err error) {
	if w.atomic != nil {
		ep.failAtomic(w.atomic, why, err)
		return
	}
	ep.failCreate(w.create, why, err)
}

// waitForDirectory keeps creates until their directory is made. It is missing or, unless sure, may be.
func (ep *epoch) waitForDirectory(directory string, sure bool, writes []write) {
	if ep.missingDirectories == nil {
		ep.missingDirectories = map[string][]write{}
	}
	waiting, making := ep.missingDirectories[directory]
	ep.missingDirectories[directory] = append(waiting, writes...)
	if !making {
		ep.makeDirectory(directory, sure)
	}
}

// waitsForDirectory reports whether an earlier create of c's directory waits for a missing
// directory, and returns that directory. It is another one where the earlier create is part of an
// atomic create.
func (ep *epoch) waitsForDirectory(c *createRequest) (directory string, waits bool) {
	if _, missing := ep.missingDirectories[c.directory]; missing {
		return c.directory, true
	}
	for _, directory := range slices.Sorted(maps.Keys(ep.missingDirectories)) {
		for _, w := range ep.missingDirectories[directory] {
			if w.atomic != nil && w.atomic.createsIn(c.directory) {
				return directory, true
			}
		}
	}
	return "", false
}

var errDeletedAgain = fmt.Errorf("%w: the directory is deleted each time that it is made", zk.ErrAPIError)

func (ep *epoch) makeDirectory(directory string, sure bool) {
	ep.singles.addBlocking(func() func() {
		exists, err := false, error(nil)
		if !sure { // to make what is there may take a right that is missing
			_, exists, err = ep.client.Exists(directory)
		}
		if err == nil && !exists {
			_, err = zkconn.MakeDirectory(ep.client, directory)
		}
		return func() { ep.onDirectoryMade(directory, sure, err) }
	})
}

func (ep *epoch) onDirectoryMade(directory string, sure bool, err error) {
	what, why := zkconn.Refused, messages.Reason_REASON_UNSPECIFIED
	if err != nil {
		what, why = zkconn.Classify(err)
	}
	if what == zkconn.ConnectionLost || what == zkconn.NotSent {
		ep.retryLater(func() { ep.makeDirectory(directory, sure) })
		return
	}
	writes := ep.missingDirectories[directory]
	delete(ep.missingDirectories, directory)
	// Those of transactions that were under way have come behind later ones.
	slices.SortStableFunc(writes, func(a, b write) int { return cmp.Compare(a.creates()[0].arrival, b.creates()[0].arrival) })
	if err == nil || zkconn.IsMissing(err) { // another client has deleted what was made above it
		ep.batcher.requeue(slices.DeleteFunc(writes, func(w write) bool { return !ep.mayRetry(w, errDeletedAgain) }))
		return
	}
	for _, w := range writes {
		ep.failWrite(w, why, err)
	}
}
