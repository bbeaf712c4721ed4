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
	w.queue = nil // addToBatch may append to it
	var taken []int
	end := min(len(queue), lookAhead)
	for i := w.stuck.groups; i < end && !b.isFull(); i++ {
		g := queue[i]
		if usedUp != "" && g.eachDirectory(func(d string) bool { return d == usedUp }) { // as most of a long queue
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
