package simplelock

import (
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// ContenderActor performs what a Contender asks for. Each of the methods with a serial is answered by a call
// of the method of Contender that is named, with the same serial.
type ContenderActor interface {
	// CreateNodes creates the lock node, if lockNode is not empty, with the name ownerNode as its
	// data, and the owner node with data. The answer is Transacted or Failed.
	CreateNodes(serial uint64, lockNode, ownerNode string, data []byte)
	// WriteOwnerNode writes data to the owner node, to learn whether it exists. The answer is
	// Transacted or Failed.
	WriteOwnerNode(serial uint64, ownerNode string, data []byte)
	// DeleteNodes deletes nodes, the owner node first. The answer is Transacted or Failed.
	DeleteNodes(serial uint64, nodes []string)
	// DeleteLockNode deletes the lock node alone. The answer is Deleted or Failed.
	DeleteLockNode(serial uint64, lockNode string)
	// WatchNodes watches and reads nodes. The answer is Watched or Failed, and later Wake for each
	// node.
	WatchNodes(serial uint64, nodes []string)
	// ListDirectory reads the names in the directory. The answer is Listed or Failed. watch asks for
	// a Wake at the next child that comes or goes.
	ListDirectory(serial uint64, watch bool)
	// GrantBy: the request holds the lock by its owner node, with the token.
	GrantBy(id requests.ID, ownerNode string, generation uint64, czxid int64)
	requests.Owners
}

// Contender is one process's contender for a lock of the simple form. It serves one request at a
// time. It is used by one goroutine at a time; the package's documentation says how it works.
type Contender struct {
	actor    ContenderActor
	lockNode string // the name of the lock node
	shared   bool   // the lock has readers
	unique   [8]byte

	epoch   uint64
	live    bool // there is a session
	closed  requests.Reason
	request *LockRequest // the open request, or nil

	stage       stage
	ownerNode   string      // the name of the owner node that exists or may exist; "" for none
	hasLockNode bool        // the lock node was made with it
	madeFor     requests.ID // the request for which they were made; 0 if they are to be deleted
	generation  uint64      // in force at czxid
	czxid       int64       // of the owner node; 0 until it is known
	yielded     bool        // a reader has deleted its owner node because of the lock node

	lastSerial uint64 // of the last call that is answered; it numbers the owner nodes, too
	awaited    uint64 // the serial whose answer counts, 0 for none; while holding, of the watch that is set or asked for
	changed    bool   // what is being read has changed since it was asked for
}

// LockRequest is a request for the lock.
type LockRequest struct {
	ID   requests.ID
	Kind queue.Kind
	// Try refuses the request rather than let it wait.
	Try bool
	// NotifyContended asks for a NotifyContended, which comes with the grant.
	NotifyContended bool
	// Data is the data of the owner node.
	Data []byte
}

type stage uint8

const (
	free      stage = iota // no nodes of this process
	waiting                // another contender has the lock node; it is watched, or the watch is asked for
	creating               // the nodes are being made
	proving                // the outcome of that is unknown
	listing                // the nodes exist; the names of the others are asked for, or nodes of readers are waited for
	comparing              // the nodes exist; the czxid of the lock node is asked for
	holding
	deleting   // the nodes are being deleted
	cleaningUp // the owner node does not exist, and the lock node made with it may: it is read, and deleted
)

// readerPrefix is what the owner node of a reader begins with.
const readerPrefix = "R-"

// New returns a Contender without a request. Writers make the lock node with the given name; shared
// says that there are readers. The bytes of in are part of the owner nodes' names: those of each
// Contender are different.
func New(actor ContenderActor, lockNode string, shared bool, in [8]byte) *Contender {
	return &Contender{actor: actor, lockNode: lockNode, shared: shared, unique: in}
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
		return []string{s.ownerNode, s.lockNode}
	}
	return []string{s.ownerNode}
}

// await sets the stage and returns the serial of the call to make. Answers to earlier calls do not
// count any more.
func (s *Contender) await(stage stage) (serial uint64) {
	s.lastSerial++
	s.stage, s.awaited, s.changed = stage, s.lastSerial, false
	return s.lastSerial
}

// ---- decisions

