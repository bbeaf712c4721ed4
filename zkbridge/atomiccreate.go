package zkbridge

import (
	"github.com/actorlock/actorlock/zkbridge/internal/reply"
	"github.com/actorlock/actorlock/zkbridge/internal/writer"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

// CreateAtomically puts contenders into the queues of several locks by one transaction: all of
// them, or none. So in each queue they come before the same others. The bridge answers each sender
// as for a Create of its own. CreateAtomically does not block.
func (b *internals) CreateAtomically(specs []CreateSpec) {
	if len(specs) > 0 {
		b.ref.Tell(&createRequest{specs, b.cfg.Log})
	}
}

// MaxAtomicCreates is how many nodes CreateAtomically creates at most.
const MaxAtomicCreates = writer.MaxParts

// CreateEach is CreateAtomically for nodes that need not be created together: it divides them, in
// their order, into as few transactions as they fit into.
func (b *internals) CreateEach(specs []CreateSpec) {
	first, size := 0, 0
	for i, p := range specs {
		n := writer.NewCreate(reply.To{}, p.Create, b.cfg.ACL).AtomicBytes(b.cfg.Root)
		if i > first && (i-first == MaxAtomicCreates || size+n > zkconn.MaxRequest) {
			b.CreateAtomically(specs[first:i])
			first, size = i, 0
		}
		size += n
	}
	b.CreateAtomically(specs[first:])
}

// AwaitRoom calls f, once, when few of the requests to the bridge are unanswered, so that n more do not
// make others wait for long. The waits end one after the other, in their order, and each at the latest
// when as many requests are answered as were unanswered at its beginning. So each wait ends while ZooKeeper
// answers. The bridge also calls f without a session, and when it is closed. f runs on the bridge's goroutine
// or on the caller's, and must not block. AwaitRoom never blocks.
func (b *internals) AwaitRoom(n int, f func()) { b.ref.Tell(roomWait{n: n, f: f}) }
