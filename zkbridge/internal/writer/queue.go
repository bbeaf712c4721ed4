package writer

import (
	"cmp"
	"slices"
)

// Release deletes the node of a request.
func (w *Writer) Release(r *NodeRelease) { w.add(&r.group) }

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

// byArrival orders groups with creates.
func byArrival(a, b *Group) int { return cmp.Compare(a.arrival, b.arrival) }

// requeue puts groups back in front of the queue, in their order. There may be creates in front
// that came earlier and were put back before: each create goes behind those. A create that came
// earlier and is behind a later one does not count, because its outcome was unknown and it was sent
// again (resubmit).
func (w *Writer) requeue(groups []*Group) {
	w.changed = true
	if len(groups) == 0 {
		return
	}
	front, place, k := make([]*Group, 0, len(groups)+len(w.queue)), 0, 0
	for _, g := range groups {
		for ; g.arrival > 0 && k < len(w.queue) && w.queue[k].arrival < g.arrival; k++ {
			if w.queue[k].arrival > 0 {
				front = append(front, w.queue[place:k+1]...)
				place = k + 1
			}
		}
		front = append(front, g)
	}
	w.queue, w.stuck = append(front, w.queue[place:]...), stuck{}
}

// sendAgain has the groups of a batch sent again that ZooKeeper has not executed, all but one that
// is answered.
func (w *Writer) sendAgain(b *batch, answered *Group) {
	if len(b.directories) > 0 {
		w.makeReadyAgain(b)
		return
	}
	w.requeue(slices.DeleteFunc(slices.Clone(b.groups), func(g *Group) bool { return g == answered }))
}

// Changed reports whether Flush may have something to send.
func (w *Writer) Changed() bool { return w.changed }

// InFlight returns the number of batches that are sent and not answered.
func (w *Writer) InFlight() int { return len(w.inFlight.batches) + len(w.newInFlight.batches) }

// flight is the batches from the queue, or from the lines of directories, that are sent and not
// answered.
type flight struct {
	batches  []*batch
	overdue  bool   // what is to be sent has waited for maxWait
	stopWait func() // stops the timer for that; nil: nothing waits for a fuller batch
}

// bounds are those of a flight.
type bounds struct {
	few        int // batches beside which another one is sent if it is full enough (minBatch)
	operations int // beside which another batch is sent if it is overdue; the reads behind batches count, too
}

func (f *flight) add(b *batch) { f.batches = append(f.batches, b) }

func (f *flight) remove(b *batch) {
	f.batches = slices.DeleteFunc(f.batches, func(other *batch) bool { return other == b })
}

// sendBatches sends the batches that build returns, while what waits is worth another batch.
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
		b.send(w.epoch.Client(), func() { w.epoch.Post(func() { w.onBatchDone(b) }) })
	}
	if waiting() == 0 {
		f.endWait()
	} else if f.stopWait == nil {
		f.stopWait = w.epoch.AfterFunc(maxWait, func() { f.overdue, w.changed = true, true })
	}
}

// isWorthAnother reports whether so many groups that wait are worth another batch.
func (f *flight) isWorthAnother(waiting int, most bounds) bool {
	writes, operations := 0, 0
	for _, b := range f.batches {
		writes, operations = writes+len(b.writes), operations+len(b.ops)+len(b.watches)+len(b.reads)
	}
	full := len(f.batches) < most.few && waiting >= minBatch(writes)
	return waiting > 0 && (full || f.overdue && len(f.batches) < MaxInFlight && operations < most.operations)
}

// endWait begins the wait of what is left anew.
func (f *flight) endWait() {
	if f.stopWait != nil {
		f.stopWait()
		f.stopWait, f.overdue = nil, false
	}
}

// minBatch returns how many groups are worth a batch beside so many writes in flight: as many, but
// no more than half of what fits. Otherwise small batches would follow large ones, as the actors
// that wait for an answer send their next requests one after the other.
func minBatch(writes int) int { return min(writes, maxOps/2) }

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

// isLongQueue reports whether the queue has more than fits into a batch. A group may have many nodes: a
// request of thousands of permits waits as some hundred groups.
func (w *Writer) isLongQueue() bool {
	nodes := 0
	for _, g := range w.queue {
		if nodes += max(1, len(g.creates)); nodes > maxOps {
			return true
		}
	}
	return false
}

// share is how many nodes of one directory a batch takes before those of other directories, if not all
// that wait fit: eight directories fill a batch. The last group of a share may have more.
const share = maxOps / 8

