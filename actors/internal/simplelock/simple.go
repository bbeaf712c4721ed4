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
	gate   string // the name
	shared bool   // there are readers
	in     [8]byte

	epoch  uint64
	live   bool // there is a session
	closed requests.Reason
	wish   *wish // the request, if there is one

	stage  simpleStage
	mark   string      // our nodes, if stage says that there are any
	gated  bool        // the gate is one of them
	by     requests.ID // the request that they were made for
	czxid  int64       // of the mark
	yields bool        // a reader has stepped back for the gate

	serials uint64 // the last serial number, also that of marks
	asked   uint64 // of what is to be answered, 0: nothing
	stirred bool   // what is being looked at has changed meanwhile
	eye     uint64 // of the watch over nodes that are held, 0: none
	out     []Effect

	generation uint64 // that was in force at czxid
}

// wish is a request.
type wish struct {
	id   requests.ID
	kind queue.Kind
	try  bool
	tell bool
	data []byte
}

type simpleStage uint8

const (
	simpleFree      simpleStage = iota // no nodes of ours
	simpleWatching                     // another contender has the gate; the request for a watch on it is under way
	simpleWaiting                      // and is watched
	simpleTaking                       // our nodes are being made
	simpleDoubting                     // or may have been
	simpleLooking                      // they are there; the request for the other nodes is under way
	simpleComparing                    // they are there; the request for the gate's czxid is under way
	simpleStaying                      // they are there, and so are readers
	simpleHolding
	simpleLeaving // they are being deleted
	simpleTidying // the mark is not there, the gate made with it may be: it is read, and deleted
)

// readers is what a reader's mark begins with.
const readers = "R-"

// NewSimple is a contender for nothing yet. Among its readers and writers the gate is
// the writers'; without readers there is the gate only. The Incarnation must be another
// one for each.
func New(gate string, shared bool, in [8]byte) *Contender {
	return &Contender{gate: gate, shared: shared, in: in}
}

// Idle tells that nobody wants anything, and no node is there or may be.
func (s *Contender) Idle() bool { return s.wish == nil && s.stage == simpleFree }

// Ending reports whether what is under way after Close may delete nodes of ours yet.
func (s *Contender) Ending() bool { return s.asked != 0 }

// Nodes returns the names of the nodes of ours that are there, or may be.
func (s *Contender) Nodes() []string {
	switch {
	case s.stage == simpleFree || s.mark == "":
		return nil
	case s.gated:
		return []string{s.gate, s.mark}
	}
	return []string{s.mark}
}

func (s *Contender) effect(e Effect) { s.out = append(s.out, e) }

// ask is for effects that are answered; answers to earlier ones do not count any more.
func (s *Contender) ask(stage simpleStage, e Effect) {
	s.serials++
	s.stage, s.asked, s.stirred, e.Serial = stage, s.serials, false, s.serials
	s.effect(e)
}

// ---- what to do

// take makes our nodes.
func (s *Contender) take() {
	w := s.wish
	s.by, s.gated, s.yields, s.czxid = w.id, !s.shared || w.kind != queue.Shared, false, 0
	name := readers
	if s.gated {
		name = s.gate + "-"
	}
	s.mark = name + hex.EncodeToString(s.in[:]) + "-" + strconv.FormatUint(s.serials+1, 10)
	e := Effect{Kind: CreateNodes, OwnerNode: s.mark, Data: w.data}
	if s.gated {
		e.LockNode = s.gate
	}
	s.ask(simpleTaking, e)
}

func (s *Contender) watch() { s.ask(simpleWatching, Effect{Kind: WatchNodes, Nodes: []string{s.gate}}) }

func (s *Contender) look() { s.ask(simpleLooking, Effect{Kind: ListDirectory, Watch: s.gated}) }

// compare finds out whether the gate is still the one that we made. Another client may have
// deleted it, and a contender of another process made its own.
func (s *Contender) compare() {
	s.ask(simpleComparing, Effect{Kind: WatchNodes, Nodes: []string{s.mark, s.gate}, WithData: true})
	s.eye = s.asked
}

// compared takes the answer to compare.
func (s *Contender) compared(e Watched) {
	ours := s.isOurs(e)
	switch {
	case !ours || slices.Contains(e.Gone, s.mark) || !s.wanted():
		s.gated = ours
		s.leave() // and begin anew
	case s.stirred: // the watch has gone
		s.compare()
	default:
		s.hold()
	}
}

// isOurs reports whether the gate is the one that we made. Another client may have
// overwritten its data; only its czxid cannot change. If that of our mark was never heard of, the
// data decide.
func (s *Contender) isOurs(e Watched) bool {
	czxid, there := e.Czxids[s.gate]
	if s.czxid != 0 {
		return there && czxid == s.czxid
	}
	return there && string(e.Data[s.gate]) == s.mark
}

