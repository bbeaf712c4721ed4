package actors

import (
	"path"

	"github.com/actorlock/actorlock/actors/internal/lockqueue"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/messages"
)

// count is how a semaphore's actor follows the node that says how many permits there
// are.
type count struct {
	pool      *pool
	directory string
	node      string
	epoch     uint64
	asked     uint64 // id of the last question
	depth     int    // how many nodes the last attempt was to make
	again     bool   // ask when a moment has passed

	// why and problem say what keeps the number from being known.
	why     messages.Reason
	problem string
}

func newCount(p *pool) *count {
	directory, node := path.Split(p.recipe.shared)
	if directory != "/" {
		directory = directory[:len(directory)-1]
	}
	return &count{pool: p, directory: directory, node: node}
}

// look reads the node and watches it.
func (c *count) look() {
	c.asked++
	c.again = false
	c.pool.bridge.SendWatch(&messages.Watch{Id: c.asked, Epoch: c.epoch, Directory: c.directory,
		Nodes: []string{c.node}, WithData: true}, c.pool.self)
}

func (c *count) tick() {
	if c.again {
		c.look()
	}
}

func (c *count) connected(epoch uint64) {
	c.epoch = epoch
	c.look()
}

func (c *count) watched(msg *messages.Watched) {
	switch {
	case msg.Id != c.asked:
	case len(msg.Gone) > 0:
		c.make(1)
	default:
		c.read(msg.Data[c.node])
	}
}

// make makes the node, and as many in all as depth says.
func (c *count) make(depth int) {
	c.asked++
	c.depth = depth
	c.pool.bridge.SendTransact(&messages.Transact{Id: c.asked, Epoch: c.epoch,
		Ops: makeNode(c.pool.recipe.shared, countData(c.pool.recipe.permits), depth)}, c.pool.self)
}

func (c *count) transacted(msg *messages.Transacted) {
	switch {
	case msg.Id != c.asked:
	case msg.Outcome == messages.Transacted_NO_NODE:
		c.make(c.depth + 1)
	default: // made, by this process or by another
		c.look()
	}
}

func (c *count) read(data []byte) {
	n, err := readCount(c.pool.recipe.shared, data)
	if err != nil {
		c.unknown(messages.Reason_INVALID, err.Error())
		return
	}
	c.why, c.problem = 0, ""
	n = max(n, 0)
	c.pool.leases.To.Tell(lockqueue.Resize{Permits: n})
	c.pool.state.Resize(n)
}

func (c *count) failed(msg *messages.Failed) {
	if msg.Id != c.asked {
		return
	}
	switch msg.Reason {
	case messages.Reason_SESSION_LOST, messages.Reason_CLOSED: // what follows is said by itself
	case messages.Reason_OUTCOME_UNKNOWN:
		c.look()
	default:
		c.again = true
		c.unknown(msg.Reason, msg.Detail)
	}
}

// unknown refuses who waits if the number was never known. Otherwise it stays what it
// was.
func (c *count) unknown(why messages.Reason, problem string) {
	c.pool.manager.log.Warn("the number of a semaphore's permits cannot be read", "path", c.pool.path, "problem", problem)
	if c.pool.state.Sized() {
		return
	}
	c.why, c.problem = why, problem
	for id := range c.pool.requests.All() {
		c.pool.detail = problem
		c.pool.state.Cancel(id, requests.Reason(why))
	}
}

// above keeps the handlers of the bridge's answers out of pool's own methods.
type above struct{ *pool }

// SessionChanged implements messages.BridgeClientHandler.
func (p above) SessionChanged(_ struct{}, msg *messages.SessionChanged) {
	switch msg.State {
	case messages.SessionState_SUSPENDED:
		p.suspend()
	case messages.SessionState_CONNECTED:
		p.lookBeside(msg.Epoch)
		if p.count != nil {
			p.count.connected(msg.Epoch)
		}
	}
}

// Wake implements messages.BridgeClientHandler.
func (p above) Wake(_ struct{}, msg *messages.Wake) {
	if p.count != nil && msg.Epoch == p.count.epoch {
		p.count.look()
	}
}

// Watched implements messages.BridgeClientHandler.
func (p above) Watched(_ struct{}, msg *messages.Watched) { p.count.watched(msg) }

// Transacted implements messages.BridgeClientHandler.
func (p above) Transacted(_ struct{}, msg *messages.Transacted) { p.count.transacted(msg) }

// Failed implements messages.BridgeClientHandler.
func (p above) Failed(_ struct{}, msg *messages.Failed) {
	if msg.Id != besideID {
		p.count.failed(msg)
	}
}

// Created implements messages.BridgeClientHandler.
func (above) Created(struct{}, *messages.Created) {}

// Listed implements messages.BridgeClientHandler.
func (p above) Listed(_ struct{}, msg *messages.Listed) { p.sawBeside(msg.Children) }

// NodeReleased implements messages.BridgeClientHandler.
func (above) NodeReleased(struct{}, *messages.NodeReleased) {}
