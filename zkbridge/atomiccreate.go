package zkbridge

import (
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/writer"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

// Create is a node that Internals.CreateAtomically or CreateEach is to make: what NewCreate returns.
type Create = writer.Create

// NewCreate returns a create for the actor that would have sent the message, which gets the answer as for a
// Create of its own. Nothing may write to the message.
func (b *internals) NewCreate(from ask.Recipient, msg *messages.Create) *Create {
	return writer.NewCreate(b.cfg.replyTo(from, msg), msg, b.cfg.ACL)
}

// CreateAtomically puts contenders into the queues of several locks by one transaction: all of
// them, or none. So in each queue they come before the same others. A create is passed to the bridge
// once. CreateAtomically does not block.
func (b *internals) CreateAtomically(creates []*Create) {
	if len(creates) > 0 {
		b.ref.Tell(writer.NewAtomicCreate(creates))
	}
}

// MaxAtomicCreates is how many nodes CreateAtomically creates at most.
const MaxAtomicCreates = writer.MaxParts

// CreateEach is CreateAtomically for nodes that need not be created together: it divides them, in
// their order, into as few transactions as they fit into.
func (b *internals) CreateEach(creates []*Create) {
	first, size := 0, 0
	for i, c := range creates {
		n := c.AtomicBytes(b.cfg.Root)
		if i > first && (i-first == MaxAtomicCreates || size+n > zkconn.MaxRequest) {
			b.CreateAtomically(creates[first:i])
			first, size = i, 0
		}
		size += n
	}
	b.CreateAtomically(creates[first:])
}

// AwaitRoom calls f, once, when few of the requests to the bridge are unanswered, so that n more do not
// make others wait for long. The waits end one after the other, in their order, and each at the latest
// when as many requests are answered as were unanswered at its beginning. So each wait ends while ZooKeeper
// answers. The bridge also calls f without a session, and when it is closed. f runs on the bridge's goroutine
// or on the caller's, and must not block. AwaitRoom never blocks.
func (b *internals) AwaitRoom(n int, f func()) { b.ref.Tell(roomWait{n: n, f: f}) }
