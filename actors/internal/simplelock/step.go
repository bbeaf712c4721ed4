package simplelock

import (
	"slices"

	"github.com/actorlock/actorlock/actors/internal/requests"
)

// ---- calls of the owner

// Acquire takes in a new request. A Contender has one request at a time and refuses a second one.
func (s *Contender) Acquire(r requests.Incoming) {
	switch {
	case s.closed != 0:
		s.actor.RefuseRequest(r.ID, s.closed)
		return
	case s.request != nil:
		s.actor.RefuseRequest(r.ID, requests.Invalid)
		return
	}
	s.request = &r
	if s.stage == free && s.live {
		s.createNodes()
	}
}

// Cancel withdraws the request, because of why. It releases a grant, too.
func (s *Contender) Cancel(id requests.ID, why requests.Reason) {
	if s.request != nil && s.request.ID == id {
		s.refuse(why)
		s.requestEnded()
	}
}

// Release releases the grant.
func (s *Contender) Release(id requests.ID) {
	if s.request == nil || s.request.ID != id || s.stage != holding {
		s.actor.RefuseRequest(id, requests.NotHeld)
		return
	}
	s.request = nil
	s.actor.ConfirmRelease(id, 0)
	s.requestEnded()
}

// Close refuses the request or ends its grant, because of why, and deletes the nodes.
func (s *Contender) Close(why requests.Reason) {
	s.closed = why
	if s.stage == holding && s.request != nil {
		s.lose(why)
	}
	s.refuse(why)
	s.requestEnded()
}

// Forget drops the request, which the actor has answered after a failure. Close must follow.
func (s *Contender) Forget() { s.request = nil }

// ---- calls for the bridge

// Session notes a change of the ZooKeeper session: it is live, or it is lost. A new session has a
// higher epoch.
func (s *Contender) Session(epoch uint64, live bool) {
	if live && epoch == s.epoch {
		return
	}
	// ZooKeeper deletes the nodes of the lost session.
	if s.stage == holding {
		s.lose(requests.SessionLost)
	}
	s.epoch, s.live = epoch, live
	s.yields = false
	s.nodesGone()
}

// Transaction is the result of CreateNodes or DeleteNodes. The transaction is done as a whole or not at
// all.
type Transaction struct {
	Done bool
	// Missing reports that it was not done because an operation found no node.
	Missing bool
	// Czxid is the czxid of the owner node.
	Czxid int64
	// Generation is the generation in force at Czxid, if Reason is 0. Reason says why the
	// generation is not known: after NodeDeleted a later node has one.
	Generation uint64
	Reason     requests.Reason
}

// Transacted takes the result of a transaction.
func (s *Contender) Transacted(serial uint64, t Transaction) {
	switch {
	case serial != s.awaited:
	case s.stage == creating && t.Done:
		s.nodesMade(t)
	case s.stage == creating && !t.Missing:
		s.lockNodeTaken()
	case s.stage == deleting && !t.Done && len(s.nodes) > 1: // one of them may be left
		s.readNodes(reading)
	default: // they were deleted; or the directory was, before they were made
		s.nodesGone()
	}
}

// nodesMade goes on once the nodes exist.
func (s *Contender) nodesMade(t Transaction) {
	s.generation, s.czxid = t.Generation, t.Czxid
	if t.Reason != 0 && t.Reason != requests.NodeDeleted && s.wanted() {
		s.refuse(t.Reason)
	}
	switch {
	case t.Reason != 0 || !s.wanted(): // without a generation there is no token
		s.deleteNodes()
	case s.shared:
		s.listOthers()
	default:
		s.hold()
	}
}

// Listed takes the names in the directory.
func (s *Contender) Listed(serial uint64, children []string) {
	missing := func(node string) bool { return !slices.Contains(children, node) }
	switch {
	case serial != s.awaited:
	case slices.ContainsFunc(s.nodes, missing): // another client has deleted one: begin anew
		s.deleteNodes()
	case s.blocked(children):
		s.blockedByOthers()
	case s.writes() && s.otherWriter(children):
		s.readNodes(reading)
	default:
		s.hold()
	}
}

