// Package simplelock has the two simple locks of the ZooKeeper textbook, as actors of one's own on
// the bridge. It shows how to write those; to lock, use package actors: here each release wakes all
// that wait (the herd), and the quickest of them gets the lock.
//
//   - [Mutex]: the contender that creates the node <path>/lock holds. The others watch that node.
//   - [ReadWrite]: a writer creates <path>/W, a reader a node of its own, <path>/R-<unique>. Each
//     creates first and then lists the directory, so of two at least one sees the other. A reader
//     deletes its node if there is a W. A writer keeps W until all readers have left, and then holds.
//
// It is safe by these rules:
//
//   - One transaction makes the lock node, which is lock or W, together with an owner node, whose
//     name no other contender ever has, and one deletes both. So a deletion that is sent twice
//     cannot hit the next holder's lock node. (A reader has only the owner node.)
//   - An attempt that fails, or whose outcome is unknown, goes on as a release does: the contender
//     deletes the nodes that may exist, and begins anew if the request is still open.
//   - Another client may delete any node. So a holder watches its nodes, and a contender that has
//     waited for readers reads them again. A lock node is its own if both have one czxid, which is
//     the token.
//   - No grant is made in a session that is lost, and a grant is lost with its session.
package simplelock

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
)

// Form is the name of the lock node.
type Form string

// The forms.
const (
	Mutex     Form = "lock"
	ReadWrite Form = "W"
)

// Start starts an actor that contends for a lock, for one request at a time: start one for each
// owner. It takes the messages of service Lock, but no owner's name, try or time limit. It knows
// of no waiters, so it never sends Contended or RevokeRequested, and it answers a Release before
// ZooKeeper has deleted the nodes. It ends with the bridge.
func Start(system *host.System, bridge *zkbridge.Bridge, path string, form Form) messages.LockRef {
	return messages.LockRef{To: system.Start("simple lock "+path, func(self *host.Ref) host.Actor {
		bridge.Ref().SendSubscribe(&messages.Subscribe{}, self)
		return &simpleLock{self: self, bridge: bridge, path: path, lockNode: string(form), unique: rand.Text(), session: &messages.SessionChanged{}}
	})}
}

// simpleLock is the actor of one contender. Its fields need no mutex, because it handles one
// message at a time.
type simpleLock struct {
	messages.IgnoreBridgeClient[ask.Recipient]
	self     *host.Ref
	bridge   *zkbridge.Bridge
	path     string
	lockNode string // its name
	unique   string // part of the names of the owner nodes

	session   *messages.SessionChanged
	request   *messages.Acquire // the open one, or nil
	owner     ask.Reply[any]    // to the sender of it
	stage     stage
	call      uint64               // id of the latest message to the bridge: no other answer counts
	madeFor   *messages.Acquire    // the request for which the nodes were made
	nodes     []string             // that may exist: the owner node, and the lock node unless it reads
	ownerNode string               // its name
	token     *messages.Transacted // nil as long as it is not known
	yields    bool                 // another contender has the lock node
}

type stage int

const (
	free     stage = iota // there is no request, or no session
	waiting               // another contender has the lock node, which is watched
	creating              // the nodes are being made
	listing               // they exist; a writer stays here until a list shows no readers
	proving               // no other contender is in the way; the nodes are read
	holding               // the nodes are watched
	deleting              // the nodes are being deleted, or read to see which of them are left
)

// Receive implements host.Actor.
func (c *simpleLock) Receive(from ask.Recipient, msg any) {
	switch msg := msg.(type) {
	case func():
		msg()
	case host.Terminated:
		if owner, _ := host.IdentityOf(c.owner.Recipient()); owner == msg.Actor {
			c.cancel()
		}
	default:
		_ = messages.DispatchLock(c, from, msg, from) || messages.DispatchBridgeClient(c, from, msg, from)
	}
}

// Stopped implements host.Actor: the bridge is closed, or the actor has panicked.
func (c *simpleLock) Stopped(failure any) {
	if failure != nil {
		c.end(messages.Reason_INTERNAL, "the nodes go with the session")
	}
	c.end(messages.Reason_CLOSED, "")
}

// Refuse implements host.Actor.
func (c *simpleLock) Refuse(from ask.Recipient, msg any) {
	if m, isOwners := msg.(interface{ GetRequestId() uint64 }); isOwners {
		ask.ReplyTo[any](from).Refuse(&messages.Refused{RequestId: m.GetRequestId(), Reason: messages.Reason_STOPPED})
	}
}

// ---- messages of the owner: simpleLock is a messages.LockHandler

