package zkbridge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

// epoch is all that the bridge does within one session. When the session is over
// the epoch is dropped as a whole, so that nothing of it can run in the next.
type epoch struct {
	actor     *bridgeActor
	number    uint64
	conn      *zkconn.SessionConn
	client    zkconn.Client
	connected bool // CONNECTED: jobs may start
	over      bool

	started            bool     // the session is ready for requests; see begin
	generationReading  bool     // the generation's node is being read
	awaitingGeneration []func() // to be done when the generation has been read
	generationErr      error    // why there can be no tokens, if there cannot
	ownNode            string   // path of the session's own node; empty if it may have none

	generationTimer *time.Timer // until the generation's node is read again; nil if that is not due

	open               map[request]uint64 // requests that are not answered, with the number of each
	opened             uint64
	startQueue         *workQueue
	batcher            batcher
	singles            *workQueue
	reads              *workQueue
	missingDirectories map[string][]write // what waits for a directory to be made
	readSlots          readSlots          // of reads that belong to one of solos or reads
	watches            watchTable

	unknownCreates []*createRequest // may have a node or not
	orphans        orphans
	jitter         zkconn.Jitter
	retries        []func() // to be done when connected again, or a little later
	retryTimer     *time.Timer
	leaderTimer    *time.Timer // until the leader is asked for what is watched; see phantom.go
}

// request is something that will be answered.
type request interface {
	// fail answers that it will not be done.
	fail(why messages.Reason, detail string)
}

// retryPause is how long to wait before something is tried again while the
// connection seems to be up.
const retryPause = 100 * time.Millisecond

func newEpoch(c *bridgeActor, l *zkconn.SessionConn) *epoch {
	ep := &epoch{actor: c, number: l.Epoch, conn: l, open: map[request]uint64{}, jitter: zkconn.NewJitter(), readSlots: make(readSlots, maxReads),
		client: zkconn.NewClient(l, c.cfg.ACL, c.cfg.Root)}
	ep.startQueue = newWorkQueue(ep, 1)
	ep.batcher.init(ep)
	ep.singles = newWorkQueue(ep, maxSingleWrites)
	ep.reads = newWorkQueue(ep, maxReads)
	return ep
}

// setConn has requests go over a connection, nil for none. Before that it sets again what was
// watched over the last one: the answer to another request would raise the zxid since
// which there are events.
func (ep *epoch) setConn(w *zkconn.Conn) {
	if w != nil {
		nodes, directories := ep.watches.paths()
		ep.client.SetWatches(w, nodes, directories)
	}
	ep.conn.Use(w)
}

// end answers all that is outstanding.
func (ep *epoch) end(why messages.Reason, detail string) {
	ep.over, ep.connected = true, false
	ep.setConn(nil)
	ep.orphans.stop()
	for _, t := range []*time.Timer{ep.retryTimer, ep.generationTimer, ep.leaderTimer} {
		if t != nil {
			t.Stop()
		}
	}
	for _, r := range slices.SortedFunc(maps.Keys(ep.open), func(a, b request) int { return cmp.Compare(ep.open[a], ep.open[b]) }) {
		r.fail(why, detail)
	}
	ep.open = nil
}

// addOpen counts r to the requests that are not answered.
func (ep *epoch) addOpen(r request) {
	ep.opened++
	ep.open[r] = ep.opened
}

// retryLater has f called when that makes sense: after reconnecting, or after a pause
// if the connection is up, or seems so.
func (ep *epoch) retryLater(f func()) {
	ep.retries = append(ep.retries, f)
	ep.armRetry()
}

func (ep *epoch) armRetry() {
	if ep.connected && ep.retryTimer == nil {
		again := task(func(*bridgeActor) { ep.onRetryTimer() })
		ep.retryTimer = time.AfterFunc(retryPause, func() { ep.actor.self.Tell(again) })
	}
}

func (ep *epoch) onRetryTimer() {
	if ep.over {
		return
	}
	ep.retryTimer = nil
	if ep.connected {
		ep.resume()
	}
}

// resume goes on with all that was waiting for a connection.
func (ep *epoch) resume() {
	parked := ep.retries
	ep.retries = nil
	for _, f := range parked {
		f()
	}
	ep.lookUpUnknown()
	for _, l := range ep.queues() {
		l.mayStart = true
	}
}

// queues are all, the outbox before those that it gives work.
func (ep *epoch) queues() [4]*jobRunner {
	return [...]*jobRunner{&ep.startQueue.jobRunner, &ep.batcher.jobRunner, &ep.singles.jobRunner, &ep.reads.jobRunner}
}

// flush starts what may be started, and sends it together.
func (ep *epoch) flush() {
	lanes := ep.queues()
	if !slices.ContainsFunc(lanes[:], func(l *jobRunner) bool { return l.mayStart }) {
		return
	}
	if w := ep.conn.Active(); w != nil {
		w.Cork()
		defer w.Uncork()
	}
	for _, l := range lanes {
		if l.mayStart {
			l.mayStart = false
			l.startJobs()
		}
	}
}

// answer ends a request with msg.
func (ep *epoch) answer(r request, to replyTo, msg any) {
	delete(ep.open, r)
	to.tell(msg)
}

// fail ends a request without success.
func (ep *epoch) fail(r request, why messages.Reason, format string, args ...any) {
	delete(ep.open, r)
	r.fail(why, fmt.Sprintf(format, args...))
}
