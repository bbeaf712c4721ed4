package zkbridge

import (
	"fmt"
	"log/slog"
	"slices"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

// Part is one node of [Bridge.CreateAll]: what its asker would have sent as a Create.
type Part struct {
	From   ask.Recipient
	Create *messages.Create
}

// CreateAll puts contenders into the queues of several locks by one transaction, so
// that in each queue they come before the same others: all of them, or none. Each asker
// is answered as for a Create of its own. It does not block.
func (b *Bridge) CreateAll(parts []Part) {
	if len(parts) > 0 {
		b.ref.Tell(atomicCreateRequest{parts, b.cfg.Log})
	}
}

// MaxParts is how many parts CreateAll takes at most.
const MaxParts = maxOps / 2

// CreateEach is CreateAll for nodes that need not be created together: it divides them, in
// their order, into as few transactions as they fit into.
func (b *Bridge) CreateEach(parts []Part) {
	first, size := 0, 0
	for i, p := range parts {
		n := b.cfg.newCreate(replyTo{}, p.Create).atomicBytes(b.cfg.Root)
		if i > first && (i-first == MaxParts || size+n > zkconn.MaxRequest) {
			b.CreateAll(parts[first:i])
			first, size = i, 0
		}
		size += n
	}
	b.CreateAll(parts[first:])
}

// atomicBytes is what the create takes in a transaction with others, the read of its directory
// included.
func (c *createRequest) atomicBytes(root zkconn.Chroot) int {
	return 2*zkconn.OpBytes + c.bytes() + len(c.directory) + 2*len(root)
}

type atomicCreateRequest struct {
	parts []Part
	log   *slog.Logger
}

func (m atomicCreateRequest) fail(why messages.Reason, detail string) {
	for _, p := range m.parts {
		replyTo{p.From, p.Create.GetId(), p.Create.GetEpoch(), m.log}.fail(why, detail)
	}
}

// atomicCreate is several creates of which all are done or none is.
type atomicCreate struct {
	creates  []*createRequest
	lookedUp int // creates in doubt that were looked for
}

// createsIn reports whether one of the creates is in the directory.
func (j *atomicCreate) createsIn(directory string) bool {
	return slices.ContainsFunc(j.creates, func(c *createRequest) bool { return c.directory == directory })
}

func (a *bridgeActor) atomicCreate(m atomicCreateRequest) {
	j, size := &atomicCreate{}, 0
	for _, p := range m.parts {
		cr := a.cfg.newCreate(a.replyToOf(p.From, p.Create), p.Create)
		if err := cr.validate(a.cfg.Root); err != nil {
			m.fail(messages.Reason_INVALID, err.Error())
			return
		}
		cr.atomic, size = j, size+cr.atomicBytes(a.cfg.Root)
		j.creates = append(j.creates, cr)
	}
	if len(j.creates) > MaxParts || size > zkconn.MaxRequest {
		m.fail(messages.Reason_INVALID, fmt.Sprintf("%d nodes, %d bytes at once: the limits are %d and %d",
			len(j.creates), size, MaxParts, zkconn.MaxRequest))
		return
	}
	for _, cr := range j.creates {
		if why, detail := a.rejectReason(cr.epoch, len(j.creates)); why != 0 {
			m.fail(why, detail) // to all: none of them is sent
			return
		}
	}
	for _, cr := range j.creates {
		a.epoch.addOpen(cr)
	}
	a.epoch.batcher.add(write{atomic: j})
}

// resubmitAtomic sends creates again that were not executed because of err.
func (ep *epoch) resubmitAtomic(j *atomicCreate, err error) {
	j.lookedUp = 0
	if w := (write{atomic: j}); ep.mayRetry(w, err) {
		ep.batcher.add(w)
	}
}

// failAtomic ends creates of which none was executed.
func (ep *epoch) failAtomic(j *atomicCreate, why messages.Reason, err error) {
	for _, c := range j.creates {
		if _, open := ep.open[c]; open {
			ep.failCreate(c, why, err)
		}
	}
}

// onAtomicLookup takes what was found of a create in doubt. The transaction was executed
// if there is any of its nodes; the others then were deleted since.
func (ep *epoch) onAtomicLookup(c *createRequest, s *lookup) {
	j := c.atomic
	c.lookup = s
	if j.lookedUp++; j.lookedUp < len(j.creates) {
		return
	}
	executed := false
	for _, c := range j.creates {
		executed = executed || c.lookup.node != ""
	}
	if !executed {
		ep.resubmitAtomic(j, errNotExecuted)
		return
	}
	for _, c := range j.creates {
		c.node = c.lookup.node
		ep.finishCreate(c, *c.lookup, nil)
	}
}

// ungrouped gives the writes of a batch as they were in the queue.
func ungrouped(writes []write) []write {
	all := writes[:0:0]
	for _, w := range writes {
		switch {
		case w.create == nil || w.create.atomic == nil:
			all = append(all, w)
		case len(writes) == 1 || w.create == w.create.atomic.creates[0]:
			all = append(all, write{atomic: w.create.atomic})
		}
	}
	return all
}

// lookUpCreated reads the czxid of a node that was made by a transaction whose zxid is not known.
func (ep *epoch) lookUpCreated(c *createRequest, node string) {
	c.node = node
	ep.singles.addBlocking(func() func() {
		s, err := lookUpNode(ep.client, c.directory, node)
		return func() { ep.finishCreate(c, s, err) }
	})
}
