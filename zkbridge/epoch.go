package zkbridge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/actorlock/actorlock/messages"
)

// epoch is all that the bridge does within one session. When the session is over
// the epoch is dropped as a whole, so that nothing of it can run in the next.
type epoch struct {
	core   *core
	number uint64
	link   *link
	client client
	up     bool // CONNECTED: jobs may start
	over   bool

	started bool     // the session is ready for requests; see begin
	reading bool     // the generation's node is being read
	unclear []func() // to be done when the generation has been read
	noToken error    // why there can be no tokens, if there cannot
	own     string   // path of the session's own node; empty if it may have none

	rereading *time.Timer // until the generation's node is read again; nil if that is not due

	open    map[request]uint64 // requests that are not answered, with the number of each
	opened  uint64
	starts  *fifo
	outbox  outbox
	solos   *fifo
	reads   *fifo
	makings map[string][]write // what waits for a directory to be made
	slots   slots              // of reads that belong to one of solos or reads
	watches watchTable

	uncertain []*create // may have a node or not
	orphans   orphans
	spread    spread
	parked    []func() // to be done when connected again, or a little later
	retrying  *time.Timer
	asking    *time.Timer // until the leader is asked for what is watched; see phantom.go
}

// request is something that will be answered.
type request interface {
	// give answers that it will not be done.
	give(why messages.Reason, detail string)
}

// retryPause is how long to wait before something is tried again while the
// connection seems to be up.
const retryPause = 100 * time.Millisecond

func newEpoch(c *core, l *link) *epoch {
	ep := &epoch{core: c, number: l.epoch, link: l, open: map[request]uint64{}, spread: newSpread(), slots: make(slots, maxReads),
		client: zkClient{l, c.cfg.acl, c.cfg.root}}
	ep.starts = newFifo(ep, 1)
	ep.outbox.init(ep)
	ep.solos = newFifo(ep, maxSolos)
	ep.reads = newFifo(ep, maxReads)
	return ep
}

// use has requests go over a connection, nil for none. Before that it sets again what was
// watched over the last one: the answer to another request would raise the zxid since
// which there are events.
func (ep *epoch) use(w *wire) {
	if w != nil {
		nodes, directories := ep.watches.paths()
		ep.client.WatchAgain(w, nodes, directories)
	}
	ep.link.current.Store(w)
}

// end answers all that is outstanding.
func (ep *epoch) end(why messages.Reason, detail string) {
	ep.over, ep.up = true, false
	ep.use(nil)
	ep.orphans.stop()
	for _, t := range []*time.Timer{ep.retrying, ep.rereading, ep.asking} {
		if t != nil {
			t.Stop()
		}
	}
	for _, r := range slices.SortedFunc(maps.Keys(ep.open), func(a, b request) int { return cmp.Compare(ep.open[a], ep.open[b]) }) {
		r.give(why, detail)
	}
	ep.open = nil
}

// admit counts r to the requests that are not answered.
func (ep *epoch) admit(r request) {
	ep.opened++
	ep.open[r] = ep.opened
}

// again has f called when that makes sense: after reconnecting, or after a pause
// if the connection is up, or seems so.
func (ep *epoch) again(f func()) {
	ep.parked = append(ep.parked, f)
	ep.armRetry()
}

func (ep *epoch) armRetry() {
	if ep.up && ep.retrying == nil {
		again := task(func(*core) { ep.retry() })
		ep.retrying = time.AfterFunc(retryPause, func() { ep.core.self.Tell(again) })
	}
}

func (ep *epoch) retry() {
	if ep.over {
		return
	}
	ep.retrying = nil
	if ep.up {
		ep.resume()
	}
}

// resume goes on with all that was waiting for a connection.
func (ep *epoch) resume() {
	parked := ep.parked
	ep.parked = nil
	for _, f := range parked {
		f()
	}
	ep.resolve()
	for _, l := range ep.lanes() {
		l.due = true
	}
}

// lanes are all, the outbox before those that it gives work.
func (ep *epoch) lanes() [4]*lane {
	return [...]*lane{&ep.starts.lane, &ep.outbox.lane, &ep.solos.lane, &ep.reads.lane}
}

// flush starts what may be started, and sends it together.
func (ep *epoch) flush() {
	lanes := ep.lanes()
	if !slices.ContainsFunc(lanes[:], func(l *lane) bool { return l.due }) {
		return
	}
	if w := ep.link.current.Load(); w != nil {
		w.hold()
		defer w.letGo()
	}
	for _, l := range lanes {
		if l.due {
			l.due = false
			l.pump()
		}
	}
}

// answer ends a request with msg.
func (ep *epoch) answer(r request, a asker, msg any) {
	delete(ep.open, r)
	a.tell(msg)
}

// fail ends a request without success.
func (ep *epoch) fail(r request, why messages.Reason, format string, args ...any) {
	delete(ep.open, r)
	r.give(why, fmt.Sprintf(format, args...))
}
