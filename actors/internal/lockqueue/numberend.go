package lockqueue

import (
	"math"

	"github.com/actorlock/actorlock/actors/internal/requests"
)

// The entries that wait outside near the end of the directory's numbers: see numbers.go.

// admit creates the nodes of the entries that have waited for a session, or outside, once they need
// not wait any longer. Step calls it after every event.
func (s *State) admit() {
	if s.anyOutside() && !s.numbers.ending() && !s.untilTick {
		for e := range s.unsent.All() {
			s.requestCreate(e)
		}
	}
}

// listedOutside goes on with the entries that wait outside after a list of the directory, whose
// czxid is 0 if it is missing.
func (s *State) listedOutside(directory int64, children int) {
	n := &s.numbers
	switch {
	case directory == 0:
		*n = newNumbers()
		return
	case !s.anyOutside() || !n.ending() || n.deletion != 0:
		return
	case int32(children) < n.fewest:
		n.fewest, n.ticks = int32(children), 0
	}
	if children == 0 && !s.keepsDirectory {
		s.lastSerial++
		n.deletion = s.lastSerial
		s.ask(requests.DeleteDirectory, n.deletion)
		return
	}
	for e := range s.unsent.All() { // a try does not wait for contenders that block it
		if s.blockersAhead(e.kind, math.MaxInt64) >= s.rule.Permits && s.refuseTriesOf(e) && len(e.requests) == 0 {
			s.leave(e)
		}
	}
	s.endVainWait()
}

// directoryDeleted takes the answer to DeleteDirectory. If the directory is not deleted, a Tick
// lists it.
func (s *State) directoryDeleted(done bool) {
	s.numbers.deletion = 0
	if done {
		s.numbers = newNumbers()
	} else {
		s.endVainWait()
	}
}

// endVainWait has the entries go on that have waited outside in vain: they use up the numbers, and
// are refused once few are left.
func (s *State) endVainWait() {
	n := &s.numbers
	switch {
	case n.ticks < patience:
	case n.highest < lastEntry:
		n.enterUntil, n.fewest, n.ticks = n.highest+entriesBetween, math.MaxInt32, 0
	default:
		s.refuseOutside(requests.SequenceExhausted)
	}
}

// refuseOutside refuses the requests that wait outside.
func (s *State) refuseOutside(why requests.Reason) {
	for e := range s.unsent.All() {
		s.refuseAll(e, why)
	}
}

// tickOutside lists the directory at a Tick while requests wait outside.
func (s *State) tickOutside() {
	if s.anyOutside() && s.numbers.ending() {
		s.numbers.ticks++
		s.listOutside()
	}
}
