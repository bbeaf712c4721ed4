package writer

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/reply"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
	"github.com/actorlock/actorlock/zkbridge/zkpath"
)

// batch is a transaction: groups of creates, and deletes, in the order in which they came. A batch
// with a create ends with one operation that writes the session node, if there is one: its result
// has the transaction's zxid, which is the czxid of all nodes created. Reads of the directories
// that the batch creates in follow in the same flight. ZooKeeper answers a session's requests in
// order, so the reads see the new nodes.
type batch struct {
	groups      []*Group
	writes      []reply.Sender         // of the groups: a *Create or a *NodeRelease each
	creates     uint32                 // among the writes
	directories []*directory           // of a batch from their lines
	containers  []container            // that the transaction makes first
	mayFail     bool                   // the directory of one of the creates may be missing, so that nothing is executed
	watches     []watchedRead          // behind the transaction; each sets a watch
	watched     *watchedDirectories    // of the writer
	reads       []zkconn.DirectoryRead // behind the transaction
	// readIndex has Create.read for each directory that the batch creates in or makes. A search in
	// its place builds a batch of 60 locks in three times the time.
	readIndex map[string]int32
	ops       []zkconn.Op // those that make directories, those of the writes, and that on the session node if the batch writes it
	size      int         // bytes of the messages
	root      int         // bytes of the chroot, which is before each path

	answersDue atomic.Int32 // of the transaction, and of all reads
	results    []zk.MultiResponse
	err        error
}

// container is a directory that a transaction makes: one with creates of the batch, or one above
// such a directory.
type container struct {
	path string
	of   *directory
}

const (
	maxOps = 128
	// MaxBytes bounds a batch.
	MaxBytes = 64 << 10

	// maxFailures is how many transactions with a write may fail because of other writes. After
	// that the write goes alone.
	maxFailures = 3

	// noReadNeeded is the index of a create whose transaction deletes Create.after: both nodes are
	// in one directory, which need not be read.
	noReadNeeded = -1
	// newDirectory is the index of a create whose transaction makes the directory: nothing else is
	// in it.
	newDirectory = -2
	// watched is the index of a create whose directory is watched, or will be behind the
	// transaction: see watchedDirectories.
	watched = -3
)

// newBatch returns an empty batch, which buildBatch or buildNewBatch fills.
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

// createsIn reports whether the batch creates a node in the directory.
func (b *batch) createsIn(directory string) bool {
	_, creates := b.readIndex[directory]
	return creates
}

// add puts g into the batch unless the batch is full, and reports whether it has. Without a
// session node each create goes alone.
func (b *batch) add(g *Group, sessionNode bool) bool {
	if len(b.groups) > 0 && !b.fits(g, sessionNode) {
		return false
	}
	b.groups = append(b.groups, g)
	b.size += b.bytesOf(g)
	if g.release != nil {
		b.writes = append(b.writes, g.release)
	}
	for _, c := range g.creates {
		b.addCreate(c)
	}
	for _, c := range g.creates { // the parts of an atomic create share the last one's step
		c.step = b.creates - 1
	}
	return true
}

// fits reports whether g fits behind the others.
func (b *batch) fits(g *Group, sessionNode bool) bool {
	n := max(1, len(g.creates))
	switch {
	case g.failures >= maxFailures || b.groups[0].failures >= maxFailures:
		return false
	case !sessionNode && (b.creates > 0 || g.release == nil):
		return false
	case len(b.containers)+len(b.writes)+g.containers()+n+1 > maxOps:
		return false
	}
	return b.size+b.bytesOf(g) <= MaxBytes
}

// bytesOf returns the size of a group's own operations in the message.
func (b *batch) bytesOf(g *Group) int { return g.bytes() + b.root*max(1, len(g.creates)) }