// lookAhead bounds how many groups a batch is chosen from, so that its cost does not grow with the queue.
const lookAhead = 64 * maxOps

// takeShares takes groups from the queue until the batch is full, but only a share of each directory:
// thousands of nodes of one lock must not stand in front of the nodes of others. The groups of a
// directory keep their order: nothing of it is taken behind a group that stays.
func (w *Writer) takeShares(b *batch) {
	shares, usedUp := w.stuck.shares, "" // usedUp is the last directory whose share was seen to be used up
	if shares == nil {
		shares = map[string]int{}
	}
	queue := w.queue
	w.queue = nil // addToBatch may append to it
	var taken []int
	end := min(len(queue), lookAhead)
	for i := w.stuck.groups; i < end && !b.isFull(); i++ {
		g := queue[i]
		if usedUp != "" && g.isOnlyIn(usedUp) { // as most of a long queue
			continue
		}
		mayTake := g.eachDirectory(func(d string) bool { return shares[d] < share })
		if mayTake && w.addToBatch(b, g) {
			g.eachDirectory(func(d string) bool { shares[d]++; return true })
			taken = append(taken, i)
			continue
		}
		g.eachDirectory(func(d string) bool { shares[d], usedUp = share, d; return true })
	}
	w.queue = append(withoutPlaces(queue, taken), w.queue...)
	if w.stuck = (stuck{}); len(taken) == 0 {
		w.stuck = stuck{end, shares}
	}
}

// stuck is what takeShares has learned of groups in front of the queue of which it has taken none: each of
// them waits for the answer to a batch, and so does what comes later for their directories. Otherwise each
// request that comes meanwhile would cost a look at all.
type stuck struct {
	groups int
	shares map[string]int
}

// withoutPlaces returns the queue without the groups at places, which are in order. It moves only the
// groups before the last place.
func withoutPlaces(queue []*Group, places []int) []*Group {
	if len(places) == 0 {
		return queue
	}
	begin := places[len(places)-1] + 1
	for n, place := range slices.Backward(places) {
		after := 0 // the place before it
		if n > 0 {
			after = places[n-1] + 1
		}
		stay := queue[after:place]
		begin -= len(stay)
		copy(queue[begin:], stay)
	}
	clear(queue[:begin])
	return queue[begin:]
}

// isFull reports whether not even a small group fits.
func (b *batch) isFull() bool {
	return len(b.containers)+len(b.writes)+2 > maxOps || b.size >= MaxBytes
}

// isOnlyIn reports whether all nodes of the group are in a directory.
func (g *Group) isOnlyIn(directory string) bool {
	return g.eachDirectory(func(d string) bool { return d == directory })
}

// eachDirectory calls f for the directories of the group's nodes until it returns false, and reports
// whether it never did.
func (g *Group) eachDirectory(f func(directory string) bool) bool {
	if g.release != nil {
		return f(g.release.msg.GetDirectory())
	}
	for _, c := range g.creates {
		if !f(c.msg.GetDirectory()) {
			return false
		}
	}
	return true
}

// finishBatch makes the operations of a batch. It returns nil for an empty one.
func (w *Writer) finishBatch(b *batch) *batch {
	if len(b.writes) == 0 {
		w.freeBatches = append(w.freeBatches, b)
		return nil
	}
	b.buildOps(w.cfg.ACL, w.SessionNode)
	return b
}

func (w *Writer) newBatch() *batch {
	n := len(w.freeBatches)
	if n == 0 {
		return &batch{root: len(w.cfg.Root), watched: &w.watched}
	}
	b := w.freeBatches[n-1]
	w.freeBatches = w.freeBatches[:n-1]
	return b
}

// addToBatch adds a group to the batch unless the batch is full, and reports whether it has. A
// create waits for the earlier creates of its directory: as long as these stand in a line, or are
// in a batch that may have to be sent again because a directory is missing. A batch that deletes a
// node of a directory before it creates there shows that the directory is not missing.
func (w *Writer) addToBatch(b *batch, added *Group) bool {
	if len(w.directories) > 0 && w.mayBeNew(added) {
		w.forget(added)
		w.enter(added, false)
		return true
	}
	for _, c := range added.creates {
		if slices.ContainsFunc(w.inFlight.batches, func(f *batch) bool { return f.mayFail && f.createsIn(c.msg.GetDirectory()) }) {
			return false
		}
	}
	return b.add(added, w.SessionNode != "")
}
