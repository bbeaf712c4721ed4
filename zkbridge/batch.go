package zkbridge

import (
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"
)

// batch is a transaction: creates and deletes in the order in which they came,
// and behind them, for each directory with creates, one operation that writes its
// data anew. That one returns the directory's stat: how many children there are
// now, and the transaction's zxid, which is the czxid of the nodes created. A
// directory may be spared that, but not all of them.
type batch struct {
	number   uint64 // no other has it
	writes   []write
	dirs     []batchDir
	rewrites int   // of directories, as far as they cannot be spared
	ops      []any // of writes, then of dirs
	size     int
}

type batchDir struct {
	dir     *directory
	creates uint32
	next    int64 // the number that spares it if the node has it, see follows; or 0
	op      int   // that writes its data; -1 for none
}

const (
	maxOps    = 128
	maxBytes  = 64 << 10
	opBytes   = 64 // of a message, beside paths and data
	dirBytes  = 64
	zkSeqSize = 10

	// maxFailures is how often a write may be in a transaction that others have
	// spoilt. After that it goes alone.
	maxFailures = 3
)

// add puts w into the batch unless that is full.
func (b *batch) add(w write) bool {
	if len(b.writes) > 0 && !b.takes(w) {
		return false
	}
	b.put(w)
	return true
}

func (b *batch) put(w write) {
	b.writes = append(b.writes, w)
	b.size += w.bytes()
	switch {
	case w.c != nil:
		b.count(w.c)
	case w.r.dir != nil:
		w.r.dir.leaves(w.r.path, b.number)
	}
}

// takes tells if w fits behind others. For each create there must be room for the
// operation on its directory, too.
func (b *batch) takes(w write) bool {
	switch {
	case w.failures() >= maxFailures || b.writes[0].failures() >= maxFailures:
		return false
	case !b.takesOps(2):
		return false
	}
	return b.size+w.bytes() <= maxBytes
}

// takesOps tells if there is room for so many operations, 2 at least: one of the directories
// is written even if all could be spared.
func (b *batch) takesOps(n int) bool { return len(b.writes)+b.rewrites+n <= maxOps }

// count finds the place of a create among those of its directory.
func (b *batch) count(c *create) {
	if !c.dir.writable() { // as only a joint may have
		c.slot = -1
		return
	}
	if c.dir.batch == b.number {
		d := &b.dirs[c.dir.slot]
		c.slot, c.step = c.dir.slot, d.creates
		d.creates++
		if d.next != 0 {
			d.next = 0
			b.rewrites++
		}
		return
	}
	c.slot, c.step = int32(len(b.dirs)), 0
	c.dir.batch, c.dir.slot = b.number, c.slot
	d := batchDir{dir: c.dir, creates: 1, next: c.dir.follows(b.number)}
	if d.next == 0 {
		b.rewrites++
	}
	b.dirs = append(b.dirs, d)
	b.size += dirBytes + len(c.directory)
}

// seal makes the operations. Nodes get the ACL.
func (b *batch) seal(acl []zk.ACL) {
	b.ops = slices.Grow(b.ops, len(b.writes)+len(b.dirs))
	for _, w := range b.writes {
		if w.c != nil {
			b.ops = append(b.ops, w.c.createOp(acl))
		} else {
			b.ops = append(b.ops, w.r.deleteOp())
		}
	}
	for i := range b.dirs {
		d := &b.dirs[i]
		if d.next != 0 && (b.rewrites > 0 || i > 0) {
			d.op = -1
			continue
		}
		d.op = len(b.ops)
		b.ops = append(b.ops, d.dir.rewrite)
	}
}

func (b *batch) creates() (n uint32) {
	for _, d := range b.dirs {
		n += d.creates
	}
	return n
}

// directoryOf is the directory that the operation i makes a node in, or writes.
func (b *batch) directoryOf(i int) *directory {
	if i >= len(b.writes) {
		return b.dirs[slices.IndexFunc(b.dirs, func(d batchDir) bool { return d.op == i })].dir
	}
	if c := b.writes[i].c; c != nil {
		return c.dir
	}
	return nil
}

// reset makes the batch empty. It keeps its memory.
func (b *batch) reset() {
	clear(b.writes)
	clear(b.dirs)
	clear(b.ops)
	*b = batch{writes: b.writes[:0], dirs: b.dirs[:0], ops: b.ops[:0]}
}

func (w write) bytes() int {
	if w.c != nil {
		return opBytes + w.c.bytes()
	}
	return opBytes + len(w.r.path)
}

func isMissing(err error) bool { return errors.Is(err, zk.ErrNoNode) }
