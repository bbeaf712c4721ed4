package zkbridge

import (
	"fmt"
	"log/slog"
	"slices"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
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
		b.ref.Tell(createAll{parts, b.cfg.log})
	}
}

// MaxParts is how many parts CreateAll takes at most.
const MaxParts = maxOps / 2

// CreateEach is CreateAll for nodes that need not be created together: it divides them, in
// their order, into as few transactions as they fit into.
func (b *Bridge) CreateEach(parts []Part) {
	first, size := 0, 0
	for i, p := range parts {
		n := b.cfg.newCreate(asker{}, p.Create).jointBytes(b.cfg.root)
		if i > first && (i-first == MaxParts || size+n > maxRequest) {
			b.CreateAll(parts[first:i])
			first, size = i, 0
		}
		size += n
	}
	b.CreateAll(parts[first:])
}

// jointBytes is what the create takes in a transaction with others, the read of its directory
// included.
func (c *create) jointBytes(root chroot) int {
	return 2*opBytes + c.bytes() + len(c.directory) + 2*len(root)
}

type createAll struct {
	parts []Part
	log   *slog.Logger
}

func (m createAll) give(why messages.Reason, detail string) {
	for _, p := range m.parts {
		asker{p.From, p.Create.GetId(), p.Create.GetEpoch(), m.log}.give(why, detail)
	}
}

// joint is several creates of which all are done or none is.
type joint struct {
	creates []*create
	looked  int // creates in doubt that were looked for
}

// createsIn reports whether one of the creates is in the directory.
func (j *joint) createsIn(directory string) bool {
	return slices.ContainsFunc(j.creates, func(c *create) bool { return c.directory == directory })
}

func (c *core) createAll(m createAll) {
	j, size := &joint{}, 0
	for _, p := range m.parts {
		cr := c.cfg.newCreate(c.askerOf(p.From, p.Create), p.Create)
		if err := cr.check(c.cfg.root); err != nil {
			m.give(messages.Reason_INVALID, err.Error())
			return
		}
		cr.joint, size = j, size+cr.jointBytes(c.cfg.root)
		j.creates = append(j.creates, cr)
	}
	if len(j.creates) > MaxParts || size > maxRequest {
		m.give(messages.Reason_INVALID, fmt.Sprintf("%d nodes, %d bytes at once: the limits are %d and %d",
			len(j.creates), size, MaxParts, maxRequest))
		return
	}
	for _, cr := range j.creates {
		if why, detail := c.obstacle(cr.epoch, len(j.creates)); why != 0 {
			m.give(why, detail) // to all: none of them is sent
			return
		}
	}
	for _, cr := range j.creates {
		c.ep.admit(cr)
	}
	c.ep.outbox.add(write{j: j})
}

// replaceJoint sends creates again that were not executed because of err.
func (ep *epoch) replaceJoint(j *joint, err error) {
	j.looked = 0
	if w := (write{j: j}); ep.mayRetry(w, err) {
		ep.outbox.add(w)
	}
}

// failJoint ends creates of which none was executed.
func (ep *epoch) failJoint(j *joint, why messages.Reason, err error) {
	for _, c := range j.creates {
		if _, open := ep.open[c]; open {
			ep.failCreate(c, why, err)
		}
	}
}

// resolvedJoint takes what was found of a create in doubt. The transaction was executed
// if there is any of its nodes; the others then were deleted since.
func (ep *epoch) resolvedJoint(c *create, s *sighting) {
	j := c.joint
	c.sighting = s
	if j.looked++; j.looked < len(j.creates) {
		return
	}
	executed := false
	for _, c := range j.creates {
		executed = executed || c.sighting.node != ""
	}
	if !executed {
		ep.replaceJoint(j, errNotExecuted)
		return
	}
	for _, c := range j.creates {
		c.node = c.sighting.node
		ep.found(c, *c.sighting, nil)
	}
}

// regroup gives the writes of a batch as they were in the queue.
func regroup(writes []write) []write {
	all := writes[:0:0]
	for _, w := range writes {
		switch {
		case w.c == nil || w.c.joint == nil:
			all = append(all, w)
		case len(writes) == 1 || w.c == w.c.joint.creates[0]:
			all = append(all, write{j: w.c.joint})
		}
	}
	return all
}

// readBack reads the czxid of a node that was made by a transaction whose zxid is not known.
func (ep *epoch) readBack(c *create, node string) {
	c.node = node
	ep.solos.do(func() func() {
		s, err := stat(ep.client, c.directory, node)
		return func() { ep.found(c, s, err) }
	})
}
