package simplelock

import (
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// Contender is one process's contender for a lock of the simple form. It serves one request at a
// time. It is used by one goroutine at a time; the package's documentation says how it works.
type Contender struct {
	lockNode string // the name of the lock node
	shared   bool   // the lock has readers
	unique   [8]byte

	epoch   uint64
	live    bool // there is a session
	closed  requests.Reason
	request *request // the open request, or nil

	stage       stage
	ownerNode   string      // the name of the owner node that exists or may exist; "" for none
	hasLockNode bool        // the lock node was made with it
	madeFor     requests.ID // the request for which they were made; 0 if they are to be deleted
	czxid       int64       // of the owner node; 0 until it is known
	yielded     bool        // a reader has deleted its owner node because of the lock node

	lastSerial  uint64 // of the last effect that is answered; it numbers the owner nodes, too
	awaited     uint64 // the serial of the effect in stage whose answer counts; 0: none
	changed     bool   // what is being read has changed since it was asked for
	watchSerial uint64 // the serial of the watch on the nodes of a holder; 0: none
	out         []Effect

	generation uint64 // in force at czxid
}

// request is a request. It is open until its Contender forgets it.
type request struct {
	id   requests.ID
	kind queue.Kind
	try  bool
	tell bool
	data []byte
}

type stage uint8

const (
	free            stage = iota // no nodes of this process
	watching                     // another contender has the lock node; the watch on it is asked for
	waiting                      // the watch is set
	creating                     // the nodes are being made
	proving                      // the outcome of that is unknown
	listing                      // the nodes exist; the names of the others are asked for
	comparing                    // the nodes exist; the czxid of the lock node is asked for
	awaitingReaders              // the nodes exist, and so do nodes of readers
	holding
	deleting   // the nodes are being deleted
	cleaningUp // the owner node does not exist, and the lock node made with it may: it is read, and deleted
)

// readerPrefix is what the owner node of a reader begins with.
const readerPrefix = "R-"

// New returns a Contender without a request. Writers make the lock node with the given name; shared
// says that there are readers. The bytes of in are part of the owner nodes' names: those of each
// Contender are different.
func New(lockNode string, shared bool, in [8]byte) *Contender {
	return &Contender{lockNode: lockNode, shared: shared, unique: in}
}

// Idle reports whether no request is open, and no node exists or may exist.
func (s *Contender) Idle() bool { return s.request == nil && s.stage == free }

// Ending reports whether an answer after Close may still delete nodes.
func (s *Contender) Ending() bool { return s.awaited != 0 }

// Nodes returns the names of the nodes of this process that exist or may exist.
func (s *Contender) Nodes() []string {
	switch {
	case s.stage == free || s.ownerNode == "":
		return nil
	case s.hasLockNode:
		return []string{s.lockNode, s.ownerNode}
	}
	return []string{s.ownerNode}
}

func (s *Contender) effect(e Effect) { s.out = append(s.out, e) }

// ask asks for an effect that is answered. Answers to earlier ones do not count any more.
func (s *Contender) ask(stage stage, e Effect) {
	s.lastSerial++
	s.stage, s.awaited, s.changed, e.Serial = stage, s.lastSerial, false, s.lastSerial
	s.effect(e)
}

// ---- decisions

// createNodes makes the nodes for the request.
func (s *Contender) createNodes() {
	w := s.request
	s.madeFor, s.hasLockNode, s.yielded, s.czxid = w.id, !s.shared || w.kind != queue.Shared, false, 0
	name := readerPrefix
	if s.hasLockNode {
		name = s.lockNode + "-"
	}
	s.ownerNode = name + hex.EncodeToString(s.unique[:]) + "-" + strconv.FormatUint(s.lastSerial+1, 10)
	e := Effect{Kind: CreateNodes, OwnerNode: s.ownerNode, Data: w.data}
	if s.hasLockNode {
		e.LockNode = s.lockNode
	}
	s.ask(creating, e)
}

func (s *Contender) watch() { s.ask(watching, Effect{Kind: WatchNodes, Nodes: []string{s.lockNode}}) }

func (s *Contender) listOthers() { s.ask(listing, Effect{Kind: ListDirectory, Watch: s.hasLockNode}) }

// compareLockNode reads whether the lock node is still the one that was made with the owner node.
// Another client may have deleted it, and another contender made its own.
func (s *Contender) compareLockNode() {
	s.ask(comparing, Effect{Kind: WatchNodes, Nodes: []string{s.ownerNode, s.lockNode}, WithData: true})
	s.watchSerial = s.awaited
}

// lockNodeCompared takes the answer to compareLockNode.
func (s *Contender) lockNodeCompared(e Watched) {
	ours := s.isOurs(e)
	switch {
	case !ours || slices.Contains(e.Gone, s.ownerNode) || !s.wanted():
		s.hasLockNode = ours
		s.deleteNodes() // and begin anew
	case s.changed: // the watch is used up
		s.compareLockNode()
	default:
		s.hold()
	}
}

// isOurs reports whether the lock node is the one that was made with the owner node. Another client
// may have overwritten its data; its czxid cannot change. If the czxid of the owner node is not
// known, the data decide.
func (s *Contender) isOurs(e Watched) bool {
	czxid, there := e.Czxids[s.lockNode]
	if s.czxid != 0 {
		return there && czxid == s.czxid
	}
	return there && string(e.Data[s.lockNode]) == s.ownerNode
}

func (s *Contender) proveOwnerNode() {
	e := Effect{Kind: WriteOwnerNode, OwnerNode: s.ownerNode}
	if s.wanted() {
		e.Data = s.request.data
	}
	s.ask(proving, e)
}

// wanted reports whether the request for which the nodes were made is open.
func (s *Contender) wanted() bool { return s.request != nil && s.request.id == s.madeFor }

func (s *Contender) deleteNodes() {
	e := Effect{Kind: DeleteNodes, OwnerNode: s.ownerNode}
	if s.hasLockNode {
		e.LockNode = s.lockNode
	}
	s.watchSerial = 0
	s.ask(deleting, e)
}

// readLockNode reads the lock node that was made with the owner node, to delete it if it exists.
// Another client may have deleted the owner node alone.
func (s *Contender) readLockNode() {
	s.ask(cleaningUp, Effect{Kind: WatchNodes, Nodes: []string{s.lockNode}, WithData: true})
}

func (s *Contender) hold() {
	s.stage, s.awaited = holding, 0
	if s.request.tell { // the waiters are not known, so assume from the beginning that there are some
		s.effect(Effect{Kind: NotifyContended, ID: s.request.id})
	}
	s.effect(Effect{Kind: Grant, ID: s.request.id, OwnerNode: s.ownerNode, Generation: s.generation, Czxid: s.czxid})
}

// nodesMade goes on once the nodes exist. If the answer to their creation was lost, the lock node
// may be missing.
func (s *Contender) nodesMade(e Transacted) {
	doubted := s.stage == proving
	s.generation, s.czxid = e.Generation, e.Czxid
	if e.Reason != 0 { // the owner node has no token
		if e.Reason != requests.NodeDeleted && s.wanted() {
			s.refuse(e.Reason)
		}
		s.madeFor = 0
	}
	switch {
	case !s.wanted() && s.hasLockNode && doubted:
		s.compareLockNode()
	case !s.wanted():
		s.deleteNodes()
	case s.shared:
		s.listOthers()
	case doubted:
		s.compareLockNode()
	default:
		s.hold()
	}
}

// nodesGone goes on once no node of this process exists any more.
func (s *Contender) nodesGone() {
	s.stage, s.awaited, s.ownerNode, s.watchSerial = free, 0, "", 0
	switch {
	case s.request == nil || !s.live:
	case s.yielded && !s.request.try:
		s.watch()
	default:
		s.createNodes()
	}
}

// lockNodeTaken goes on if another contender has the lock node.
func (s *Contender) lockNodeTaken() {
	s.ownerNode = ""
	switch {
	case !s.wanted():
		s.nodesGone()
	case s.request.try:
		s.refuse(requests.NotAcquired)
		s.nodesGone()
	default:
		s.watch()
	}
}

// giveWay goes on if the nodes exist, and others block them.
func (s *Contender) giveWay() {
	switch {
	case s.request.try:
		s.refuse(requests.NotAcquired)
		s.deleteNodes()
	case !s.hasLockNode:
		s.yielded = true
		s.deleteNodes()
	case s.changed:
		s.listOthers()
	default:
		s.stage, s.awaited = awaitingReaders, 0
	}
}

// refuse ends the request, because of why.
func (s *Contender) refuse(why requests.Reason) {
	if s.request != nil {
		s.effect(Effect{Kind: Refuse, ID: s.request.id, Reason: why})
		s.request = nil
	}
}

func (s *Contender) lose(why requests.Reason) {
	s.effect(Effect{Kind: Lose, ID: s.request.id, Reason: why})
	s.request = nil
}

// requestEnded deletes the nodes that were made for a request that has ended, or stops waiting for
// it.
func (s *Contender) requestEnded() {
	switch s.stage {
	case watching, waiting:
		s.nodesGone()
	case listing, awaitingReaders, holding:
		s.deleteNodes()
	}
}

// watchNodes reads and watches the nodes of the holder.
func (s *Contender) watchNodes() {
	nodes := []string{s.ownerNode}
	if s.hasLockNode {
		nodes = append(nodes, s.lockNode)
	}
	s.lastSerial++
	s.watchSerial = s.lastSerial
	s.effect(Effect{Kind: WatchNodes, Serial: s.watchSerial, Nodes: nodes, WithData: true})
}

// nodesWatched takes the answer. The lock node may be another contender's by now: then this process
// does not delete it.
func (s *Contender) nodesWatched(e Watched) {
	there := s.hasLockNode && s.isOurs(e)
	if there == s.hasLockNode && !slices.Contains(e.Gone, s.ownerNode) {
		return
	}
	s.lose(requests.NodeDeleted)
	s.hasLockNode = there
	s.deleteNodes()
}

// otherWriter reports whether one of the names is the owner node of another writer: the lock node
// may be made with it.
func (s *Contender) otherWriter(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return name != s.ownerNode && strings.HasPrefix(name, s.lockNode+"-") })
}

// blocked reports whether one of the names in the directory blocks the request.
func (s *Contender) blocked(names []string) bool {
	if !s.hasLockNode {
		return slices.Contains(names, s.lockNode)
	}
	return slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, readerPrefix) })
}
