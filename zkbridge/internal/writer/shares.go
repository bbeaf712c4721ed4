package writer

import "slices"

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
	w.queue = nil                               // addToBatch may append to it
	taken, end := 0, min(len(queue), lookAhead) // all that are taken are before the place taken
	for i := w.stuck.groups; i < end && !b.isFull(); i++ {
		g := queue[i]
		if usedUp != "" && g.eachDirectory(func(d string) bool { return d == usedUp }) { // as most of a long queue
			continue
		}
		mayTake := g.eachDirectory(func(d string) bool { return shares[d] < share })
		if mayTake && w.addToBatch(b, g) {
			g.eachDirectory(func(d string) bool { shares[d]++; return true })
			queue[i], taken = nil, i+1
			continue
		}
		g.eachDirectory(func(d string) bool { shares[d], usedUp = share, d; return true })
	}
	w.queue = append(withoutTaken(queue, taken), w.queue...)
	if w.stuck = (stuck{}); taken == 0 {
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

// withoutTaken returns the queue without the groups that were taken, each of which is nil and before end. It
// moves only the groups before end.
func withoutTaken(queue []*Group, end int) []*Group {
	begin := end
	for _, g := range slices.Backward(queue[:end]) {
		if g != nil {
			begin--
			queue[begin] = g
		}
	}
	clear(queue[:begin])
	return queue[begin:]
}

// isFull reports whether not even a small group fits.
func (b *batch) isFull() bool {
	return len(b.containers)+len(b.writes)+2 > maxOps || b.size >= MaxBytes
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
