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
	// DeleteNodes deletes all of the nodes, or none. The answer is Transacted or Failed.
	DeleteNodes(serial uint64, nodes []string)
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
	request *requests.Incoming // the open request, or nil

	stage      stage
	ownerNode  string      // the name of the latest owner node
	nodes      []string    // that exist or may exist: the owner node, and the lock node that was made with it
	madeFor    requests.ID // the request for which they were made; 0 if they are to be deleted
	generation uint64      // in force at czxid
	czxid      int64       // of the owner node; 0 until it is known
	yields     bool        // another contender has the lock node: the request waits for it to go

	lastSerial uint64 // of the last call that is answered; it numbers the owner nodes, too
	awaited    uint64 // the serial whose answer counts, 0 for none; while holding, of the watch that is set or asked for
	changed    bool   // what is being read has changed since it was asked for
}

type stage uint8

const (
	free     stage = iota // no nodes of this process
	waiting               // another contender has the lock node; it is watched, or the watch is asked for
	creating              // the nodes are being made
	listing               // the nodes exist; the names of the others are asked for, or nodes of readers are waited for
	reading               // the nodes may exist, and the lock node may be another contender's: they are read
	holding
	deleting // the nodes are being deleted
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
func (s *Contender) Nodes() []string { return s.nodes }

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
	s.madeFor, s.yields, s.czxid = w.ID, false, 0
	name, lockNode := readerPrefix, ""
	if !s.shared || w.Kind != queue.Shared {
		name, lockNode = s.lockNode+"-", s.lockNode
	}
	s.ownerNode = name + hex.EncodeToString(s.unique[:]) + "-" + strconv.FormatUint(serial, 10)
	s.nodes = []string{s.ownerNode}
	if lockNode != "" {
		s.nodes = append(s.nodes, lockNode)
	}
	s.actor.CreateNodes(serial, lockNode, s.ownerNode, w.Data)
}

// writes reports whether the lock node was made with the owner node.
func (s *Contender) writes() bool { return slices.Contains(s.nodes, s.lockNode) }

func (s *Contender) listOthers() { s.actor.ListDirectory(s.await(listing), s.writes()) }

func (s *Contender) awaitLockNode() { s.actor.WatchNodes(s.await(waiting), []string{s.lockNode}) }

// readNodes reads which nodes are left, and whether the lock node is still the one that was made with
// the owner node. Another client may have deleted it, and another contender made its own.
func (s *Contender) readNodes(stage stage) { s.actor.WatchNodes(s.await(stage), s.nodes) }

// deleteNodes deletes the nodes that may exist, and then begins anew if there is a request. It is the
// way on from each attempt that has failed.
func (s *Contender) deleteNodes() {
	s.madeFor = 0
	s.actor.DeleteNodes(s.await(deleting), s.nodes)
}

// wanted reports whether the request for which the nodes were made is open.
func (s *Contender) wanted() bool { return s.request != nil && s.request.ID == s.madeFor }

func (s *Contender) hold() {
	s.stage, s.awaited = holding, 0 // the next Tick watches the nodes
	if s.request.NotifyContended {  // the waiters are not known, so assume from the beginning that there are some
		s.actor.NotifyContended(s.request.ID)
	}
	s.actor.GrantBy(s.request.ID, s.ownerNode, s.generation, s.czxid)
}

// nodesGone goes on once no node of this process exists any more.
func (s *Contender) nodesGone() {
	s.stage, s.awaited, s.nodes, s.madeFor = free, 0, nil, 0
	switch {
	case s.request == nil || !s.live:
	case s.yields && !s.request.Try:
		s.awaitLockNode()
	default:
		s.createNodes()
	}
}

// lockNodeGone goes on once the lock node of another contender is gone.
func (s *Contender) lockNodeGone() {
	s.yields = false
	s.nodesGone()
}

// lockNodeTaken goes on if the nodes were not made, because another contender has the lock node.
func (s *Contender) lockNodeTaken() {
	if s.wanted() && s.request.Try {
		s.refuse(requests.NotAcquired)
	}
	s.yields = s.wanted()
	s.nodesGone()
}

// blockedByOthers goes on if the nodes exist, and others block them.
func (s *Contender) blockedByOthers() {
	switch {
	case s.request.Try:
		s.refuse(requests.NotAcquired)
		s.deleteNodes()
	case !s.writes():
		s.yields = true
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
	if !s.writes() {
		return slices.Contains(names, s.lockNode)
	}
	return slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, readerPrefix) })
}