func (c *simpleLock) Acquire(from ask.Recipient, msg *messages.Acquire, reply ask.Reply[*messages.Granted]) {
	if c.request != nil || (c.lockNode == string(Mutex)) != (msg.Kind == 0) || msg.Kind > uint32(messages.Kind_WRITE) || msg.Owner != "" || msg.Try ||
		msg.Permits != 0 || msg.WaitNanos != 0 || msg.HoldNanos != 0 {
		reply.Refuse(&messages.Refused{RequestId: msg.RequestId, Reason: messages.Reason_INVALID, Detail: fmt.Sprintf(
			"%s: %v: accepted is one request at a time, of a kind of the lock, without owner, try, permits and time limits", c.path, msg)})
		return
	}
	c.request, c.owner = msg, ask.ReplyTo[any](from)
	if owner, isActor := host.IdentityOf(from); isActor {
		c.self.Watch(owner)
	}
	if c.stage == free {
		c.again()
	}
}

func (c *simpleLock) Cancel(_ ask.Recipient, msg *messages.Cancel) {
	if c.request != nil && c.request.RequestId == msg.RequestId {
		c.cancel()
	}
}

func (c *simpleLock) Release(_ ask.Recipient, msg *messages.Release, reply ask.Reply[*messages.Released]) {
	if c.stage != holding || c.request.RequestId != msg.RequestId {
		reply.Refuse(&messages.Refused{RequestId: msg.RequestId, Reason: messages.Reason_NOT_HELD, Detail: c.path})
		return
	}
	reply.Answer(&messages.Released{RequestId: msg.RequestId})
	c.request = nil
	c.delete()
}

func (c *simpleLock) cancel() {
	c.end(messages.Reason_CANCELLED, "")
	if c.stage != creating && c.stage != deleting { // the answer to that comes first
		c.delete()
	}
}

// end ends the request, if there is one, with a last message to its owner.
func (c *simpleLock) end(why messages.Reason, detail string) {
	switch detail = c.path + ": " + detail; {
	case c.request == nil:
	case c.stage == holding && why != messages.Reason_CANCELLED:
		c.owner.Answer(&messages.Lost{RequestId: c.request.RequestId, Reason: why, Detail: detail})
	default:
		c.owner.Answer(&messages.Refused{RequestId: c.request.RequestId, Reason: why, Detail: detail})
	}
	c.request = nil
}

// ---- messages to the bridge

// begin returns the id of a message to the bridge.
func (c *simpleLock) begin(next stage) uint64 {
	c.call++
	c.stage = next
	return c.call
}

// again begins anew, since none of the nodes exists.
func (c *simpleLock) again() {
	c.begin(free)
	c.nodes = nil
	live := c.session.State == messages.SessionState_CONNECTED || c.session.State == messages.SessionState_SUSPENDED
	switch {
	case c.request == nil || !live:
	case c.yields:
		c.yields = false
		c.watch(waiting, c.lockNode)
	default:
		c.create()
	}
}

func (c *simpleLock) create() {
	c.madeFor, c.token, c.nodes = c.request, nil, []string{fmt.Sprintf("%s-%s-%d", c.lockNode, c.unique, c.call), c.lockNode}
	if c.request.Kind == uint32(messages.Kind_READ) {
		c.nodes = []string{fmt.Sprintf("R-%s-%d", c.unique, c.call)}
	}
	c.ownerNode = c.nodes[0]
	ops := c.ops(messages.Op_CREATE, []byte(c.ownerNode)) // the data of the lock node
	ops[0].Data = c.request.Data
	// The answer to the SET has the czxid.
	ops = append(ops, &messages.Op{Kind: messages.Op_SET, Path: ops[0].Path, Data: c.request.Data})
	c.transact(creating, c.path, ops)
}

// delete deletes the nodes that may exist.
func (c *simpleLock) delete() {
	if len(c.nodes) == 0 {
		c.again()
		return
	}
	c.transact(deleting, "", c.ops(messages.Op_DELETE, nil))
}

// ops returns an operation on each of the nodes.
func (c *simpleLock) ops(kind messages.Op_Kind, data []byte) (all []*messages.Op) {
	for _, node := range c.nodes {
		all = append(all, &messages.Op{Kind: kind, Path: c.path + "/" + node, Data: data, Ephemeral: true})
	}
	return all
}

func (c *simpleLock) transact(next stage, directory string, ops []*messages.Op) {
	c.bridge.Ref().SendTransact(&messages.Transact{Id: c.begin(next), Epoch: c.session.Epoch, Directory: directory, Ops: ops}, c.self)
}

func (c *simpleLock) watch(next stage, nodes ...string) {
	c.bridge.Ref().SendWatch(&messages.Watch{Id: c.begin(next), Epoch: c.session.Epoch, Directory: c.path, Nodes: nodes, WithData: true}, c.self)
}

