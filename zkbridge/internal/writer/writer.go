package writer

import (
	"slices"
	"time"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
	"github.com/actorlock/actorlock/zkbridge/zkpath"
)

// Writer sends creates and deletes, first come, first sent. Those that the actor's mailbox holds
// together make one batch, which is sent at once if no batch is in flight. Otherwise more are
// collected until they are worth another batch (isWorthAnother), or have waited for maxWait.
//
// Batches keep their order, and so do contenders of one lock, also if their directory is missing.
// There are two exceptions, in which a request may be sent again behind later ones: ZooKeeper has
// refused its batch for another reason than a missing directory, or its outcome is unknown.
//
// Creates in directories that may be missing go in batches of their own, beside the others: what
// such a batch waits for, and the number of these creates, costs the locks in use no more than the
// server's time.
type Writer struct {
	// SessionNode is the path of the session node. Each batch that creates contenders writes the
	// node, to learn the batch's zxid. With an empty path, of a session without the node, the
	// writer sends each create, and each atomic create, in a batch of its own.
	SessionNode string
	// Generation is the generation of the session's tokens. It is set before the first create.
	Generation uint64

	epoch  Epoch // the bridge's part for the present session
	cfg    Dependencies
	jitter zkconn.Jitter

	changed bool // something has changed since the last Flush, so that a batch may be worth sending

	queue       []*Group // a Group is executed as a whole: a release, a create, or an atomic create
	stuck       stuck    // in front of the queue
	unsent      []*batch // that could not be sent: Flush sends nothing until a retry puts their groups in front of the queue
	inFlight    flight   // from the queue
	freeBatches []*batch // for re-use, which saves more than 5 % of the CPU time of an acquire of a hot lock
	arrivals    uint64   // groups with creates that have come so far

	watched     watchedDirectories
	directories map[string]*directory // that may be missing
	ready       []*directory          // whose lines are to be sent
	readyAgain  []*directory          // the same, of batches that were not executed: they come first
	newInFlight flight                // from these lines, also those that wait for what survey reads
	existing    int                   // up to maxExisting: how often directories existed that the session had not seen, of late

	unknownCreates []*Create // that may have made a node: lookUpUnknown will look for it
	orphans        orphans
}

// Create creates the node of a create, or those of all parts of an atomic create, or none. The epoch
// calls it when the session is ready, and so does resubmit for what ZooKeeper has not executed.
func (w *Writer) Create(g *Group) {
	if c := g.creates[0]; len(g.creates) == 1 && c.msg.GetGuard() != "" {
		w.createGuarded(c)
		return
	}
	w.add(g)
}

// Release deletes the node of a request.
func (w *Writer) Release(r *NodeRelease) { w.add(&r.group) }

// add has a group wait for Flush, in the queue or in the lines of its directories.
func (w *Writer) add(added *Group) {
	if added.release == nil && added.arrival == 0 {
		w.arrivals++
		added.arrival = w.arrivals
	}
	if w.mayBeNew(added) {
		w.enter(added, false)
	} else {
		w.queue = append(w.queue, added)
	}
	if added.release == nil || !added.release.msg.GetRelaxed() || len(w.inFlight.batches) == 0 { // a relaxed release goes with what follows: 4 % of the CPU time of an acquire of a hot lock
		w.changed = true
	}
}

// Flush sends batches from the queue, and from the lines of directories, until what is left is too
// little for another batch, or too many batches are in flight. It sends none while batches wait for
// a retry: they come first. The bridge's actor calls Flush when its mailbox is empty, or after 64
// messages.
func (w *Writer) Flush() {
	if !w.changed {
		return
	}
	w.changed = false
	most, mostNew := bounds{fewInFlight, MaxInFlight / 2 * maxOps}, bounds{fewNewInFlight, fewNewInFlight * maxOps}
	if w.SessionNode == "" { // each create or atomic create goes alone; only deletes share a batch
		most, mostNew = bounds{MaxSingle, MaxSingle}, bounds{MaxSingle, MaxSingle}
	}
	w.sendBatches(&w.inFlight, most, func() int { return len(w.queue) }, w.buildBatch)
	w.sendBatches(&w.newInFlight, mostNew, w.NewWaiting, w.buildNewBatch)
}

