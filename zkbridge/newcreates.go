package zkbridge

import (
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
)

// newCreates are the creates of the present epoch in directories that this session has not seen. They wait
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
func (a *bridgeActor) take(c newCreate, creates ...*messages.Create) bool {
	f, isNew := &a.fresh, false
	for _, msg := range creates {
		if a.epoch == nil || msg.GetEpoch() != a.session.Epoch || a.session.State == messages.SessionState_LOST {
			return false
		}
		isNew = isNew || !msg.GetDirectoryExists() && !msg.GetDirectorySeen() || f.in[msg.GetDirectory()] > 0
	}
	if max := a.cfg.maxOutstanding; !isNew || max > 0 && a.outstanding()+len(creates) > max {
		return false
	}
	for _, msg := range creates {
		if isFirst(msg) {
			continue
		}
		if f.in == nil {
			f.in = map[string]int{}
		}
		f.in[msg.GetDirectory()]++
	}
	f.waiting = append(f.waiting, c)
	f.n += len(creates)
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

// hasNewCreates reports whether creates wait that the writer can take.
func (a *bridgeActor) hasNewCreates() bool {
	return len(a.fresh.waiting) > 0 && a.epoch.Writer.NewWaiting() < maxNewCreates
}

// takeUpNewCreates passes on creates, in their order, as long as the writer has few directories to
// send that may be new.
func (a *bridgeActor) takeUpNewCreates() {
	for i := 0; i < maxNewCreates && a.hasNewCreates(); i++ {
		c := a.fresh.removeFirst()
		if c.single != nil {
			a.openCreate(c.from, c.single, 0)
		} else {
			a.openAtomicCreate(c.parts, 0)
		}
	}
	if a.hasNewCreates() {
		a.self.Tell(task(func(*bridgeActor) {})) // so that Flush is called again, behind the requests that have come
	}
}

func (f *newCreates) removeFirst() newCreate {
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
func (a *bridgeActor) failNewCreates(why messages.Reason, detail string) {
	for _, c := range a.fresh.waiting {
		if c.single != nil {
			a.replyTo(c.from, c.single).Fail(why, detail)
		} else {
			c.parts.Fail(why, detail)
		}
	}
	a.fresh = newCreates{}
}
