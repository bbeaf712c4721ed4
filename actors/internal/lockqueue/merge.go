package lockqueue

import (
	"slices"

	"github.com/actorlock/actorlock/actors/internal/requests"
)

// How a list of the directory changes the State.

func (ev Listed) apply(s *State) {
	if ev.Serial != s.listing.serial {
		return
	}
	s.listing.serial = 0
	s.listArrived(ev.DirectoryCzxid != 0)
	if ev.DirectoryCzxid == 0 && len(ev.Children) > 0 {
		s.contention.later = true // the server contradicts itself, and is not asked again at once
	}
	if ev.DirectoryCzxid != 0 && !s.enterDirectory(ev.DirectoryCzxid) {
		s.listing.former = min(s.listing.former+1, requests.MaxRepeats)
	} else {
		s.listing.former = 0
		s.merge(ev.Children, s.listing.askedAt)
		s.listedOutside(ev.DirectoryCzxid, len(ev.Children))
	}
	if s.listing.again {
		s.listing.again = false
		s.requestList()
	}
}

// comparison is what a list of the directory says of the contenders. The list was asked for at the
// clock askedAt and read later; it may still be older than a list that came before. A contender
// that it does not show is gone, or hidden: its node may be newer than the list.
type comparison struct {
	askedAt  uint64
	next     []*contender // State.contenders from now on: those that it shows, and those hidden ones that were there before
	top      int64        // the greatest number that it shows
	hidden   []*contender
	missing  []*entry // of this process, and gone
	departed bool     // a contender of another process is gone
}

// merge takes in a list of the directory's children, which was asked for at the clock askedAt and
// read later.
func (s *State) merge(children []string, askedAt uint64) {
	l := comparison{askedAt: askedAt, next: make([]*contender, 0, len(children)), top: nothingKnown}
	s.noteShown(&l, children)
	s.noteUnshown(&l)
	s.replaceList(&l)
	if l.departed || len(l.missing) > 0 {
		s.doubtAfter(&l)
	}
	if s.foreign > 0 {
		s.othersCame = manyCreates
	}
	for _, e := range l.missing {
		// It may be in a directory that comes after this one, or a server may leave it out again and again.
		if e.stage == queued && (e.createdAt > askedAt && !e.inDirectory || e.repeats == requests.MaxRepeats) {
			s.requeue(e)
		} else {
			s.goOnWithoutNode(e)
		}
	}
}

// noteShown notes the contenders that the list shows, and whether it skips a number. From here to
// replaceList only they, and the hidden ones that stay, are marked as listed.
func (s *State) noteShown(l *comparison, children []string) {
	for _, c := range s.contenders {
		c.listed = false
	}
	beyond := int64(0) // how many it shows beyond completeThrough
	for _, name := range children {
		c := s.recognise(name)
		if c == nil || c.listed {
			continue
		}
		c.listed, c.inDirectory, c.shownAt, c.provenAt = true, true, s.clock, max(c.provenAt, l.askedAt)
		l.next, l.top = append(l.next, c), max(l.top, c.seq)
		if c.seq > s.completeThrough {
			beyond++
		}
	}
	// A number beyond completeThrough that the list skips was a contender's that came and went
	// unseen.
	numbers := l.top - max(s.completeThrough, -1) // the first number is 0
	l.departed = l.top > s.completeThrough && beyond != numbers
}

// noteUnshown notes the contenders that the list does not show.
func (s *State) noteUnshown(l *comparison) {
	for _, c := range s.contenders {
		switch {
		case c.listed:
		case l.mayPrecede(c):
			c.listed = true
			l.next, l.hidden = append(l.next, c), append(l.hidden, c)
		case c.entry != nil:
			l.missing = append(l.missing, c.entry)
		default:
			l.departed = true
		}
	}
}

// doubtAfter doubts nodes of this process after a list that shows departures. The nodes that it
// shows were there after them, so their proof by this list stands: it has the clock askedAt, as the
// doubt of all nodes has. Hidden nodes may have gone since, whatever has proven them.
func (s *State) doubtAfter(l *comparison) {
	s.allDoubtedAt, s.departuresListedAt = max(s.allDoubtedAt, l.askedAt), s.clock
	for _, c := range l.hidden {
		c.hiddenAt = s.clock
	}
}

// mayPrecede reports whether the list may be older than the node of a contender that it does not
// show: no number in it is as high, or the node is a downgrade, whose number says nothing. A list
// that was asked for after the Created is not older.
func (l *comparison) mayPrecede(c *contender) bool {
	e := c.entry
	switch {
	case c.seq == unknownSeq:
		return c.shownAt > l.askedAt
	case e != nil && e.answered() && e.createdAt <= l.askedAt:
		return false
	}
	return c.seq > l.top || e != nil && e.downgrade.made
}

// replaceList makes the contenders of a comparison the list of the State.
func (s *State) replaceList(l *comparison) {
	slices.SortFunc(l.next, compareSeq)
	s.contenders, s.foreign = l.next, 0
	for kind, list := range s.byKind {
		clear(list)
		s.byKind[kind] = list[:0]
	}
	for _, c := range l.next {
		if s.kindsDiffer {
			s.insertByKind(&s.byKind, c)
		}
		if c.entry == nil {
			s.foreign++
		}
	}
	s.completeThrough = max(s.completeThrough, l.top)
	s.extendComplete()
	if l.askedAt >= s.unseenSince {
		s.unseenDowngrades = 0
	}
}

// recognise returns the contender that a child of the directory is, or nil for a child that does
// not count.
func (s *State) recognise(name string) *contender {
	seq, kind, ok := s.parse(name)
	if !ok {
		s.report(name)
		if !s.rule.CountUnknown {
			return nil
		}
	}
	s.numbers.note(seq)
	if serial, own := s.incarnation.serial(name); own && serial >= s.firstSerial {
		return s.recogniseOwn(s.entries.at(serial), name, seq)
	}
	c := s.find(name)
	if c == nil {
		c = &contender{name: name, seq: seq, kind: kind}
		s.noteClient(name)
	}
	return c
}

// recogniseOwn is recognise for a child with the name of an entry, or nil.
func (s *State) recogniseOwn(e *entry, name string, seq int64) *contender {
	switch {
	case e == nil || e.stage == leaving || e.stage == abandoned:
		return nil // its deletion is under way
	case e.stage == creating && e.name != name && e.downgrade.of == nil && seq <= s.completeThrough:
		return nil // a later list has not shown it: it is gone
	case e.stage == creating: // it has its place in the queue while its Created is on its way
		e.name, e.seq = name, seq
	case e.name != name:
		return nil // a former node of e: its creation was repeated
	}
	return &e.contender
}

// noteClient notes which client has made the name of a contender of another process, and with how
// many permits.
func (s *State) noteClient(name string) {
	if here := int(s.lastSerial >> permitsShift); here != 0 {
		if other := PermitsOf(name); other != 0 && other != here {
			f := s.add(requests.ReportPermits, 0)
			f.Node, f.Permits = name, other
		}
	}
	const both = curators | unknownToCurators
	if s.clients == both {
		return
	}
	if s.clients |= clientOf(name); s.clients == both {
		s.add(requests.ReportClients, 0)
	}
}

func (s *State) report(name string) {
	if !s.reported[name] && len(s.reported) < maxReported {
		put(&s.reported, name, true)
		s.add(requests.ReportUnknownChild, 0).Node = name
	}
}

// maxReported bounds the memory of a lock whose directory other programs use.
const maxReported = 100