// maxWait is how long requests wait at most for a fuller batch. Where a round trip takes longer than
// the server needs for a batch, they would otherwise wait for most of a round trip. A timer of an idle
// Go process is up to a millisecond late.
const maxWait = 500 * time.Microsecond

// sendBatches sends the batches that build returns, while what waits is worth another batch. build is
// buildBatch, or buildNewBatch for the lines of directories.
func (w *Writer) sendBatches(f *flight, most bounds, waiting func() int, build func() *batch) {
	for len(w.unsent) == 0 && f.isWorthAnother(waiting(), most) {
		b := build()
		if b == nil {
			break // what waits waits for an answer
		}
		f.endWait()
		f.add(b)
		w.cfg.OnBatch(len(b.writes))
		b.noteSent(w.cfg.Clock.Now())
		b.send(w.epoch.Client(), func() { w.epoch.Post(func() { w.onBatchDone(b) }) }) // in the actor again
	}
	if waiting() == 0 {
		f.endWait()
	} else if f.stopWait == nil {
		f.stopWait = w.epoch.AfterFunc(maxWait, func() { f.overdue, w.changed = true, true })
	}
}

// buildBatch takes a batch from the queue. It returns nil if the queue has nothing to send.
func (w *Writer) buildBatch() *batch {
	b, n := w.newBatch(), 0
	if w.isLongQueue() {
		w.takeShares(b)
	}
	for n < len(w.queue) && w.addToBatch(b, w.queue[n]) {
		n++
	}
	if n > 0 {
		w.stuck = stuck{}
	}
	if len(w.queue)-n <= maxOps { // mostly: then the queue keeps its memory
		w.queue = slices.Delete(w.queue, 0, n)
	} else {
		clear(w.queue[:n])
		w.queue = w.queue[n:]
	}
	return w.finishBatch(b)
}

// onBatchDone answers the requests of a batch, or sends them again.
func (w *Writer) onBatchDone(b *batch) {
	w.inFlight.remove(b)
	w.newInFlight.remove(b)
	w.stuck = stuck{} // what waited for this answer may go
	for _, r := range b.watches {
		w.watched.onRead(r)
	}
	// A success has a result for each operation, and the zxid if the session node is written.
	if b.err == nil && len(b.results) == len(b.ops) && !(b.writesSessionNode() && b.czxid() == 0) {
		w.onSuccess(b)
	} else {
		w.onFailure(b)
	}
	w.changed = true
}

// onSuccess answers the requests of a batch that ZooKeeper has executed.
func (w *Writer) onSuccess(b *batch) {
	czxid, results := b.czxid(), b.results[len(b.containers):] // the writes' results are behind those of the containers (buildOps)
	answers := make([]messages.Created, b.creates)             // one allocation for all
	for i, sent := range b.writes {
		c, is := sent.(*Create)
		if !is {
			w.released(sent.(*NodeRelease), false) // the node was not missing
			continue
		}
		_, node := zkpath.Split(results[i].String) // the name, or the path of a create that went alone
		if czxid == 0 {                            // without the session node: of an atomic create, or from a server without create2
			w.lookUpCreated(c, node)
			continue
		}
		msg := &answers[0]
		answers = answers[1:]
		msg.Id, msg.Epoch, msg.Node, msg.Czxid, msg.Step = c.ID, c.Epoch, node, czxid, c.step
		b.setDirectory(msg, c)
		w.created(c, msg)
	}
	w.onInUse(b)
	b.reset()
	w.freeBatches = append(w.freeBatches, b)
}

// created answers a create, whose sender is mostly a lock's actor.
func (w *Writer) created(c *Create, msg *messages.Created) {
	msg.Generation, msg.Recent = w.Generation, c.sentAt > 0 && w.cfg.Clock.Now()-c.sentAt <= recently
	w.epoch.Answer(c, msg)
}