// addCreate adds a create, and what says in which directory its node is (setDirectory): the transaction
// makes the directory, or deletes a node there, or the directory is watched, or read behind the transaction.
func (b *batch) addCreate(c *Create) {
	b.creates++
	b.mayFail = b.mayFail || !c.exists && !b.deletesIn(c.msg.GetDirectory())
	if b.readIndex == nil {
		b.readIndex = map[string]int32{}
	}
	switch {
	case c.in != nil && c.in.state == missing:
		b.addContainers(c)
	case c.msg.GetAfter() != "" && b.deletes(c.msg.GetDirectory(), c.msg.GetAfter()):
		c.read = noReadNeeded
		if _, known := b.readIndex[c.msg.GetDirectory()]; !known {
			b.readIndex[c.msg.GetDirectory()] = noReadNeeded
		}
	case !b.watch(c):
		b.addRead(c)
	}
	b.writes = append(b.writes, c)
}

// deletesIn reports whether the transaction deletes a node in the directory, which therefore
// exists. A delete with an unknown outcome does not show that, because the node may be gone.
// Without this rule hot64 makes a fifth less acquires: its creates would wait for the answer to the
// batch before.
func (b *batch) deletesIn(directory string) bool {
	for _, w := range slices.Backward(b.writes) {
		if r, is := w.(*NodeRelease); is && r.msg.GetDirectory() == directory && r.unknownSince == 0 {
			return true
		}
	}
	return false
}

// addContainers has the transaction make the directory of a create, behind those above that are
// missing.
func (b *batch) addContainers(c *Create) {
	c.read = newDirectory
	for _, path := range slices.Backward(c.in.paths()) {
		if _, known := b.readIndex[path]; !known {
			b.readIndex[path] = newDirectory
			b.containers = append(b.containers, container{path, c.in})
			b.size += containerBytes(path, b.root, int(c.aclBytes))
		}
	}
}

// containerBytes returns the size of the operation that makes a directory.
func containerBytes(path string, root, acl int) int { return zkconn.OpBytes + root + len(path) + acl }

// deletes reports whether the transaction deletes a node. It begins with the last writes: a release
// and the next create are mostly close to each other.
func (b *batch) deletes(directory, node string) bool {
	for _, w := range slices.Backward(b.writes) {
		if r, is := w.(*NodeRelease); is && r.msg.GetNode() == node && r.msg.GetDirectory() == directory {
			return true
		}
	}
	return false
}

// addRead has the directory of a create read behind the transaction.
func (b *batch) addRead(c *Create) {
	i, known := b.readIndex[c.msg.GetDirectory()]
	if !known || i < 0 {
		i = int32(len(b.reads))
		b.readIndex[c.msg.GetDirectory()] = i
		b.reads = append(b.reads, zkconn.DirectoryRead{Path: c.msg.GetDirectory()})
		b.size += zkconn.OpBytes + b.root + len(c.msg.GetDirectory())
	}
	c.read = i
	b.reads[i].WithNames = b.reads[i].WithNames || c.msg.GetListAfter()
}

// finishBatch makes the operations of a batch that has what it can take. It returns nil for an empty one.
func (w *Writer) finishBatch(b *batch) *batch {
	if len(b.writes) == 0 {
		w.freeBatches = append(w.freeBatches, b)
		return nil
	}
	b.buildOps(w.cfg.ACL, w.SessionNode)
	return b
}

// buildOps makes the operations, in this order: containers that may be missing, creates and deletes, and
// the write of the session node, whose zxid is the czxid of all. Nodes get the ACL. sessionNode is the path
// of the session node, or empty.
func (b *batch) buildOps(acl []zk.ACL, sessionNode string) {
	b.ops = slices.Grow(b.ops, len(b.containers)+len(b.writes)+1)
	for _, made := range b.containers {
		op := zkconn.Op{Kind: zkconn.OpContainer, Path: made.path, Data: zkconn.NoData, ACL: acl}
		if made.of.persistent {
			op.Kind = zkconn.OpCreate // without flags
		}
		b.ops = append(b.ops, op)
	}
	for _, w := range b.writes {
		switch w := w.(type) {
		case *Create:
			b.ops = append(b.ops, zkconn.Op{Kind: zkconn.OpCreate, Path: w.msg.GetDirectory(), Node: w.msg.GetPrefix(), Data: w.data(), ACL: acl, Flags: zk.FlagEphemeralSequential})
		case *NodeRelease:
			b.ops = append(b.ops, zkconn.Op{Kind: zkconn.OpDelete, Path: w.msg.GetDirectory(), Node: w.msg.GetNode(), Version: zkconn.AnyVersion})
		}
	}
	if sessionNode != "" && b.creates > 0 {
		b.ops = append(b.ops, zkconn.Op{Kind: zkconn.OpSet, Path: sessionNode, Data: zkconn.NoData, Version: zkconn.AnyVersion})
	}
}

