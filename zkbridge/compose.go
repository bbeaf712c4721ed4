package zkbridge

import "slices"

// dir is the directory that the write depends on.
func (w write) dir() *directory {
	switch {
	case w.j != nil:
		return nil // it depends on several, see joint
	case w.c != nil:
		return w.c.dir
	}
	return w.r.dir
}

// hold keeps a write whose directory must wait while it is away, and tells if it has.
func (o *outbox) hold(w write) bool {
	d := w.dir()
	if d == nil || d.flying == 0 {
		return false
	}
	d.held = append(d.held, w)
	return true
}

// landed is for the end of a transaction.
func (o *outbox) landed(b *batch) {
	for _, d := range b.dirs {
		if d.dir.flying--; d.dir.flying == 0 && len(d.dir.held) > 0 {
			o.ready = append(o.ready, d.dir)
		}
	}
}

// compose takes what goes together: first from the queue, then from the directories
// that need wait no longer.
func (o *outbox) compose() *batch {
	b := o.newBatch()
	left, taken, full := o.fill(b)
	for _, d := range o.ready {
		if !full && !taken[d] {
			full = !o.drain(b, d)
		}
	}
	for _, d := range b.dirs {
		d.dir.flying++
	}
	left = slices.DeleteFunc(left, o.hold)
	clear(o.queue[len(left):])
	o.queue = left
	o.ready = slices.DeleteFunc(o.ready, func(d *directory) bool { return d.flying > 0 || len(d.held) == 0 })
	if len(b.writes) == 0 {
		o.spare = append(o.spare, b)
		return nil
	}
	b.seal(o.ep.core.cfg.acl)
	return b
}

// fill takes from the queue. It gives what is left of it, the directories of joints that
// must wait, which others do not enter first, and whether the batch is full.
func (o *outbox) fill(b *batch) (left []write, taken map[*directory]bool, full bool) {
	left = o.queue[:0]
	for i, w := range o.queue {
		switch {
		case w.j != nil && !w.j.known():
			w.j.queued = false
			o.ep.placeJoint(w.j) // this does not touch the queue
		case w.j != nil && !w.j.ready(taken):
			left, taken = append(left, w), w.j.take(taken)
		case w.j != nil:
			if !b.addJoint(w.j) {
				return append(left, o.queue[i:]...), taken, true
			}
		case taken[w.dir()]:
			left = append(left, w)
		case o.hold(w): // it has come back from a transaction that failed
		case !o.put(b, w):
			return append(left, o.queue[i:]...), taken, true
		}
	}
	return left, taken, false
}

// drain takes what the directory holds, in its order; false if the batch is full.
func (o *outbox) drain(b *batch, d *directory) bool {
	for len(d.held) > 0 {
		if !o.put(b, d.held[0]) {
			return false
		}
		d.held[0] = write{}
		d.held = d.held[1:]
	}
	d.held = nil
	return true
}

// put is batch.add, but of a create whose directory is not as it was before.
func (o *outbox) put(b *batch, w write) bool {
	if w.c != nil && !w.c.dir.writable() {
		o.ep.place(w.c) // this does not touch what waits here
		return true
	}
	return b.add(w)
}

func (o *outbox) newBatch() *batch {
	n := len(o.spare)
	if n == 0 {
		return &batch{}
	}
	b := o.spare[n-1]
	o.spare = o.spare[:n-1]
	return b
}
