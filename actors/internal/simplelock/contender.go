package simplelock

import (
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// Simple is this process's contender for a lock of the simple form: not a queue, but a
// node of a fixed name, the gate, which one contender at a time has. Who does not get it
// watches it, as all others do that wait, and tries again once it is gone.
//
// A contender makes the gate together with a node of a unique name, its mark, and
// deletes both together. So what became of a transaction whose answer was lost can be
// told by the mark, and a deletion that is repeated does not hit the next one's gate.
//
// Readers, where there are any, have a mark only. The rule that keeps them apart: each
// makes its nodes first and looks who else is there then. A reader that sees the gate
// steps back and waits for it to go; a writer that sees readers keeps the gate and waits
// for them to go. So no two step back for each other, and writers come first.
//
// It serves one request at a time. TrySimple is for a Simple what Step is for a State;
// it is for one goroutine at a time.
type Contender struct {
	lockNode string // the name
	shared   bool   // there are readers
	unique   [8]byte

	epoch   uint64
	live    bool // there is a session
	closed  requests.Reason
	request *request // the request, if there is one

	stage       stage
	ownerNode   string      // our nodes, if stage says that there are any
	hasLockNode bool        // the gate is one of them
	madeFor     requests.ID // the request that they were made for
	czxid       int64       // of the mark
	yielded     bool        // a reader has stepped back for the gate

	lastSerial  uint64 // the last serial number, also that of marks
	awaited     uint64 // of what is to be answered, 0: nothing
	changed     bool   // what is being looked at has changed meanwhile
	watchSerial uint64 // of the watch over nodes that are held, 0: none
	out         []Effect

	generation uint64 // that was in force at czxid
}

// wish is a request.
type request struct {
	id   requests.ID
	kind queue.Kind
	try  bool
	tell bool
	data []byte
}

type stage uint8

const (
	free            stage = iota // no nodes of ours
	watching                     // another contender has the gate; the request for a watch on it is under way
	waiting                      // and is watched
	creating                     // our nodes are being made
	proving                      // or may have been
	listing                      // they are there; the request for the other nodes is under way
	comparing                    // they are there; the request for the gate's czxid is under way
	awaitingReaders              // they are there, and so are readers
	holding
	deleting   // they are being deleted
	cleaningUp // the mark is not there, the gate made with it may be: it is read, and deleted
)

// readers is what a reader's mark begins with.
const readerPrefix = "R-"

// NewSimple is a contender for nothing yet. Among its readers and writers the gate is
// the writers'; without readers there is the gate only. The Incarnation must be another
// one for each.
func New(gate string, shared bool, in [8]byte) *Contender {
	return &Contender{lockNode: gate, shared: shared, unique: in}
}

// Idle tells that nobody wants anything, and no node is there or may be.
func (s *Contender) Idle() bool { return s.request == nil && s.stage == free }

// Ending reports whether what is under way after Close may delete nodes of ours yet.
func (s *Contender) Ending() bool { return s.awaited != 0 }

// Nodes returns the names of the nodes of ours that are there, or may be.
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

// ask is for effects that are answered; answers to earlier ones do not count any more.
func (s *Contender) ask(stage stage, e Effect) {
	s.lastSerial++
	s.stage, s.awaited, s.changed, e.Serial = stage, s.lastSerial, false, s.lastSerial
	s.effect(e)
}

// ---- what to do

// take makes our nodes.
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

// compare finds out whether the gate is still the one that we made. Another client may have
// deleted it, and a contender of another process made its own.
func (s *Contender) compareLockNode() {
	s.ask(comparing, Effect{Kind: WatchNodes, Nodes: []string{s.ownerNode, s.lockNode}, WithData: true})
	s.watchSerial = s.awaited
}

// compared takes the answer to compare.
func (s *Contender) lockNodeCompared(e Watched) {
	ours := s.isOurs(e)
	switch {
	case !ours || slices.Contains(e.Gone, s.ownerNode) || !s.wanted():
		s.hasLockNode = ours
		s.deleteNodes() // and begin anew
	case s.changed: // the watch has gone
		s.compareLockNode()
	default:
		s.hold()
	}
}

// isOurs reports whether the gate is the one that we made. Another client may have
// overwritten its data; only its czxid cannot change. If that of our mark was never heard of, the
// data decide.
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

// wanted tells that the request that our nodes were made for is still there.
func (s *Contender) wanted() bool { return s.request != nil && s.request.id == s.madeFor }

func (s *Contender) deleteNodes() {
	e := Effect{Kind: DeleteNodes, OwnerNode: s.ownerNode}
	if s.hasLockNode {
		e.LockNode = s.lockNode
	}
	s.watchSerial = 0
	s.ask(deleting, e)
}

// tidy deletes the gate that was made with the mark, if it is left. Another client may
// have deleted the mark alone.
func (s *Contender) readLockNode() {
	s.ask(cleaningUp, Effect{Kind: WatchNodes, Nodes: []string{s.lockNode}, WithData: true})
}

func (s *Contender) hold() {
	s.stage, s.awaited = holding, 0
	if s.request.tell { // nobody knows who waits, so that is taken for granted, from the beginning
		s.effect(Effect{Kind: NotifyContended, ID: s.request.id})
	}
	s.effect(Effect{Kind: Grant, ID: s.request.id, OwnerNode: s.ownerNode, Generation: s.generation, Czxid: s.czxid})
}

// have is for when our nodes are there; the gate perhaps, if the answer to their creation was
// lost.
func (s *Contender) nodesMade(e Transacted) {
	doubted := s.stage == proving
	s.generation, s.czxid = e.Generation, e.Czxid
	if e.Reason != 0 { // no token is known for the mark
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

// free is for when there are no nodes of ours any more.
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

// exists is for when somebody has the gate that we would make.
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

// giveWay is for when our nodes are there, and others.
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

// refuse ends the request.
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

// drop is for when the request has ended.
func (s *Contender) requestEnded() {
	switch s.stage {
	case watching, waiting:
		s.nodesGone()
	case listing, awaitingReaders, holding:
		s.deleteNodes()
	}
}

// check finds out whether what is held is still there.
func (s *Contender) watchNodes() {
	nodes := []string{s.ownerNode}
	if s.hasLockNode {
		nodes = append(nodes, s.lockNode)
	}
	s.lastSerial++
	s.watchSerial = s.lastSerial
	s.effect(Effect{Kind: WatchNodes, Serial: s.watchSerial, Nodes: nodes, WithData: true})
}

// checked takes the answer. The gate may be another's by now: then it is not ours to
// delete.
func (s *Contender) nodesWatched(e Watched) {
	there := s.hasLockNode && s.isOurs(e)
	if there == s.hasLockNode && !slices.Contains(e.Gone, s.ownerNode) {
		return
	}
	s.lose(requests.NodeDeleted)
	s.hasLockNode = there
	s.deleteNodes()
}

// rivals reports whether there is the mark of another writer: the gate may be its own.
func (s *Contender) otherWriter(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return name != s.ownerNode && strings.HasPrefix(name, s.lockNode+"-") })
}

// conflict tells, of the names in the directory, whether others are in our way.
func (s *Contender) blocked(names []string) bool {
	if !s.hasLockNode {
		return slices.Contains(names, s.lockNode)
	}
	return slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, readerPrefix) })
}
