package inspection

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/zkbridge"
)

// readSemaphore reads the queue of a semaphore in Curator's form. If locks of another recipe are in
// the places of its directories, there is no semaphore.
func (r *reader) readSemaphore(path string) (q Snapshot, err error) {
	requests, _, isQueue, err := r.readDirectory(path+queue.RequestQueueSuffix, mutex)
	if err != nil {
		return q, err
	}
	held, others, areLeases, err := r.readDirectory(path+queue.LeasesSuffix, semaphore)
	if err != nil || !isQueue || !areLeases {
		return q, err
	}
	permits := holdKnown(held, requests, others)
	return semaphoreOf(held, requests, permits), nil
}

// readKazooSemaphore reads the queue of a kazoo Semaphore: it creates a lease only for a holder,
// and its requests wait in a lock beside it.
func (r *reader) readKazooSemaphore(path string, f form, leases []zkbridge.Child) (q Snapshot, err error) {
	requests, _, _, err := r.readDirectory(path+queue.KazooRequestQueueSuffix, mutex)
	if err != nil {
		return q, err
	}
	directory, err := r.data(path)
	if err != nil {
		return q, err
	}
	permits, err := strconv.Atoi(strings.TrimSpace(string(directory.Data)))
	if err != nil {
		permits = 0 // not known
	}
	held := r.contenders(path, f, leases)
	holdKnown(held, nil, 0)
	return semaphoreOf(held, requests, max(0, permits)), nil
}

// readDirectory returns the contenders of a semaphore's request queue or leases, and how many other
// children there are. It returns false if the directory has contenders of another recipe.
func (r *reader) readDirectory(directory, recipe string) (all []Contender, others int, is bool, err error) {
	children, err := r.children(directory)
	if err != nil {
		return nil, 0, false, err
	}
	f, nodes := recognize(children)
	if f.name != recipe {
		return nil, 0, f.name == "", nil
	}
	return r.contenders(directory, f, nodes), len(children) - len(nodes), true, nil
}

// semaphoreOf returns the queue of a semaphore, with the requests behind the leases. It leaves out a
// request for each request that its session's leases show to wait, so that no waiter counts twice.
// Without any there is no semaphore.
func semaphoreOf(held, requests []Contender, permits int) Snapshot {
	if len(held)+len(requests) == 0 {
		return Snapshot{Permits: permits}
	}
	type leases struct { // of one request, or of several without names that one transaction has created
		czxid int64
		data  string // with the record of its holder
	}
	seen, waiting := map[leases]bool{}, map[int64]int{} // by session: requests whose leases may wait
	for _, c := range held {
		if key := (leases{c.Token.Czxid, string(c.Data)}); !c.Holds && !seen[key] {
			seen[key] = true
			waiting[c.Session]++
		}
	}
	requests = slices.DeleteFunc(requests, func(c Contender) bool {
		waiting[c.Session]--
		return waiting[c.Session] >= 0
	})
	for i := range requests {
		requests[i].Kind, requests[i].Holds, requests[i].Ahead = "request", false, len(held)+i
	}
	return Snapshot{semaphore, permits, append(held, requests...)}
}

// holdKnown has those leases hold of which that is known, and returns the number of permits on
// which all leases agree that show one, or 0. others is how many other children the directory has:
// each takes a permit.
//
// Without the number, this is known: a request leaves the request queue when it holds all its
// leases. One transaction has created them, so of a session with n requests the leases of the last
// n transactions may wait. Leases are granted in their order. There is one permit at least, and the
// first lease has it unless others may have taken it.
func holdKnown(held, requests []Contender, others int) (permits int) {
	mayWait := map[int64]int{} // by session: how many more transactions may have created leases that wait
	for _, c := range requests {
		mayWait[c.Session]++
	}
	last, oldest := len(held)-1, map[int64]int64{} // by session: the transaction of the last lease seen
	for ; last > 0 || last == 0 && others > 0; last-- {
		c := held[last]
		if c.Token.Czxid != oldest[c.Session] {
			mayWait[c.Session]--
			oldest[c.Session] = c.Token.Czxid
		}
		if mayWait[c.Session] < 0 {
			break
		}
	}
	permits = agreedPermits(held)
	for i, c := range held {
		held[i].Holds = i <= last
		if n := cmp.Or(c.Permits, permits); n > 0 {
			held[i].Holds = i+others < n
		}
	}
	return permits
}

// agreedPermits returns the number of permits that all contenders have that show one, or 0.
func agreedPermits(all []Contender) (permits int) {
	for _, c := range all {
		if c.Permits != 0 && permits != 0 && c.Permits != permits {
			return 0
		}
		permits = cmp.Or(permits, c.Permits)
	}
	return permits
}
