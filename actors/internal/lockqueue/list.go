package lockqueue

import "github.com/actorlock/actorlock/actors/internal/requests"

// When the directory is listed.

// listing is the ListDirectory that is not answered yet.
type listing struct {
	serial  uint64 // 0 if there is none
	askedAt uint64 // clock at which it was asked for
	again   bool   // the answer may be too old: ask once more then; only if serial is not 0
}

func (ev Listed) apply(s *State) {
	if ev.Serial != s.listing.serial {
		return
	}
	s.listing.serial = 0
	s.listArrived(ev.Directory != 0)
	if ev.Directory == 0 || s.enterDirectory(ev.Directory) {
		s.merge(ev.Children, s.listing.askedAt)
		s.listedOutside(ev.Directory, len(ev.Children))
	}
	if s.listing.again {
		s.listing.again = false
		s.requestList()
	}
}

func (s *State) requestList() {
	if s.listing.serial != 0 {
		s.listing.again = true
		return
	}
	s.lastSerial++
	s.listing.serial, s.listing.askedAt = s.lastSerial, s.clock
	s.ask(requests.ListDirectory, s.listing.serial).Watch = s.takeDirectoryWatch()
}

// placeKnown reports whether all contenders ahead of e are known. They are not if e's node may be
// in another directory: there the numbers up to completeThrough belong to other nodes.
func (s *State) placeKnown(e *entry) bool {
	return e.seq <= s.completeThrough && e.inDirectory
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
	return len(s.unanswered) > 0 && s.unanswered[0].sentAt < e.createdAt
}
