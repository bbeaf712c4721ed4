package zkbridge

import (
	"log/slog"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/reply"
	"github.com/actorlock/actorlock/zkbridge/internal/writer"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

// CreateSpec is one node of [Bridge.CreateAtomically]: a Create, and the actor that would have sent
// it.
type CreateSpec struct {
	From   ask.Recipient
	Create *messages.Create
}

// CreateAtomically puts contenders into the queues of several locks by one transaction: all of
// them, or none. So in each queue they come before the same others. The bridge answers each sender
// as for a Create of its own. CreateAtomically does not block.
func (b *Bridge) CreateAtomically(specs []CreateSpec) {
	if len(specs) > 0 {
		b.ref.Tell(&atomicCreateRequest{specs, b.cfg.Log})
	}
}

// MaxAtomicCreates is how many nodes CreateAtomically creates at most.
const MaxAtomicCreates = writer.MaxParts

// CreateEach is CreateAtomically for nodes that need not be created together: it divides them, in
// their order, into as few transactions as they fit into.
func (b *Bridge) CreateEach(specs []CreateSpec) {
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

// atomicCreateRequest is the message of CreateAtomically to the actor.
type atomicCreateRequest struct {
	specs []CreateSpec
	log   *slog.Logger
}

func (r *atomicCreateRequest) creates() (all []*messages.Create) {
	for _, p := range r.specs {
		all = append(all, p.Create)
	}
	return all
}

// Fail implements reply.Failer.
func (r *atomicCreateRequest) Fail(why messages.Reason, detail string) {
	for _, p := range r.specs {
		reply.To{Recipient: p.From, ID: p.Create.GetId(), Epoch: p.Create.GetEpoch(), Log: r.log}.Fail(why, detail)
	}
}

func (r *atomicCreateRequest) handle(a *bridgeActor) {
	if !a.take(newCreate{parts: r}, r.creates()...) {
		a.openAtomicCreate(r, len(r.specs))
	}
}

// openAtomicCreate opens an atomic create of n nodes. n is 0 for one that is within the limit already.
func (a *bridgeActor) openAtomicCreate(r *atomicCreateRequest, n int) {
	var parts []*writer.Create
	for _, p := range r.specs {
		parts = append(parts, writer.NewCreate(a.replyTo(p.From, p.Create), p.Create, a.cfg.ACL))
	}
	all, err := writer.NewAtomicCreate(parts, a.cfg.Root)
	for _, c := range parts {
		if !a.mayOpen(r, c.Epoch, n, err) { // r answers all: none of them is sent
			return
		}
	}
	for _, c := range parts {
		a.epoch.Add(c)
	}
	a.epoch.Create(all)
}
