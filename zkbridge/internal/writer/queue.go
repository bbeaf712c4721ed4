package writer

import "slices"

// CreateAtomically creates the nodes of all parts, or none.
func (w *Writer) CreateAtomically(g *Group) { w.add(g) }

// Release deletes the node of a request.
func (w *Writer) Release(r *NodeRelease) { w.add(&r.group) }

func (w *Writer) add(added *Group) {
	if added.release == nil && added.arrival == 0 {
		w.arrivals++
		added.arrival = w.arrivals
	}
	w.queue = append(w.queue, added)
	if added.release == nil || !added.release.relaxed || len(w.inFlight) == 0 { // a relaxed release goes with what follows: 4 % of the CPU time of an acquire of a hot lock
		w.changed = true
	}
}

// requeue puts groups back in front of the queue, in their order. There may be creates in front that came earlier and
// were put back before: each create goes behind those. A create that came earlier and is behind a later one does not
// count, because its outcome was unknown and it was sent again (resubmit).
func (w *Writer) requeue(groups []*Group) {
	place := 0
	for _, g := range groups {
		for k := place; g.arrival > 0 && k < len(w.queue) && w.queue[k].arrival < g.arrival; k++ {
			if w.queue[k].arrival > 0 {
				place = k + 1
			}
		}
		w.queue = slices.Insert(w.queue, place, g)
		place++
	}
	w.changed = true
}

// Changed reports whether Flush may have something to send.
func (w *Writer) Changed() bool { return w.changed }

// InFlight returns the number of batches that are sent and not answered.
func (w *Writer) InFlight() int { return len(w.inFlight) }

// minBatch returns how many groups are worth a batch beside those in flight: as many as these have writes,
// but no more than half of what fits. Otherwise small batches would follow large ones, as the actors
// that wait for an answer send their next requests one after the other.
func (w *Writer) minBatch() (n int) {
	for _, b := range w.inFlight {
		n += len(b.writes)
	}
	return min(n, maxOps/2)
}

// buildBatch takes a batch from the queue. It returns nil if the queue has nothing to send.
func (w *Writer) buildBatch() *batch {
	b, n := w.newBatch(), 0
	for n < len(w.queue) && w.addToBatch(b, w.queue[n]) {
		n++
	}
	w.queue = slices.Delete(w.queue, 0, n)
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
		return &batch{}
	}
	b := w.freeBatches[n-1]
	w.freeBatches = w.freeBatches[:n-1]
	return b
}

// addToBatch adds a group to the batch unless the batch is full, and reports whether it has. A create
// waits for the earlier creates of its directory: as long as these wait for a directory that is being
// made, or are in a batch that may have to be sent again because a directory is missing. A batch that
// deletes a node of a directory before it creates there shows that the directory is not missing.
func (w *Writer) addToBatch(b *batch, added *Group) bool {
	for _, c := range added.creates {
		if directory, waits := w.awaitedDirectory(c); waits {
			w.addWaiting(added, directory)
			return true
		}
		if slices.ContainsFunc(w.inFlight, func(f *batch) bool { return f.mayFail && createsIn(f.writes, c.directory) }) {
			return false
		}
	}
	return b.add(added, w.SessionNode != "")
}
