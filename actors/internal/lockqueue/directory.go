package lockqueue

import (
	"cmp"
	"slices"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// The answers of lists and watches, and the passing of time.

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

// merge takes in a list of the directory's children, which was read after the event at the clock
// since. It may be older than a list that came before. A contender that it does not show is gone,
// but one beyond its highest number may be newer, and so may a downgrade, whose number is old: these
// stay, unless their Created came before the list was asked for.
func (s *State) merge(children []string, czxids []int64, since uint64) {
	if !s.byCzxid && nearTheEnd(s.rule, children) {
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
				c.doubtedAt = s.clock
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
		case (c.rank.major > top || downgraded) && !known, c.seq == unknownSeq && c.doubtedAt > since:
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
		s.doubtedAt, s.departureSeenAt = max(s.doubtedAt, since), s.clock
		for _, c := range hidden {
			c.doubtedAt = s.clock
		}
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
		e := s.entries[serial]
		if e == nil || e.stage == leaving || e.stage == abandoned {
			return nil // its deletion is under way
		}
		if s.byCzxid && czxid == 0 || e.stage != creating && (e.name != name || s.byCzxid && queue.NearEnd(seq) && e.czxid != czxid) {
			return nil // gone since; a node of this process was made again by another name
		}
		if e.stage == creating {
			// The node is of this process, and its Created is still on its way. It has its place in
			// the queue nevertheless.
			if s.byCzxid {
				return nil // its Created says its place; see awaitsEarlierCreate
			}
			e.name, e.seq, e.rank = name, seq, s.rankOf(seq, czxid)
		}
		return &e.contender
	}
	rank := s.rankOf(seq, czxid)
	if c := s.find(name); c != nil && (!s.byCzxid || czxid == 0 || c.rank == rank) {
		return c
	} // otherwise this is another node of the same name: at the end of the numbers a name comes again
	if s.byCzxid && czxid == 0 {
		return nil
	}
	return &contender{name: name, seq: seq, rank: rank, kind: kind}
}

func (s *State) report(name string) {
	if !s.reported[name] && len(s.reported) < maxReported {
		put(&s.reported, name, true)
		s.effect(Effect{Kind: ReportUnknownChild, Node: name})
	}
}

// maxReported bounds the memory of a lock whose directory other programs use.
const maxReported = 100

func (ev Watched) apply(s *State) {
	if s.awaitsMarker(ev.Serial) {
		s.heldMarkerRead(ev)
	}
	for _, name := range s.watchedFor(ev.Serial) {
		w := s.watches[name]
		if w == nil {
			continue
		}
		w.active = s.session == Connected // without a connection it reports nothing
		if slices.Contains(ev.Gone, name) {
			s.nodeDeleted(name)
			continue
		}
		c := s.find(name)
		if c != nil {
			c.provenAt = s.clock
		}
		if c != nil && string(ev.Data[name]) == queue.RevokeData {
			s.revoke(c.entry)
		}
	}
	s.grantEligible()
}

// watchedFor returns the names of the nodes that the WatchNodes of a serial watches, sorted.
func (s *State) watchedFor(serial uint64) (names []string) {
	for name, w := range s.watches {
		if w.serial == serial {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (ev Wake) apply(s *State) {
	if ev.Epoch != s.epoch {
		return
	}
	delete(s.watches, ev.Node)
	if ev.Node == "" {
		s.contention.set = false
	}
	if ev.Deleted {
		s.nodeDeleted(ev.Node)
	} else if c := s.find(ev.Node); c != nil {
		c.provenAt = s.clock
		if c.entry != nil && c.entry.stage >= makingMarker {
			s.requestWatch([]string{c.name}) // other nodes are watched again as long as they matter
		}
	}
	s.grantEligible()
}

// nodeDeleted notes that a node of any process is gone.
func (s *State) nodeDeleted(name string) {
	delete(s.watches, name)
	switch c := s.find(name); {
	case c == nil:
	case c.entry != nil:
		s.ownNodeDeleted(c.entry)
	default:
		s.removeFromList(c)
		s.doubtedAt = s.clock
		if kinds := downgradesFrom(s.rule, c.kind); kinds != 0 {
			s.unseenDowngrades, s.unseenSince = s.unseenDowngrades|kinds, s.clock
		}
	}
}

func (Tick) apply(s *State) {
	s.staleAt, s.tickedAt = s.tickedAt, s.clock
	if s.session != Connected {
		return
	}
	if s.byCzxid && slices.ContainsFunc(s.waiting, func(line []*contender) bool { return len(line) > 0 }) {
		s.requestList() // a repeated creation may have made a node of the name of a deleted one
	}
	var ask []string
	askIfStale := func(c *contender) {
		if c.provenAt < s.staleAt && s.watches[c.name] == nil {
			ask = append(ask, c.name)
		}
	}
	for _, c := range s.nextToHold() {
		askIfStale(c)
	}
	for e := range own(s.contenders[:s.endOfHolders()]) {
		if e.stage == held || e.stage == makingMarker {
			askIfStale(&e.contender)
		}
	}
	if len(ask) > 0 {
		s.requestWatch(ask)
	}
}

func (ev Failed) apply(s *State) {
	if e := s.entries[ev.Serial]; e != nil {
		s.createFailed(e, ev)
	} else if s.awaitsMarker(ev.Serial) {
		s.markerFailed(ev.Reason)
	} else if ev.Serial == s.listing.serial {
		s.listing.serial, s.listing.again = 0, false
		s.assumeContended()
		s.readFailed(ev)
	} else if s.unwatch(ev.Serial) {
		s.readFailed(ev)
	}
	s.grantEligible()
}

// unwatch forgets the watches of a serial, and reports whether there were any.
func (s *State) unwatch(serial uint64) (found bool) {
	for name, w := range s.watches {
		if w.serial == serial {
			delete(s.watches, name)
			found = true
		}
	}
	return found
}

func (s *State) createFailed(e *entry, ev Failed) {
	switch {
	case e.stage == leaving: // its node may still exist, also if the session is lost
		delete(s.entries, e.serial)
		s.lastDeleted = nil
		s.refuseRelease(e, ev.Reason)
		return
	case e.answered():
		return
	}
	if ev.Reason == requests.NodeDeleted { // perhaps by another client, which may have deleted other nodes, too: see ownNodeDeleted
		s.doubtedAt = s.clock
	}
	unwanted := e.stage == abandoned
	s.markAnswered(e)
	delete(s.entries, e.serial)
	s.removeFromList(&e.contender)
	origin := s.detach(e)
	switch {
	case origin != nil && ev.Reason == requests.NotHeld:
		e.stage = leaving
		s.refuseAll(e, requests.NodeDeleted)
		s.ownNodeDeleted(origin)
		return
	case origin != nil && len(origin.requests) == 0 && origin.stage == held:
		defer s.leave(origin)
	}
	switch {
	case unwanted:
	case origin != nil && ev.Reason == requests.NodeDeleted:
		e.downgradeOf = origin
		s.requestCreate(e)
	case ev.Reason == requests.NodeDeleted:
		s.requestCreate(e)
	default:
		e.stage = leaving // there is no node to delete
		s.refuseAll(e, ev.Reason)
	}
}

// readFailed refuses the waiting requests: without the read nothing would wake them.
func (s *State) readFailed(ev Failed) {
	for _, e := range s.waitingInOrder() {
		s.refuseAll(e, ev.Reason)
	}
	// The holders are to be verified nevertheless.
	var ask []string
	for e := range own(s.contenders) {
		if e.stage == held && s.watches[e.name] == nil && ev.Serial != s.watchAfterFailure {
			ask = append(ask, e.name)
		}
	}
	if len(ask) > 0 {
		s.requestWatch(ask)
		s.watchAfterFailure = s.lastSerial
	}
}

// listing is the ListDirectory that is not answered yet.
type listing struct {
	serial  uint64 // 0 if there is none
	askedAt uint64 // clock at which it was asked for
	again   bool   // the answer may be too old: ask once more then; only if serial is not 0
}
