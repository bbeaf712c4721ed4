package zkbridge

import (
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"
)

// batch is a transaction: creates and deletes in the order in which they came,
// and behind them, for each directory with creates, one operation that writes its
// data anew. That one returns the directory's stat: how many children there are
// now, and the transaction's zxid, which is the czxid of the nodes created.
type batch struct {
	writes []write
	dirs   []batchDir
	ops    []any // of writes, then of dirs
	size   int
}

type batchDir struct {
	dir     *directory
	creates uint32
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
	if w.c != nil {
		b.count(w.c)
	}
}

// takes tells if w fits behind others. For each create there must be room for the
// operation on its directory, too.
func (b *batch) takes(w write) bool {
	switch {
	case w.failures() >= maxFailures || b.writes[0].failures() >= maxFailures:
		return false
	case len(b.writes)+len(b.dirs)+2 > maxOps:
		return false
	}
	return b.size+w.bytes() <= maxBytes
}

// count finds the place of a create among those of its directory.
func (b *batch) count(c *create) {
	if !c.dir.writable() { // as only a joint may have
		c.slot = -1
		return
	}
	for i := range b.dirs {
		if d := &b.dirs[i]; c.in(d.dir) {
			c.slot, c.step = i, d.creates
			d.creates++
			return
		}
	}
	c.slot, c.step = len(b.dirs), 0
	b.dirs = append(b.dirs, batchDir{c.dir, 1})
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
	for _, d := range b.dirs {
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
		return b.dirs[i-len(b.writes)].dir
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