// NodesRead is the result of WatchNodes: all nodes except those Gone are watched now.
type NodesRead struct {
	Gone   []string
	Data   map[string][]byte
	Czxids map[string]int64
}

// Watched takes the result of WatchNodes. The lock node may be another contender's by now: then this
// process does not delete it.
func (s *Contender) Watched(serial uint64, n NodesRead) {
	if serial != s.awaited || serial == 0 {
		return
	}
	if s.stage == waiting {
		if s.awaited = 0; len(n.Gone) > 0 || s.changed {
			s.lockNodeGone()
		}
		return
	}
	gone := func(node string) bool {
		return slices.Contains(n.Gone, node) || node == s.lockNode && !s.isOurs(n)
	}
	some := slices.ContainsFunc(s.nodes, gone)
	if some {
		s.nodes = slices.DeleteFunc(slices.Clone(s.nodes), gone) // others may read the list that they were asked for
	}
	if s.stage == holding && some {
		s.lose(requests.NodeDeleted)
	}
	switch {
	case len(s.nodes) == 0:
		s.nodesGone()
	case some || !s.wanted():
		s.deleteNodes()
	case s.stage == reading:
		s.hold()
	}
}

// isOurs reports whether the lock node is the one that was made with the owner node. Another client
// may have overwritten its data; its czxid cannot change. If the czxid of the owner node is not
// known, the data decide.
func (s *Contender) isOurs(n NodesRead) bool {
	czxid, there := n.Czxids[s.lockNode]
	if s.czxid != 0 {
		return there && czxid == s.czxid
	}
	return there && string(n.Data[s.lockNode]) == s.ownerNode
}

// Wake notes that a watched node changed, or, if node is empty, that a child of the watched directory
// came or went. The news may concern a node that is gone since, so the holder's nodes are read again.
func (s *Contender) Wake(epoch uint64, node string) {
	switch {
	case epoch != s.epoch:
	case s.stage == holding:
		if node != "" && s.awaited != 0 {
			s.readNodes(holding)
		}
	case s.awaited != 0:
		s.changed = true
	case s.stage == waiting && node == s.lockNode:
		s.lockNodeGone()
	case s.stage == listing:
		s.listOthers()
	}
}

// Failed notes that what was asked for could not be done. OutcomeUnknown is the reason of a
// transaction that may have been done. The next Tick tries again what must be done.
func (s *Contender) Failed(serial uint64, why requests.Reason) {
	switch {
	case serial != s.awaited:
	case s.closed != 0 && why == requests.Closed:
		s.nodesGone() // the nodes go with the session
	case s.closed != 0 && why == requests.SessionLost:
		s.awaited = 0
	case why == requests.Closed: // Session says what follows
	case s.stage == holding:
		s.awaited = 0
	case why == requests.OutcomeUnknown && slices.Contains(s.nodes, s.ownerNode): // by then the outcome is known
		s.deleteNodes()
	case why == requests.OutcomeUnknown: // the lock node alone may be another contender's by now
		s.readNodes(reading)
	default:
		s.failed(why)
	}
}

// failed goes on after what was not done and cannot be.
func (s *Contender) failed(why requests.Reason) {
	s.awaited = 0
	switch {
	case s.stage == creating || s.stage == waiting:
		if s.stage == waiting || s.wanted() {
			s.refuse(why)
		}
		s.nodesGone()
	case s.wanted(): // it lists or reads
		s.refuse(why)
		s.deleteNodes()
	case s.stage == reading:
		s.refuse(why)
	}
}

// Tick says that a moment has passed. What has failed is tried again, but not after Close, and the
// nodes of a grant get a watch.
func (s *Contender) Tick() {
	switch {
	case s.awaited != 0 || !s.live:
	case s.stage == holding:
		s.readNodes(holding)
	case s.stage == deleting:
		s.deleteNodes()
	case s.stage == reading:
		s.readNodes(reading)
	}
}
