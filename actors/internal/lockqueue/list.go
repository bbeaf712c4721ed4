package lockqueue

import (
	"cmp"
	"slices"

	"github.com/actorlock/actorlock/actors/queue"
)

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
		s.merge(ev.Children, ev.Czxids, s.listing.askedAt)
	}
	if s.listing.again {
		s.listing.again = false
		s.requestList()
	}
	s.grantEligible()
}

func (s *State) requestList() {
	if s.listing.serial != 0 {
		s.listing.again = true
		return
	}
	s.lastSerial++
	s.listing.serial, s.listing.askedAt = s.lastSerial, s.clock
	s.effect(Effect{Kind: ListDirectory, Serial: s.listing.serial, WithCzxids: s.byCzxid, Watch: s.takeDirectoryWatch()})
}

// placeKnown reports whether all contenders ahead of e are known. They are not if e's node may be in
// another directory: there the numbers up to completeThrough belong to other nodes.
func (s *State) placeKnown(e *entry) bool {
	if !e.listed || e.rank.major > s.completeThrough {
		return false
	}
	if s.byCzxid {
		return !s.awaitsEarlierCreate(e) && !s.behindUnlisted(e)
	}
	return e.inDirectory
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

// merge takes in a list of the directory's children, which was read after the event at the clock
// since. It may be older than a list that came before. A contender that it does not show is gone,
// but one beyond its highest number may be newer, and so may a downgrade, whose number is old: these
// stay, unless their Created came before the list was asked for.
func (s *State) merge(children []string, czxids []int64, since uint64) {
	if nearTheEnd(s.rule, children) {
		s.switchToCzxids()
	}
	if s.byCzxid && len(czxids) != len(children) {
		s.requestList() // it is of no use without czxids
		return
	}
	next := make([]*contender, 0, len(children))
	top, filled := nothingKnown, int64(0) // filled is how many contenders the list shows beyond completeThrough
	for _, c := range s.contenders {
		c.listed = false // until it is in next
	}
	for i, name := range children {
		czxid := int64(0)
		if s.byCzxid {
			czxid = czxids[i]
		}
		if c := s.recognise(name, czxid); c != nil && !c.listed {
			c.listed, c.provenAt = true, max(c.provenAt, since)
			if c.seq == unknownSeq {
				c.hiddenAt = s.clock
			}
			if c.entry != nil {
				c.entry.inDirectory = true
			}
			next = append(next, c)
			top = max(top, c.rank.major)
			if c.rank.major > s.completeThrough {
				filled++
			}
		}
	}
	if since >= s.unseenSince {
		s.unseenDowngrades = 0
	}
	// A contender may have come and gone that no list has shown. The first number is 0.
	departed := top > s.completeThrough && (s.byCzxid || filled != top-max(s.completeThrough, -1))
	s.completeThrough = max(s.completeThrough, top)
	var missing []*entry    // gone for sure
	var hidden []*contender // perhaps gone
	for _, c := range s.contenders {
		known := c.entry != nil && c.entry.answered() && c.entry.createdAt <= since
		downgraded := c.entry != nil && c.entry.downgraded
		switch {
		case c.listed:
		case (c.rank.major > top || downgraded) && !known, c.seq == unknownSeq && c.hiddenAt > since:
			c.listed = true
			next = append(next, c)
			hidden = append(hidden, c)
		case c.entry != nil:
			missing = append(missing, c.entry)
		default:
			departed = true
		}
	}
	slices.SortFunc(next, func(a, b *contender) int {
		return cmp.Or(a.rank.compare(b.rank), cmp.Compare(a.seq, b.seq)) // one transaction of another process makes its nodes in the order of their numbers
	})
	s.contenders, s.foreign = next, 0
	for _, c := range next {
		if c.entry == nil {
			s.foreign++
		}
	}
	s.extendComplete()
	for _, e := range s.unlisted() {
		if e.createdAt <= since {
			missing = append(missing, e)
		} else {
			hidden = append(hidden, &e.contender)
		}
	}
	departed = departed || len(missing) > 0
	if departed { // they left before the list was read; only the nodes that it shows are known to exist since
		s.allDoubtedAt, s.departuresListedAt = max(s.allDoubtedAt, since), s.clock
		for _, c := range hidden {
			c.hiddenAt = s.clock
		}
	}
	if s.byCzxid && slices.Contains(czxids, 0) { // it left after the names were read, and perhaps after some czxids
		s.allDoubtedAt = s.clock
	}
	for _, e := range missing {
		if e.stage == queued && e.createdAt > since && !e.inDirectory {
			s.requeue(e) // it may be in a directory that comes after this one
		} else {
			s.ownNodeUnlisted(e)
		}
	}
}

// recognise returns the contender that a child of the directory is, or nil for a child that does
// not count. If contenders rank by czxid, a czxid of 0 says that the child has gone.
func (s *State) recognise(name string, czxid int64) *contender {
	seq, kind, ok := s.rule.Parse(name)
	if !ok {
		s.report(name)
		if !s.rule.CountUnknown {
			return nil
		}
		seq, kind = unknownSeq, queue.Exclusive
	}
	if serial, mine := s.incarnation.serial(name); mine && serial >= s.firstSerial {
		return s.recogniseOwn(s.entries[serial], name, seq, czxid)
	}
	rank := s.rankOf(seq, czxid)
	if c := s.find(name); s.byCzxid && czxid == 0 || c != nil && c.rank == rank {
		return c
	}
	// It is new. At the end of the numbers another node may have had its name.
	return &contender{name: name, seq: seq, rank: rank, kind: kind}
}

// recogniseOwn is recognise for a child with the name of an entry, or nil.
func (s *State) recogniseOwn(e *entry, name string, seq, czxid int64) *contender {
	switch {
	case e == nil || e.stage == leaving || e.stage == abandoned:
		return nil // its deletion is under way
	case e.stage == creating && s.byCzxid:
		return nil // its Created says its place: see awaitsEarlierCreate
	case e.stage == creating: // it has its place in the queue while its Created is on its way
		e.name, e.seq, e.rank = name, seq, s.rankOf(seq, czxid)
	case e.name != name:
		return nil // a former node of e: its creation was repeated
	case s.byCzxid && (czxid == 0 || queue.NearEnd(seq) && e.czxid != czxid):
		return nil // gone since, perhaps with another node of its name made after it
	}
	return &e.contender
}

func (s *State) report(name string) {
	if !s.reported[name] && len(s.reported) < maxReported {
		put(&s.reported, name, true)
		s.effect(Effect{Kind: ReportUnknownChild, Node: name})
	}
}

// maxReported bounds the memory of a lock whose directory other programs use.
const maxReported = 100
