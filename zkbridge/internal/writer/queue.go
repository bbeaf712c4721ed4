package writer

import (
	"cmp"
	"slices"
)

// flight is the batches from the queue, or from the lines of directories, that are sent and not
// answered.
type flight struct {
	batches  []*batch
	overdue  bool   // what is to be sent has waited for maxWait
	stopWait func() // stops the timer for that; nil: nothing waits for a fuller batch
}

// bounds are those of a flight.
type bounds struct {
	few        int // batches beside which another one is sent if it is full enough (isWorthAnother)
	operations int // beside which another batch is sent if it is overdue; the reads behind batches count, too
}

// isWorthAnother reports whether so many groups that wait are worth another batch.
func (f *flight) isWorthAnother(waiting int, most bounds) bool {
	writes, operations := 0, 0
	for _, b := range f.batches {
		writes, operations = writes+len(b.writes), operations+len(b.ops)+len(b.watches)+len(b.reads)
	}
	// As many as the writes in flight are enough. Otherwise small batches would follow large ones, as the
	// actors that wait for an answer send their next requests one after the other.
	full := len(f.batches) < most.few && waiting >= min(writes, maxOps/2)
	return waiting > 0 && (full || f.overdue && len(f.batches) < MaxInFlight && operations < most.operations)
}

func (f *flight) add(b *batch) { f.batches = append(f.batches, b) }

func (f *flight) remove(b *batch) {
	f.batches = slices.DeleteFunc(f.batches, func(other *batch) bool { return other == b })
}

// endWait begins the wait of what is left anew.
func (f *flight) endWait() {
	if f.stopWait != nil {
		f.stopWait()
		f.stopWait, f.overdue = nil, false
	}
}

// Changed reports whether Flush may have something to send.
func (w *Writer) Changed() bool { return w.changed }

// NewWaiting returns how many directories that may be missing have creates that are to be sent.
func (w *Writer) NewWaiting() int { return len(w.readyAgain) + len(w.ready) }

// InFlight returns the number of batches that are sent and not answered.
func (w *Writer) InFlight() int { return len(w.inFlight.batches) + len(w.newInFlight.batches) }

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
