package zkbridge

import (
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/writer"
)

// Create implements messages.BridgeHandler.
func (a *bridgeActor) Create(from ask.Recipient, msg *messages.Create, _ ask.Reply[*messages.Created]) {
	if a.mustWait(msg) {
		a.fresh.add(&createRequest{[]CreateSpec{{from, msg}}, a.cfg.Log})
	} else {
		c := writer.NewCreate(a.replyTo(from, msg), msg, a.cfg.ACL)
		if a.mayOpen(c, msg.GetEpoch(), 1, c.Validate(a.cfg.Root)) { // otherwise mayOpen has answered Failed
			a.epoch.Add(c)
			a.epoch.Create(c.Group())
		}
	}
}

// mustWait reports whether a create, or an atomic create, waits among the newCreates until Flush: if a
// directory is one that this session has not seen, or others wait for the same directory: these keep their
// order. All other creates are opened or refused at once.
func (a *bridgeActor) mustWait(creates ...*messages.Create) bool {
	isNew := false
	for _, msg := range creates {
		if a.epoch == nil || msg.GetEpoch() != a.session.Epoch || a.session.State == messages.SessionState_LOST {
			return false
		}
		isNew = isNew || !msg.GetDirectoryExists() && !msg.GetDirectorySeen() || a.fresh.in[msg.GetDirectory()] > 0
	}
	max := a.cfg.maxOutstanding
	return isNew && (max == 0 || a.outstanding()+len(creates) <= max)
}

// handle implements handled.
func (r *createRequest) handle(a *bridgeActor) {
	if a.mustWait(r.creates()...) {
		a.fresh.add(r)
	} else {
		a.openAtomicCreate(r, len(r.specs))
	}
}

// openAtomicCreate opens an atomic create of n nodes. n is 0 for one that is within the limit already.
func (a *bridgeActor) openAtomicCreate(r *createRequest, n int) {
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

// hasNewCreates reports whether creates wait that the writer can take.
func (a *bridgeActor) hasNewCreates() bool {
	return len(a.fresh.waiting) > 0 && a.epoch.Writer.NewWaiting() < maxNewCreates
}

// takeUpNewCreates passes on creates, in their order, as long as the writer has few directories to
// send that may be new.
func (a *bridgeActor) takeUpNewCreates() {
	for i := 0; i < maxNewCreates && a.hasNewCreates(); i++ {
		a.openAtomicCreate(a.fresh.removeFirst(), 0)
	}
	if a.hasNewCreates() {
		a.self.Tell(task(func(*bridgeActor) {})) // so that Flush is called again, behind the requests that have come
	}
}

// failNewCreates answers all creates that wait.
func (a *bridgeActor) failNewCreates(why messages.Reason, detail string) {
	for _, r := range a.fresh.waiting {
		r.Fail(why, detail)
	}
	a.fresh = newCreates{}
}
