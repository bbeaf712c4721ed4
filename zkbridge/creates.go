package zkbridge

import (
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/writer"
)

// Create implements messages.BridgeHandler.
func (a *bridgeActor) Create(from ask.Recipient, msg *messages.Create, _ ask.Reply[*messages.Created]) {
	a.create(writer.NewCreate(a.cfg.replyTo(from, msg), msg, a.cfg.ACL).Group())
}

// create opens a create, or the atomic create of a writer.Group that CreateAtomically has sent, or has it
// wait among the newCreates until Flush.
func (a *bridgeActor) create(g *writer.Group) {
	if a.mustWait(g) {
		a.newCreates.add(g)
	} else {
		a.openCreates(g, len(g.Creates()))
	}
}

// mustWait reports whether creates wait among the newCreates: if a directory is one that this session has
// not seen, or others wait for the same directory: these keep their order. All other creates are opened or
// refused at once.
func (a *bridgeActor) mustWait(g *writer.Group) bool {
	isNew := false
	for _, c := range g.Creates() {
		msg := c.Message()
		if !a.isPresent(c.Epoch) {
			return false
		}
		isNew = isNew || !msg.GetDirectoryExists() && !msg.GetDirectorySeen() || a.newCreates.in[msg.GetDirectory()] > 0
	}
	max := a.cfg.maxOutstanding
	return isNew && (max == 0 || a.outstanding()+len(g.Creates()) <= max)
}

// openCreates opens creates, or answers why it does not. n of them count for the limit: none of those that
// were newCreates, which were within it.
func (a *bridgeActor) openCreates(g *writer.Group, n int) {
	invalid := g.Validate(a.cfg.Root)
	for _, c := range g.Creates() {
		if !a.mayOpen(g, c.Epoch, n, invalid) { // g answers all: none of them is sent
			return
		}
	}
	for _, c := range g.Creates() {
		a.epoch.Open.Add(c)
	}
	a.epoch.Create(g)
}