func (s *Contender) doubt() {
	e := Effect{Kind: WriteOwnerNode, OwnerNode: s.mark}
	if s.wanted() {
		e.Data = s.wish.data
	}
	s.ask(simpleDoubting, e)
}

// wanted tells that the request that our nodes were made for is still there.
func (s *Contender) wanted() bool { return s.wish != nil && s.wish.id == s.by }

func (s *Contender) leave() {
	e := Effect{Kind: DeleteNodes, OwnerNode: s.mark}
	if s.gated {
		e.LockNode = s.gate
	}
	s.eye = 0
	s.ask(simpleLeaving, e)
}

// tidy deletes the gate that was made with the mark, if it is left. Another client may
// have deleted the mark alone.
func (s *Contender) tidy() {
	s.ask(simpleTidying, Effect{Kind: WatchNodes, Nodes: []string{s.gate}, WithData: true})
}

func (s *Contender) hold() {
	s.stage, s.asked = simpleHolding, 0
	if s.wish.tell { // nobody knows who waits, so that is taken for granted, from the beginning
		s.effect(Effect{Kind: NotifyContended, ID: s.wish.id})
	}
	s.effect(Effect{Kind: Grant, ID: s.wish.id, OwnerNode: s.mark, Generation: s.generation, Czxid: s.czxid})
}

// have is for when our nodes are there; the gate perhaps, if the answer to their creation was
// lost.
func (s *Contender) have(e Transacted) {
	doubted := s.stage == simpleDoubting
	s.generation, s.czxid = e.Generation, e.Czxid
	if e.Reason != 0 { // no token is known for the mark
		if e.Reason != requests.NodeDeleted && s.wanted() {
			s.refuse(e.Reason)
		}
		s.by = 0
	}
	switch {
	case !s.wanted() && s.gated && doubted:
		s.compare()
	case !s.wanted():
		s.leave()
	case s.shared:
		s.look()
	case doubted:
		s.compare()
	default:
		s.hold()
	}
}

// free is for when there are no nodes of ours any more.
func (s *Contender) free() {
	s.stage, s.asked, s.mark, s.eye = simpleFree, 0, "", 0
	switch {
	case s.wish == nil || !s.live:
	case s.yields && !s.wish.try:
		s.watch()
	default:
		s.take()
	}
}

// exists is for when somebody has the gate that we would make.
func (s *Contender) exists() {
	s.mark = ""
	switch {
	case !s.wanted():
		s.free()
	case s.wish.try:
		s.refuse(requests.NotAcquired)
		s.free()
	default:
		s.watch()
	}
}

// giveWay is for when our nodes are there, and others.
func (s *Contender) giveWay() {
	switch {
	case s.wish.try:
		s.refuse(requests.NotAcquired)
		s.leave()
	case !s.gated:
		s.yields = true
		s.leave()
	case s.stirred:
		s.look()
	default:
		s.stage, s.asked = simpleStaying, 0
	}
}

// refuse ends the request.
func (s *Contender) refuse(why requests.Reason) {
	if s.wish != nil {
		s.effect(Effect{Kind: Refuse, ID: s.wish.id, Reason: why})
		s.wish = nil
	}
}

func (s *Contender) lose(why requests.Reason) {
	s.effect(Effect{Kind: Lose, ID: s.wish.id, Reason: why})
	s.wish = nil
}

// drop is for when the request has ended.
func (s *Contender) drop() {
	switch s.stage {
	case simpleWatching, simpleWaiting:
		s.free()
	case simpleLooking, simpleStaying, simpleHolding:
		s.leave()
	}
}

// check finds out whether what is held is still there.
func (s *Contender) check() {
	nodes := []string{s.mark}
	if s.gated {
		nodes = append(nodes, s.gate)
	}
	s.serials++
	s.eye = s.serials
	s.effect(Effect{Kind: WatchNodes, Serial: s.eye, Nodes: nodes, WithData: true})
}

// checked takes the answer. The gate may be another's by now: then it is not ours to
// delete.
func (s *Contender) checked(e Watched) {
	there := s.gated && s.isOurs(e)
	if there == s.gated && !slices.Contains(e.Gone, s.mark) {
		return
	}
	s.lose(requests.NodeDeleted)
	s.gated = there
	s.leave()
}

// rivals reports whether there is the mark of another writer: the gate may be its own.
func (s *Contender) rivals(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return name != s.mark && strings.HasPrefix(name, s.gate+"-") })
}

// conflict tells, of the names in the directory, whether others are in our way.
func (s *Contender) conflict(names []string) bool {
	if !s.gated {
		return slices.Contains(names, s.gate)
	}
	return slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, readers) })
}