// createNodes makes the nodes for the request.
func (s *Contender) createNodes() {
	w, serial := s.request, s.await(creating)
	s.madeFor, s.hasLockNode, s.yielded, s.czxid = w.ID, !s.shared || w.Kind != queue.Shared, false, 0
	name, lockNode := readerPrefix, ""
	if s.hasLockNode {
		name, lockNode = s.lockNode+"-", s.lockNode
	}
	s.ownerNode = name + hex.EncodeToString(s.unique[:]) + "-" + strconv.FormatUint(serial, 10)
	s.actor.CreateNodes(serial, lockNode, s.ownerNode, w.Data)
}

func (s *Contender) listOthers() { s.actor.ListDirectory(s.await(listing), s.hasLockNode) }

// watchLockNode watches the lock node in order to wait for its end, or reads the one that was made
// with the owner node in order to delete it: another client may have deleted the owner node alone.
func (s *Contender) watchLockNode(stage stage) {
	s.actor.WatchNodes(s.await(stage), []string{s.lockNode})
}

// watchNodes watches the nodes and reads whether the lock node is still the one that was made with
// the owner node. Another client may have deleted it, and another contender made its own.
func (s *Contender) watchNodes(stage stage) { s.actor.WatchNodes(s.await(stage), s.Nodes()) }

func (s *Contender) proveOwnerNode() {
	var data []byte
	if s.wanted() {
		data = s.request.Data
	}
	s.actor.WriteOwnerNode(s.await(proving), s.ownerNode, data)
}

func (s *Contender) deleteNodes() { s.actor.DeleteNodes(s.await(deleting), s.Nodes()) }

// wanted reports whether the request for which the nodes were made is open.
func (s *Contender) wanted() bool { return s.request != nil && s.request.ID == s.madeFor }

func (s *Contender) hold() {
	s.stage, s.awaited = holding, 0 // the next Tick watches the nodes
	if s.request.NotifyContended {  // the waiters are not known, so assume from the beginning that there are some
		s.actor.NotifyContended(s.request.ID)
	}
	s.actor.GrantBy(s.request.ID, s.ownerNode, s.generation, s.czxid)
}

// nodesMade goes on once the nodes exist. If the answer to their creation was lost, the lock node
// may be missing.
func (s *Contender) nodesMade(generation uint64, czxid int64, why requests.Reason) {
	s.generation, s.czxid = generation, czxid
	if why != 0 { // the owner node has no token
		if why != requests.NodeDeleted && s.wanted() {
			s.refuse(why)
		}
		s.madeFor = 0
	}
	switch {
	case s.wanted() && s.shared:
		s.listOthers()
	case s.stage == proving && s.hasLockNode:
		s.watchNodes(comparing)
	case s.wanted():
		s.hold()
	default:
		s.deleteNodes()
	}
}

// nodesGone goes on once no node of this process exists any more.
func (s *Contender) nodesGone() {
	s.stage, s.awaited, s.ownerNode = free, 0, ""
	switch {
	case s.request == nil || !s.live:
	case s.yielded && !s.request.Try:
		s.watchLockNode(waiting)
	default:
		s.createNodes()
	}
}

// lockNodeTaken goes on if another contender has the lock node.
func (s *Contender) lockNodeTaken() {
	if s.wanted() && s.request.Try {
		s.refuse(requests.NotAcquired)
	}
	s.yielded = s.wanted() // to wait for the lock node
	s.nodesGone()
}

// giveWay goes on if the nodes exist, and others block them.
func (s *Contender) giveWay() {
	switch {
	case s.request.Try:
		s.refuse(requests.NotAcquired)
		s.deleteNodes()
	case !s.hasLockNode:
		s.yielded = true
		s.deleteNodes()
	case s.changed:
		s.listOthers()
	default:
		s.awaited = 0
	}
}

// refuse ends the request, because of why.
func (s *Contender) refuse(why requests.Reason) {
	if s.request != nil {
		s.actor.RefuseRequest(s.request.ID, why)
		s.request = nil
	}
}

func (s *Contender) lose(why requests.Reason) {
	s.actor.Lose(s.request.ID, why)
	s.request = nil
}

// requestEnded deletes the nodes that were made for a request that has ended, or stops waiting for
// it.
func (s *Contender) requestEnded() {
	switch s.stage {
	case waiting:
		s.nodesGone()
	case listing, holding:
		s.deleteNodes()
	}
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
