package zkbridge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
)

// maxTries is how often a create is sent again because its directory was missing, or
// because it was not executed after all.
const maxTries = 100

// place sends a create on its way.
func (ep *epoch) place(c *create) {
	if c.beside != "" {
		ep.createBeside(c)
		return
	}
	ep.outbox.add(write{c: c})
}

// replace sends a create again that was not executed because of err.
func (ep *epoch) replace(c *create, err error) {
	if ep.mayRetry(write{c: c}, err) {
		ep.place(c)
	}
}

// mayRetry counts one more attempt. It fails the creates of w and reports false if there
// were too many.
func (ep *epoch) mayRetry(w write, err error) bool {
	first := w.creates()[0]
	if first.tries++; first.tries <= maxTries {
		return true
	}
	_, why := judge(err)
	ep.failWrite(w, why, err)
	return false
}

// failWrite ends creates that were not executed.
func (ep *epoch) failWrite(w write, why messages.Reason, err error) {
	if w.j != nil {
		ep.failJoint(w.j, why, err)
		return
	}
	ep.failCreate(w.c, why, err)
}

// inMissing keeps creates until their directory is made. It is missing or, unless sure, may be.
func (ep *epoch) inMissing(directory string, sure bool, writes []write) {
	if ep.makings == nil {
		ep.makings = map[string][]write{}
	}
	waiting, making := ep.makings[directory]
	ep.makings[directory] = append(waiting, writes...)
	if !making {
		ep.makeDirectory(directory, sure)
	}
}

// waitsForMaking reports whether an earlier create of c's directory waits for a directory that is
// being made, and returns that directory. It is another one if the earlier create is part of a
// joint.
func (ep *epoch) waitsForMaking(c *create) (directory string, waits bool) {
	if _, making := ep.makings[c.directory]; making {
		return c.directory, true
	}
	for _, directory := range slices.Sorted(maps.Keys(ep.makings)) {
		for _, w := range ep.makings[directory] {
			if w.j != nil && w.j.createsIn(c.directory) {
				return directory, true
			}
		}
	}
	return "", false
}

var errDeletedAgain = fmt.Errorf("%w: the directory is deleted each time that it is made", zk.ErrAPIError)

func (ep *epoch) makeDirectory(directory string, sure bool) {
	ep.solos.do(func() func() {
		exists, err := false, error(nil)
		if !sure { // to make what is there may take a right that is missing
			_, exists, err = ep.client.Exists(directory)
		}
		if err == nil && !exists {
			_, err = makeDirectory(ep.client, directory)
		}
		return func() { ep.madeDirectory(directory, sure, err) }
	})
}

func (ep *epoch) madeDirectory(directory string, sure bool, err error) {
	what, why := refused, messages.Reason_REASON_UNSPECIFIED
	if err != nil {
		what, why = judge(err)
	}
	if what == lost || what == notSent {
		ep.again(func() { ep.makeDirectory(directory, sure) })
		return
	}
	writes := ep.makings[directory]
	delete(ep.makings, directory)
	// Those of transactions that were under way have come behind later ones.
	slices.SortStableFunc(writes, func(a, b write) int { return cmp.Compare(a.creates()[0].arrival, b.creates()[0].arrival) })
	if err == nil || isMissing(err) { // another client has deleted what was made above it
		ep.outbox.requeue(slices.DeleteFunc(writes, func(w write) bool { return !ep.mayRetry(w, errDeletedAgain) }))
		return
	}
	for _, w := range writes {
		ep.failWrite(w, why, err)
	}
}
