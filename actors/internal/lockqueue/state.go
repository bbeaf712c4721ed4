package lockqueue

import (
	"github.com/actorlock/actorlock/actors/internal/invariants"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// State is what one process knows of one lock: its own contenders, and those of other processes
// that matter to them. It is made by [New] and used by one goroutine at a time.
type State struct {
	rule        *queue.Rule // which many States share
	incarnation Incarnation

	clock      uint64 // number of events
	lastSerial uint64 // last serial that an effect was given
	// epoch is the number of the session, and firstSerial the first serial of its effects. A node
	// of this incarnation with an earlier serial is of a former session, and counts as another
	// process's.
	epoch, firstSerial uint64
	session            SessionState
	closed             requests.Reason // not 0 after Close
	kindsDiffer        bool            // of rule: see ofKind
	keepsDirectory     bool            // see KeepDirectory
	clients            clients         // those that had contenders of other processes here, at any time

	directoryView                 // view.go: contenders, completeThrough, directory and others
	ownEntries                    // entry.go: entries, unanswered, waiting, requests and others
	proofs                        // proof.go: allDoubtedAt, staleBefore, watches and others
	listing       listing         // list.go: the list of the directory that is not answered yet
	delay         *delay          // delay.go: what is under way about the held marker; nil if nothing is
	contention    contentionWatch // contention.go: the watch for Acquire.NotifyContended

	// reported are the names that ReportUnknownChild has reported, at most maxReported.
	reported map[string]bool

	*scratch // nil between Performed and the next use
}

// New returns the State of a lock without requests. The names of its nodes have the Incarnation: no
// two States that ever share a directory may have the same. Nothing may write to the rule.
func New(rule *queue.Rule, in Incarnation) *State {
	return &State{rule: rule, kindsDiffer: kindsDiffer(rule), incarnation: in, lastSerial: serialsOf(rule),
		directoryView: newView()}
}

// Step applies an event to the State and returns what is to be done because of it, in order. The
// slice is valid until Performed or the next Step. (Step is generic so that an event need not be
// allocated.)
func Step[E Event](s *State, ev E) []Effect {
	s.needScratch()
	s.out = s.out[:0]
	s.clock++
	ev.apply(s)
	s.grantEligible()
	s.admit()
	s.watchContention() // for Acquire.NotifyContended
	invariants.Check(s)
	return s.out
}