// send sends the transaction (buildOps) and the reads behind it. It calls done on any goroutine when
// all are answered.
func (b *batch) send(client zkconn.Client, done func()) {
	b.answersDue.Store(int32(1 + len(b.watches) + min(1, len(b.reads))))
	answered := func() {
		if b.answersDue.Add(-1) == 0 {
			done()
		}
	}
	executed := func(results []zk.MultiResponse, err error) {
		b.results, b.err = results, err
		answered()
	}
	switch first := b.ops[0]; {
	case len(b.ops) > 1:
		client.Multi(b.ops, executed)
	case first.Kind == zkconn.OpCreate: // without the session node: a create that is sent alone is mostly answered with its czxid
		client.CreateSequential(zkpath.Join(first.Path, first.Node), first.Data, executed)
	default:
		client.Delete(zkpath.Join(first.Path, first.Node), executed)
	}
	b.sendWatches(client, answered)
	if len(b.reads) > 0 {
		client.ReadDirectories(b.reads, answered)
	}
}

// noteSent notes the time at which the creates are sent.
func (b *batch) noteSent(now time.Duration) {
	for _, w := range b.writes {
		if c, is := w.(*Create); is {
			c.sentAt = now
		}
	}
}

// writesSessionNode reports whether the last operation writes the session node.
func (b *batch) writesSessionNode() bool { return len(b.ops) > len(b.containers)+len(b.writes) }

// czxid returns the czxid of all nodes created, or 0 if the answer does not contain it. It is the
// mzxid of each node that is answered with a stat: of containers, and of the session node.
func (b *batch) czxid() int64 {
	for _, i := range []int{len(b.results) - 1, 0} {
		if stat := b.results[i].Stat; stat != nil {
			return stat.Mzxid
		}
	}
	return 0
}

// setDirectory notes in an answer what the batch has learned of the create's directory (addCreate).
func (b *batch) setDirectory(msg *messages.Created, c *Create) {
	switch c.read {
	case noReadNeeded: // the same transaction has deleted the node After
		msg.SameDirectory = true
	case newDirectory: // it is as old as its nodes, and has no others
		msg.DirectoryCzxid = msg.Czxid
		if c.in.nodes == 1 {
			msg.Children = []string{msg.Node}
		} else if c.msg.GetListAfter() {
			msg.Children = b.namesIn(c.in)
		}
	case watched:
		msg.DirectoryCzxid = b.watched.czxid(c.msg.GetDirectory())
	default:
		read := &b.reads[c.read] // empty if it has failed: then the lock asks for a list
		msg.DirectoryCzxid = read.Listing.Czxid
		if c.msg.GetListAfter() {
			msg.Children = read.Listing.Children
		}
	}
}

// namesIn returns the names of the nodes that the transaction has created in a directory.
func (b *batch) namesIn(d *directory) (names []string) {
	for i, w := range b.writes {
		if c, is := w.(*Create); is && c.in == d {
			_, name := zkpath.Split(b.results[len(b.containers)+i].String)
			names = append(names, name)
		}
	}
	return names
}

// reset makes the batch empty. It keeps the memory.
func (b *batch) reset() {
	clear(b.groups)
	clear(b.writes)
	clear(b.watches)
	clear(b.reads)
	clear(b.readIndex)
	clear(b.ops)
	clear(b.directories)
	clear(b.containers)
	b.directories, b.containers = b.directories[:0], b.containers[:0]
	b.groups, b.writes, b.watches, b.reads, b.ops = b.groups[:0], b.writes[:0], b.watches[:0], b.reads[:0], b.ops[:0]
	b.creates, b.mayFail, b.size, b.results, b.err = 0, false, 0, nil, nil
}
