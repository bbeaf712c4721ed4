package writer

import (
	"slices"

	"github.com/actorlock/actorlock/zkbridge/zkpath"
)

// directory is a directory that may be missing, as long as creates there are unanswered that are
// not sure of it. These stand in its line, and not in the writer's queue: one transaction at a time
// has the first of them, until one of their nodes is made. So they keep their order, and no other
// lock waits for them.
type directory struct {
	path       string
	state      directoryState
	guessed    bool      // the state is a guess, for Writer.learn
	persistent bool      // ZooKeeper has refused to make it as a container
	ready      bool      // it is in Writer.ready or Writer.readyAgain
	above      int       // how many directories above are missing, too, if it is
	required   string    // it or a directory above that must exist, and is not made; empty for none
	refusal    error     // why ZooKeeper does not make it, though it was missing; nil otherwise
	line       []*Group  // in the order of their arrival
	one        [1]*Group // the memory of line, if one is in it
	sent       int       // of the line: the groups in batch
	batch      *batch    // the batch under way that has creates there, or nil
	nodes      int       // creates there in the batch that is under way, or was last
	pending    int       // unanswered groups that have it among their directories: at 0 the writer forgets it
}

// directoryState is what the writer takes a directory for. Whether that is right shows the next
// transaction.
type directoryState uint8

const (
	unknown directoryState = iota
	missing                // the transaction makes it, and those above that are missing
	exists
	inUse // a node of this process is there: creates need not wait
)

// isOpen reports whether a create in the directory may go into the queue.
func (d *directory) isOpen() bool { return d.state == inUse && len(d.line) == 0 }

// mayBeNew reports whether one of the creates is to stand in the line of its directory.
func (w *Writer) mayBeNew(g *Group) bool {
	return slices.ContainsFunc(g.creates, func(c *Create) bool {
		sure := c.exists || c.seen
		d := w.directories[c.msg.GetDirectory()]
		return d == nil && !sure || d != nil && !(sure && d.isOpen())
	})
}

// enter puts creates into the lines of their directories, or into the queue if all of these are
// open. An atomic create stands in several lines, and is sent when it is the first in all of them.
// again is for creates that were sent before: they do not wait for those that came later, of
// directories that are new.
func (w *Writer) enter(g *Group, again bool) {
	for _, c := range g.creates {
		d := w.directories[c.msg.GetDirectory()]
		if d == nil {
			d = w.newDirectory(c)
			w.directories[c.msg.GetDirectory()] = d
		}
		if c.msg.GetRequired() == "" && d.required != "" {
			d.required, d.refusal = "", nil // this create may make it
		}
		if c.in = d; !slices.Contains(g.directories, d) {
			d.pending++
			g.directories = append(g.directories, d)
		}
	}
	if !slices.ContainsFunc(g.directories, func(d *directory) bool { return !d.isOpen() }) {
		g.leaveLines()
		w.queue = append(w.queue, g)
		return
	}
	for _, d := range g.directories {
		i := len(d.line)
		for i > d.sent && d.line[i-1].arrival > g.arrival {
			i--
		}
		d.line = slices.Insert(d.line, i, g)
		w.makeReady(d, again)
	}
}

// newDirectory returns what is known of the create's directory.
func (w *Writer) newDirectory(c *Create) *directory {
	d := &directory{path: c.msg.GetDirectory(), required: c.msg.GetRequired()}
	d.line = d.one[:0]
	switch {
	case c.msg.GetRequired() == c.msg.GetDirectory():
		d.state, d.refusal = exists, missingError(w.epoch.Client(), c.msg.GetRequired())
	case c.exists || c.seen:
		d.state = exists
	case c.msg.GetParentIsOwn() && c.msg.GetRequired() == "":
		d.above = 1
	}
	return d
}

// leaveLines notes that the directories of creates are known to exist: a node of this process is in
// each of them, whose deletion would come later.
func (g *Group) leaveLines() {
	for _, c := range g.creates {
		c.exists = true
	}
}

// makeReady has the next batch take from the directory's line; again: before lines that have not been
// sent yet.
func (w *Writer) makeReady(d *directory, again bool) {
	if d.ready || d.batch != nil || len(d.line) == 0 {
		return
	}
	if d.ready, w.changed = true, true; again {
		w.readyAgain = append(w.readyAgain, d)
	} else {
		w.ready = append(w.ready, d)
	}
}

// buildNewBatch takes a batch from the lines of directories. It returns nil if none can be sent.
func (w *Writer) buildNewBatch() *batch {
	b := w.newBatch()
	for _, list := range []*[]*directory{&w.readyAgain, &w.ready} {
		for len(*list) > 0 {
			d := (*list)[0]
			if !w.addLine(b, d) {
				return w.finishBatch(b)
			}
			d.ready = false
			(*list)[0] = nil
			*list = (*list)[1:]
		}
	}
	return w.finishBatch(b)
}

