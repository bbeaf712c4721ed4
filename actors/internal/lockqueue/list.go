package lockqueue

import (
	"slices"

	"github.com/actorlock/actorlock/actors/internal/requests"
)

// When the directory is listed.

// requestList asks for a list, unless the answer to another one is awaited. It waits for the next Tick if
// the last answers were all of a former directory: the server would be asked for ever, without a pause.
func (s *State) requestList() {
	switch {
	case s.listing.serial != 0:
		s.listing.again = true
	case s.listing.former == requests.MaxRepeats:
		s.listing.later = true
	default:
		s.sendList()
	}
}

func (s *State) sendList() {
	s.listing.later = false
	s.lastSerial++
	s.listing.serial, s.listing.askedAt = s.lastSerial, s.clock
	s.ask(requests.ListDirectory, s.listing.serial).Watch = s.takeDirectoryWatch()
}

// awaitsContention reports whether a holder wants to know of contention and does not know of any.
func (s *State) awaitsContention() bool {
	return slices.ContainsFunc(s.holders, func(c *contender) bool { return c.entry.wantsContention() })
}

// takeDirectoryWatch reports whether the list that is about to be asked for is to set the watch,
// and notes that it does.
func (s *State) takeDirectoryWatch() bool {
	if !s.contention.wanted || s.contention.set || !s.awaitsContention() {
		return false
	}
	s.contention.set, s.contention.requested, s.contention.later = true, true, false
	return true
}

// listOutside lists the directory for the entries that wait outside.
func (s *State) listOutside() {
	if s.anyOutside() && s.numbers.ending() && s.listing.serial == 0 && s.numbers.deletion == 0 {
		s.requestList()
	}
}

// placeKnown reports whether all contenders ahead of e are known. They are not if e's node may be
// in another directory: there the numbers up to completeThrough belong to other nodes.
func (s *State) placeKnown(e *entry) bool {
	return e.seq <= s.completeThrough && e.inDirectory
}

// mayHaveMissed reports whether a new contender is likely to need a list: others of which this process
// has not heard may be ahead of it. The bridge then reads the names with the create. Otherwise the
// number of the new node is expected to follow on completeThrough. If it does not, listGap asks for a
// list, which then takes a round trip of its own.
func (s *State) mayHaveMissed() bool {
	return s.directoryCzxid == 0 || s.completeThrough == nothingKnown || s.foreign > 0 || s.othersCame > 0
}

// manyCreates is how many creates in a row must follow on each other before no list is read with the
// next one. A list that is missed takes a round trip. One that is read for nothing takes a tenth
// of that, in which a server could have done something else.
const manyCreates = 8

// noteNumber notes the number of an entry's new node. Nothing came in between if it follows on
// completeThrough, whatever becomes of the node.
func (s *State) noteNumber(e *entry) {
	switch {
	case !e.inDirectory:
	case s.follows(e.seq):
		s.completeThrough++
		s.othersCame -= min(s.othersCame, 1)
	case s.completeThrough != nothingKnown && !s.awaitsEarlierCreate(e):
		s.othersCame = manyCreates
	}
}

// listGap closes the gap between completeThrough and an entry. An own CreateNode that was sent
// before the entry's Created came may fill the gap; otherwise a contender of another process does,
// and a list shows it.
func (s *State) listGap(e *entry) {
	if s.listing.serial == 0 && !s.awaitsEarlierCreate(e) {
		s.requestList()
	}
}

// awaitsEarlierCreate reports whether another CreateNode has no answer yet, and was sent before e's
// Created came: its node may be ahead of e.
func (s *State) awaitsEarlierCreate(e *entry) bool {
	first := s.unanswered.First()
	return first != nil && first.sentAt < e.createdAt
}
