package zkbridge

import (
	"slices"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

// batch is a transaction: creates and deletes in the order in which they came, and behind
// them, if there is a create, one operation that writes the session's own node. That one
// returns the transaction's zxid, which is the czxid of all nodes created. Reads of the
// directories that it creates in follow the transaction in the same flight; ZooKeeper
// answers a session's requests in order, so they see the new nodes.
type batch struct {
	writes        []write
	creates       uint32
	mayMiss       bool // the directory of a create may be missing; then ZooKeeper executes nothing
	reads         []directoryRead
	readIndex     map[string]int32 // index of a directory's look
	ops           []any            // of writes, then that on the session's own node
	writesOwnNode bool             // the last operation writes the session's own node
	size          int

	unanswered atomic.Int32 // answers that are missing
	results    []zk.MultiResponse
	err        error
}

// directoryRead is a read of a directory behind a transaction.
type directoryRead struct {
	directory string
	withNames bool // the names in the directory, too
	listing   zkconn.Listing
	err       error
}

const (
	maxOps    = 128
	maxBytes  = 64 << 10
	zkSeqSize = 10

	// maxFailures is how often a write may be in a transaction that others have
	// spoilt. After that it goes alone.
	maxFailures = 3
)

// add puts w into the batch unless that is full, and reports whether it has. A create that
// the session's own node cannot stamp goes alone.
func (b *batch) add(w write, stamped bool) bool {
	if len(b.writes) > 0 && !b.fits(w, stamped) {
		return false
	}
	creates := w.creates()
	for _, c := range creates {
		b.addWrite(write{create: c})
	}
	if w.release != nil {
		b.addWrite(w)
	}
	for _, c := range creates { // creates of one joint share the last one's step
		c.step = b.creates - 1
	}
	return true
}

func (b *batch) addWrite(w write) {
	if w.create != nil {
		b.creates++
		b.mayMiss = b.mayMiss || !w.create.exists
		if w.create.after != "" && b.deletes(w.create.directory, w.create.after) {
			w.create.read = noReadNeeded
		} else {
			b.addRead(w.create)
		}
	}
	b.writes = append(b.writes, w)
	b.size += w.bytes()
}

// noReadNeeded is the slot of a create whose transaction deletes the node that it is
// to come after: both nodes are in one directory, which need not be read.
const noReadNeeded = -1

// createsIn reports whether the transaction makes a node in the directory.
func (b *batch) createsIn(directory string) bool {
	return slices.ContainsFunc(b.writes, func(w write) bool { return w.create != nil && w.create.directory == directory })
}

// deletes reports whether the transaction deletes a node. It begins with the last writes: a
// release and the next create are close to each other most of the time.
func (b *batch) deletes(directory, node string) bool {
	for _, w := range slices.Backward(b.writes) {
		if w.release != nil && isIn(directory, node, w.release.path) {
			return true
		}
	}
	return false
}

// isIn reports whether path is the path of the node in the directory.
func isIn(directory, node, path string) bool {
	return len(path) == len(directory)+1+len(node) && path[len(directory)] == '/' &&
		path[len(directory)+1:] == node && path[:len(directory)] == directory
}

// fits reports whether w fits behind others.
func (b *batch) fits(w write, stamped bool) bool {
	n := 1
	if w.atomic != nil {
		n = len(w.atomic.creates)
	}
	switch {
	case w.failures() >= maxFailures || b.writes[0].failures() >= maxFailures:
		return false
	case !stamped && (b.creates > 0 || w.release == nil):
		return false
	case len(b.writes)+n+1 > maxOps:
		return false
	}
	return b.size+w.bytes() <= maxBytes
}

// addRead has the directory of a create read behind the transaction.
func (b *batch) addRead(c *createRequest) {
	i, known := b.readIndex[c.directory]
	if !known {
		if b.readIndex == nil {
			b.readIndex = map[string]int32{}
		}
		i = int32(len(b.reads))
		b.readIndex[c.directory] = i
		b.reads = append(b.reads, directoryRead{directory: c.directory})
		b.size += zkconn.OpBytes + len(c.directory)
	}
	c.read = i
	b.reads[i].withNames = b.reads[i].withNames || c.withNames
}

// buildOps makes the operations. Nodes get the ACL. own is the path of the session's own node,
// or empty.
func (b *batch) buildOps(acl []zk.ACL, own string) {
	b.ops = slices.Grow(b.ops, len(b.writes)+1)
	for _, w := range b.writes {
		if w.create != nil {
			b.ops = append(b.ops, w.create.createOp(acl))
		} else {
			b.ops = append(b.ops, w.release.deleteOp())
		}
	}
	if b.writesOwnNode = own != "" && b.creates > 0; b.writesOwnNode {
		b.ops = append(b.ops, &zk.SetDataRequest{Path: own, Data: zkconn.NoData, Version: zkconn.AnyVersion})
	}
}

// isSingleCreate reports whether the batch is one create that nothing stamps: a request of its own
// returns its czxid.
func (b *batch) isSingleCreate() bool {
	return !b.writesOwnNode && len(b.writes) == 1 && b.writes[0].create != nil
}

// send sends the transaction and the reads behind it. done is called once all of them are
// answered, on any goroutine.
func (b *batch) send(to zkconn.Client, done func()) {
	b.unanswered.Store(int32(1 + len(b.reads)))
	arrived := func() {
		if b.unanswered.Add(-1) == 0 {
			done()
		}
	}
	answered := func(results []zk.MultiResponse, err error) {
		b.results, b.err = results, err
		arrived()
	}
	switch first := b.writes[0]; {
	case b.isSingleCreate():
		to.CreateSequential(first.create.path(), first.create.data, answered)
	case len(b.ops) == 1:
		to.Delete(first.release.path, answered)
	default:
		to.Multi(b.ops, answered)
	}
	for i := range b.reads {
		l := &b.reads[i]
		seen := func(in zkconn.Listing, err error) {
			l.listing, l.err = in, err
			arrived()
		}
		if l.withNames {
			to.List(l.directory, false, seen)
		} else {
			to.ReadDirectoryCzxid(l.directory, seen)
		}
	}
}

// czxid is that of all nodes created, or 0 if the answer does not contain it.
func (b *batch) czxid() int64 {
	if last := b.results[len(b.results)-1].Stat; last != nil {
		return last.Mzxid
	}
	return 0
}

// reset makes the batch empty. It keeps its memory.
func (b *batch) reset() {
	clear(b.writes)
	clear(b.reads)
	clear(b.readIndex)
	clear(b.ops)
	b.writes, b.reads, b.ops = b.writes[:0], b.reads[:0], b.ops[:0]
	b.creates, b.mayMiss, b.writesOwnNode, b.size, b.results, b.err = 0, false, false, 0, nil, nil
}

func (w write) bytes() (n int) {
	if w.release != nil {
		return zkconn.OpBytes + len(w.release.path)
	}
	for _, c := range w.creates() {
		n += zkconn.OpBytes + c.bytes()
	}
	return n
}
