package zkbridge

import (
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
)

// newCreates are the creates of an epoch in directories that this session has not seen. They wait
// here until the writer has few such directories to send. To take up a create takes the bridge ten
// times as long as to note it here: thousands of locks that are used for the first time at one
// moment must not stand in front of the requests of others.
type newCreates struct {
	waiting []newCreate
	n       int            // nodes of these
	in      map[string]int // by directory, how many of these nodes are to be in it, without the first of each lock
}

// newCreate is a create or an atomic create, as it came.
type newCreate struct {
	from   ask.Recipient
	single *messages.Create // nil for an atomic create
	parts  *atomicCreateRequest
}

// maxNewCreates is how many directories the writer has to send at most while creates wait here, and
// how many of these are taken up in a row.
const maxNewCreates = 128

// take notes a create, and reports whether it has. It leaves those alone that are not for this
// epoch or over the limit, which are answered at once; and those in directories that were seen,
// unless others wait for the same directory: these keep their order.
func (ep *epoch) take(c newCreate, creates ...*messages.Create) bool {
	a, isNew := ep.actor, false
	for _, msg := range creates {
		if msg.GetEpoch() != a.session.epoch || a.session.state == messages.SessionState_LOST {
			return false
		}
		isNew = isNew || !msg.GetDirectoryExists() && !msg.GetDirectorySeen() || ep.fresh.in[msg.GetDirectory()] > 0
	}
	if max := a.cfg.maxOutstanding; !isNew || max > 0 && ep.outstanding()+len(creates) > max {
		return false
	}
	for _, msg := range creates {
		if isFirst(msg) {
			continue
		}
		if ep.fresh.in == nil {
			ep.fresh.in = map[string]int{}
		}
		ep.fresh.in[msg.GetDirectory()]++
	}
	ep.fresh.waiting = append(ep.fresh.waiting, c)
	ep.fresh.n += len(creates)
	return true
}

// isFirst reports whether a create is the first of its sender in a directory: see Create.list_after.
// The sender sees the directory by the answer to it, so that what it creates then comes later. (An
// answer to a create that the sender has given up before this one is an exception: a later create may
// then overtake this one. A map of thousands of first creates takes as long as all else here.)
func isFirst(msg *messages.Create) bool {
	return msg.GetListAfter() && !msg.GetDirectoryExists() && !msg.GetDirectorySeen()
}

// creates returns the nodes of a create or an atomic create.
func (c newCreate) creates() []*messages.Create {
	if c.single != nil {
		return []*messages.Create{c.single}
	}
	return c.parts.creates()
}

// outstanding returns how many requests wait for an answer.
func (ep *epoch) outstanding() int { return ep.open.Len() + ep.fresh.n }

// hasNewCreates reports whether creates wait that the writer can take.
func (ep *epoch) hasNewCreates() bool {
	return len(ep.fresh.waiting) > 0 && ep.writer.NewWaiting() < maxNewCreates
}

// takeUpNewCreates passes on creates, in their order, as long as the writer has few directories to
// send that may be new.
func (ep *epoch) takeUpNewCreates() {
	for i := 0; i < maxNewCreates && ep.hasNewCreates(); i++ {
		c := ep.removeFirst()
		if c.single != nil {
			ep.actor.openCreate(c.from, c.single, 0)
		} else {
			ep.actor.openAtomicCreate(c.parts, 0)
		}
	}
	if ep.hasNewCreates() {
		ep.actor.self.Tell(task(func(*bridgeActor) {})) // so that Flush is called again, behind the requests that have come
	}
}

func (ep *epoch) removeFirst() newCreate {
	f := &ep.fresh
	first := f.waiting[0]
	f.waiting[0] = newCreate{}
	f.waiting = f.waiting[1:]
	for _, msg := range first.creates() {
		f.n--
		if isFirst(msg) {
			continue
		}
		if left := f.in[msg.GetDirectory()] - 1; left > 0 {
			f.in[msg.GetDirectory()] = left
		} else {
			delete(f.in, msg.GetDirectory())
		}
	}
	if len(f.waiting) == 0 {
		*f = newCreates{} // the memory of many would stay
	}
	return first
}

// failNewCreates answers all creates that wait.
func (ep *epoch) failNewCreates(why messages.Reason, detail string) {
	for _, c := range ep.fresh.waiting {
		if c.single != nil {
			ep.actor.replyTo(c.from, c.single).Fail(why, detail)
		} else {
			c.parts.Fail(why, detail)
		}
	}
	ep.fresh = newCreates{}
}