func (c *simpleLock) grant() {
	if c.bridge.Lost(c.session.Epoch) { // by the clock, as after a pause of the process: LOST follows
		return
	}
	c.owner.Answer(&messages.Granted{RequestId: c.request.RequestId, Path: c.path, Node: c.ownerNode, Czxid: c.token.Czxid,
		Generation: c.token.Generation, SessionId: c.session.SessionId, Epoch: c.session.Epoch})
	c.watch(holding, c.nodes...)
}

func (c *simpleLock) list() {
	c.bridge.Ref().SendList(&messages.List{Id: c.begin(listing), Epoch: c.session.Epoch, Directory: c.path, Watch: len(c.nodes) == 2}, c.self)
}

// ---- messages of the bridge: simpleLock is a messages.BridgeClientHandler

func (c *simpleLock) SessionChanged(_ ask.Recipient, msg *messages.SessionChanged) {
	ended := msg.State == messages.SessionState_LOST || msg.Epoch != c.session.Epoch
	c.session = msg
	switch {
	case msg.State == messages.SessionState_ENDED:
		c.self.Stop()
	case ended: // its nodes go by themselves
		if c.stage == holding || c.request.GetFailOnSessionLoss() {
			c.end(messages.Reason_SESSION_LOST, msg.Detail)
		}
		c.again()
	case c.stage == holding && msg.State == messages.SessionState_SUSPENDED:
		c.owner.Answer(&messages.Suspended{RequestId: c.request.RequestId})
	}
}

func (c *simpleLock) Transacted(_ ask.Recipient, msg *messages.Transacted) {
	done := msg.Outcome == messages.Transacted_DONE
	switch {
	case msg.Id != c.call:
	case c.stage == deleting && !done && len(c.nodes) == 2: // one of them may be left
		c.watch(deleting, c.nodes...)
	case c.stage == deleting, !done: // the nodes are gone, or were not made
		c.yields = c.yields || msg.Outcome == messages.Transacted_NODE_EXISTS
		c.again()
	default:
		c.token = msg
		if msg.NoGeneration != 0 {
			c.end(msg.NoGeneration, "there is no token")
		}
		switch {
		case c.request == nil || c.request != c.madeFor:
			c.delete()
		case c.lockNode == string(ReadWrite):
			c.list()
		default:
			c.grant()
		}
	}
}

func (c *simpleLock) Listed(_ ask.Recipient, msg *messages.Listed) {
	reads := func(node string) bool { return strings.HasPrefix(node, "R-") }
	switch {
	case msg.Id != c.call:
	case len(c.nodes) == 2 && slices.ContainsFunc(msg.Children, reads): // a Wake comes when one leaves
	case len(c.nodes) == 1 && slices.Contains(msg.Children, c.lockNode):
		c.yields = true
		c.delete()
	default:
		c.watch(proving, c.nodes...)
	}
}

func (c *simpleLock) Watched(_ ask.Recipient, msg *messages.Watched) {
	// isGone is also true of another contender's lock node. Other clients may overwrite its data.
	isGone := func(node string) bool {
		czxid, exists := msg.Czxids[node]
		return !exists || node != c.ownerNode && czxid != c.token.GetCzxid() && string(msg.Data[node]) != c.ownerNode
	}
	switch {
	case msg.Id != c.call:
	case c.stage == waiting:
		if len(msg.Gone) > 0 {
			c.again()
		}
	case c.stage == deleting || slices.ContainsFunc(c.nodes, isGone):
		if c.stage == holding {
			c.end(messages.Reason_NODE_DELETED, "")
		}
		c.nodes = slices.DeleteFunc(slices.Clone(c.nodes), isGone) // the bridge may still read c.nodes
		c.delete()
	case c.stage == proving:
		c.grant()
	}
}

func (c *simpleLock) Wake(_ ask.Recipient, msg *messages.Wake) {
	switch {
	case msg.Epoch != c.session.Epoch:
	case c.stage == waiting && msg.Node == c.lockNode:
		c.again()
	case c.stage == listing && msg.Node == "":
		c.list()
	case (c.stage == proving || c.stage == holding) && slices.Contains(c.nodes, msg.Node):
		c.watch(c.stage, c.nodes...)
	}
}

func (c *simpleLock) Failed(_ ask.Recipient, msg *messages.Failed) {
	switch {
	case msg.Id != c.call:
	case c.stage == holding || c.stage == deleting: // which must be done: try again in a second
		id := c.begin(c.stage)
		time.AfterFunc(time.Second, func() {
			c.self.Tell(func() {
				if c.call == id {
					c.watch(c.stage, c.nodes...)
				}
			})
		})
	default:
		if msg.Reason != messages.Reason_OUTCOME_UNKNOWN {
			c.end(msg.Reason, msg.Detail)
		}
		c.delete()
	}
}