// addLine adds the directory's line to the batch. It returns false if the batch is full.
func (w *Writer) addLine(b *batch, d *directory) bool {
	for d.sent < len(d.line) && d.line[d.sent].isNext(b) {
		g := d.line[d.sent]
		for _, d := range g.directories {
			if d.state == unknown {
				d.state, d.guessed = w.guess(), true
			}
		}
		if !b.add(g, w.SessionNode != "") {
			return false
		}
		for _, d := range g.directories {
			if d.batch == nil {
				d.batch, d.nodes = b, 0
				b.directories = append(b.directories, d)
			}
			d.sent++
		}
		for _, c := range g.creates {
			c.in.nodes++
		}
	}
	return true // what is left in the line is sent after the others when the batch is answered
}

// containers returns how many directories a transaction makes with the group, at most.
func (g *Group) containers() (n int) {
	for _, d := range g.directories {
		n += 1 + d.above
	}
	return n
}

// isNext reports whether the group is the next in all of its lines, none of which has groups in
// another batch.
func (g *Group) isNext(b *batch) bool {
	return !slices.ContainsFunc(g.directories, func(d *directory) bool {
		return d.sent == len(d.line) || d.line[d.sent] != g || d.batch != nil && d.batch != b
	})
}

// guess returns the state that a directory has which this session has not seen.
func (w *Writer) guess() directoryState {
	if w.existing > maxExisting/2 {
		return exists
	}
	return missing
}

// maxExisting bounds Writer.existing, so that a few outcomes of the other kind change the guess.
const maxExisting = 3

// learn notes whether a directory was missing for which the writer had to guess.
func (w *Writer) learn(wasMissing bool) {
	if wasMissing {
		w.existing = max(w.existing-1, 0)
	} else {
		w.existing = min(w.existing+1, maxExisting)
	}
}

// tell notes what a directory is known to be, or to have been.
func (w *Writer) tell(d *directory, state directoryState) {
	if d.guessed {
		w.learn(state == missing)
	}
	d.state, d.guessed = state, false
}

// onInUse handles a batch that has made nodes in its directories. The creates in their lines go
// into the queue.
func (w *Writer) onInUse(b *batch) {
	for _, d := range b.directories {
		w.tell(d, d.state) // it was so
		d.state, d.line, d.sent, d.batch = inUse, d.line[d.sent:], 0, nil
	}
	var open []*Group
	for _, d := range b.directories {
		open = w.openLine(d, open)
	}
	for _, g := range b.groups {
		w.forget(g)
	}
	slices.SortFunc(open, byArrival)
	w.requeue(open)
}

// openLine takes those from the front of a line whose directories are all in use, and appends them
// to open.
func (w *Writer) openLine(d *directory, open []*Group) []*Group {
	for len(d.line) > 0 && d.line[0].isNext(nil) && d.line[0].allInUse() {
		g := d.line[0]
		g.leaveLines()
		open = append(open, g)
		for _, other := range g.directories {
			other.line = other.line[1:]
		}
		for _, other := range g.directories {
			if other != d {
				open = w.openLine(other, open)
			}
		}
	}
	w.makeReady(d, true)
	return open
}

// allInUse reports whether all of the directories are in use.
func (g *Group) allInUse() bool {
	return !slices.ContainsFunc(g.directories, func(d *directory) bool { return d.state != inUse })
}

// forget ends what the directories of a group know of it. The group is not in a line.
func (w *Writer) forget(g *Group) {
	for _, d := range g.directories {
		if d.pending--; d.pending == 0 {
			delete(w.directories, d.path)
		}
	}
	for _, c := range g.creates {
		c.in = nil
	}
	g.directories = nil
}

// leave takes a group out of its lines, because it is answered, or its outcome is unknown.
func (w *Writer) leave(g *Group) {
	for _, d := range g.directories {
		i := slices.Index(d.line, g)
		if i >= 0 && i < d.sent {
			d.sent--
		}
		switch {
		case i == 0: // mostly: do not move the others
			d.line = d.line[1:]
		case i > 0:
			d.line = slices.Delete(d.line, i, i+1)
		}
		w.makeReady(d, true) // those behind an atomic create may have waited for it, and not for a batch
	}
	w.forget(g)
}

// makeReadyAgain has the lines of a batch sent again that ZooKeeper has not executed. It puts them in the
// order of arrival again: a create that was sent again has stood behind those of the batch that was under
// way, though it came earlier. All lines need one order: otherwise two atomic creates may wait for each
// other for ever.
func (w *Writer) makeReadyAgain(b *batch) {
	for _, d := range b.directories {
		d.sent, d.batch = 0, nil
		slices.SortFunc(d.line, byArrival)
		w.makeReady(d, true)
	}
	w.changed = true
}

// noteMissing notes that ZooKeeper has said that a directory is missing.
func (w *Writer) noteMissing(path string) {
	if d := w.directories[path]; d != nil && d.batch == nil {
		if d.state, d.guessed = missing, false; d.refusal != nil {
			d.state = exists // the next transaction does not make it
		}
	}
}

// paths returns the path of the directory and of those above that are missing, from below.
func (d *directory) paths() []string {
	all := []string{d.path}
	for len(all) <= d.above {
		all = append(all, parentOf(all[len(all)-1]))
	}
	return all
}

// parentOf returns the directory above a directory.
func parentOf(path string) string {
	parent, _ := zkpath.Split(path)
	return parent
}
