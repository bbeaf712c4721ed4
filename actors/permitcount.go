package actors

import (
	"path"

	"github.com/actorlock/actorlock/actors/internal/lockqueue"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/messages"
)

// permitCount is how a semaphore's actor follows the node that says how many permits there
// are.
type permitCount struct {
	semaphore *semaphoreActor
	directory string
	node      string
	epoch     uint64
	lastID    uint64 // id of the last question
	depth     int    // how many nodes the last attempt was to make
	readAgain bool   // ask when a moment has passed

	// reason and problem say what keeps the number from being known.
	reason  messages.Reason
	problem string
}

func newPermitCount(p *semaphoreActor) *permitCount {
	directory, node := path.Split(p.recipe.countPath)
	if directory != "/" {
		directory = directory[:len(directory)-1]
	}
	return &permitCount{semaphore: p, directory: directory, node: node}
}

// read reads the node and watches it.
func (c *permitCount) read() {
	c.lastID++
	c.readAgain = false
	c.semaphore.bridge.SendWatch(&messages.Watch{Id: c.lastID, Epoch: c.epoch, Directory: c.directory,
		Nodes: []string{c.node}, WithData: true}, c.semaphore.self)
}

func (c *permitCount) tick() {
	if c.readAgain {
		c.read()
	}
}

func (c *permitCount) connected(epoch uint64) {
	c.epoch = epoch
	c.read()
}

func (c *permitCount) watched(msg *messages.Watched) {
	switch {
	case msg.Id != c.lastID:
	case len(msg.Gone) > 0:
		c.make(1)
	default:
		c.onData(msg.Data[c.node])
	}
}

// make makes the node, and as many in all as depth says.
func (c *permitCount) make(depth int) {
	c.lastID++
	c.depth = depth
	c.semaphore.bridge.SendTransact(&messages.Transact{Id: c.lastID, Epoch: c.epoch,
		Ops: makeNode(c.semaphore.recipe.countPath, countData(c.semaphore.recipe.permits), depth)}, c.semaphore.self)
}

func (c *permitCount) transacted(msg *messages.Transacted) {
	switch {
	case msg.Id != c.lastID:
	case msg.Outcome == messages.Transacted_NO_NODE:
		c.make(c.depth + 1)
	default: // made, by this process or by another
		c.read()
	}
}

func (c *permitCount) onData(data []byte) {
	n, err := readCount(c.semaphore.recipe.countPath, data)
	if err != nil {
		c.onUnknown(messages.Reason_INVALID, err.Error())
		return
	}
	c.reason, c.problem = 0, ""
	n = max(n, 0)
	c.semaphore.leaseLock.To.Tell(lockqueue.Resize{Permits: n})
	c.semaphore.state.Resize(n)
}

func (c *permitCount) failed(msg *messages.Failed) {
	if msg.Id != c.lastID {
		return
	}
	switch msg.Reason {
	case messages.Reason_SESSION_LOST, messages.Reason_CLOSED: // what follows is said by itself
	case messages.Reason_OUTCOME_UNKNOWN:
		c.read()
	default:
		c.readAgain = true
		c.onUnknown(msg.Reason, msg.Detail)
	}
}

// onUnknown refuses who waits if the number was never known. Otherwise it stays what it
// was.
func (c *permitCount) onUnknown(why messages.Reason, problem string) {
	c.semaphore.manager.log.Warn("the number of a semaphore's permits cannot be read", "path", c.semaphore.path, "problem", problem)
	if c.semaphore.state.Sized() {
		return
	}
	c.reason, c.problem = why, problem
	for id := range c.semaphore.requests.All() {
		c.semaphore.detail = problem
		c.semaphore.state.Cancel(id, requests.Reason(why))
	}
}

// semaphoreBridgeHandler keeps the handlers of the bridge's answers out of pool's own methods.
type semaphoreBridgeHandler struct{ *semaphoreActor }

// SessionChanged implements messages.BridgeClientHandler.
func (p semaphoreBridgeHandler) SessionChanged(_ struct{}, msg *messages.SessionChanged) {
	switch msg.State {
	case messages.SessionState_SUSPENDED:
		p.suspend()
	case messages.SessionState_CONNECTED:
		p.listDirectory(msg.Epoch)
		if p.count != nil {
			p.count.connected(msg.Epoch)
		}
	}
}

// Wake implements messages.BridgeClientHandler.
func (p semaphoreBridgeHandler) Wake(_ struct{}, msg *messages.Wake) {
	if p.count != nil && msg.Epoch == p.count.epoch {
		p.count.read()
	}
}

// Watched implements messages.BridgeClientHandler.
func (p semaphoreBridgeHandler) Watched(_ struct{}, msg *messages.Watched) { p.count.watched(msg) }

// Transacted implements messages.BridgeClientHandler.
func (p semaphoreBridgeHandler) Transacted(_ struct{}, msg *messages.Transacted) {
	p.count.transacted(msg)
}

// Failed implements messages.BridgeClientHandler.
func (p semaphoreBridgeHandler) Failed(_ struct{}, msg *messages.Failed) {
	if msg.Id != listDirectoryID {
		p.count.failed(msg)
	}
}

// Created implements messages.BridgeClientHandler.
func (semaphoreBridgeHandler) Created(struct{}, *messages.Created) {}

// Listed implements messages.BridgeClientHandler.
func (p semaphoreBridgeHandler) Listed(_ struct{}, msg *messages.Listed) {
	p.onDirectoryListed(msg.Children)
}

// NodeReleased implements messages.BridgeClientHandler.
func (semaphoreBridgeHandler) NodeReleased(struct{}, *messages.NodeReleased) {}
