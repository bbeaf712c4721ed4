package zkbridge

import (
	"log/slog"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/reply"
	"github.com/actorlock/actorlock/zkbridge/internal/writer"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

// Part is one node of [Bridge.CreateAll]: what its sender would have sent as a Create.
type Part struct {
	From   ask.Recipient
	Create *messages.Create
}

// CreateAll puts contenders into the queues of several locks by one transaction: all of them, or
// none. So in each queue they come before the same others. The bridge answers each sender as for a
// Create of its own. CreateAll does not block.
func (b *Bridge) CreateAll(parts []Part) {
	if len(parts) > 0 {
		b.ref.Tell(atomicCreateRequest{parts, b.cfg.Log})
	}
}

// MaxParts is how many parts CreateAll takes at most.
const MaxParts = writer.MaxParts

// CreateEach is CreateAll for nodes that need not be created together: it divides them, in their
// order, into as few transactions as they fit into.
func (b *Bridge) CreateEach(parts []Part) {
	first, size := 0, 0
	for i, p := range parts {
		n := writer.NewCreate(reply.To{}, p.Create, b.cfg.ACL).AtomicBytes(b.cfg.Root)
		if i > first && (i-first == MaxParts || size+n > zkconn.MaxRequest) {
			b.CreateAll(parts[first:i])
			first, size = i, 0
		}
		size += n
	}
	b.CreateAll(parts[first:])
}

// atomicCreateRequest is the message of CreateAll to the actor.
type atomicCreateRequest struct {
	parts []Part
	log   *slog.Logger
}

// Fail implements request.
func (r atomicCreateRequest) Fail(why messages.Reason, detail string) {
	for _, p := range r.parts {
		reply.To{Recipient: p.From, ID: p.Create.GetId(), Epoch: p.Create.GetEpoch(), Log: r.log}.Fail(why, detail)
	}
}

func (a *bridgeActor) atomicCreate(r atomicCreateRequest) {
	var parts []*writer.Create
	for _, p := range r.parts {
		parts = append(parts, writer.NewCreate(a.replyToOf(p.From, p.Create), p.Create, a.cfg.ACL))
	}
	all, err := writer.NewAtomicCreate(parts, a.cfg.Root)
	if err != nil {
		r.Fail(messages.Reason_INVALID, err.Error())
		return
	}
	for _, c := range parts {
		if why, detail := a.rejectReason(c.Epoch, len(parts)); why != 0 {
			r.Fail(why, detail) // to all: none of them is sent
			return
		}
	}
	for _, c := range parts {
		a.epoch.addOpen(c)
	}
	a.epoch.writer.CreateAtomically(all)
}
