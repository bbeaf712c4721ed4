package lockqueue

import (
	"fmt"
	"slices"
	"strings"

	"github.com/actorlock/actorlock/actors/internal/requests"
)

// Check returns an error that names an invariant which does not hold between two events, or
// nil. It is meant for tests.
func (s *State) Check() error {
	for _, check := range []func() error{s.checkView, s.checkEntries, s.checkWaiting, s.checkRequests, s.checkHolders, s.checkRest} {
		if err := check(); err != nil {
			return fmt.Errorf("lockqueue: %w", err)
		}
	}
	return nil
}

// checkView checks the list of contenders.
func (s *State) checkView() error {
	foreign := 0
	for i, c := range s.contenders {
		switch {
		case !c.listed:
			return fmt.Errorf("%s is in the list and not marked as listed", c.name)
		case i > 0 && s.contenders[i-1].seq > c.seq:
			return fmt.Errorf("%s is in the list behind %s, whose number is greater", c.name, s.contenders[i-1].name)
		case c.provenAt > s.clock || c.hiddenAt > s.clock:
			return fmt.Errorf("%s is proven at %d and hidden at %d; it is %d", c.name, c.provenAt, c.hiddenAt, s.clock)
		case c.entry == nil:
			foreign++
		case &c.entry.contender != c || s.entries.at(c.entry.serial) != c.entry:
			return fmt.Errorf("%s is in the list and its entry is not known", c.name)
		case !slices.Contains([]stage{creating, queued, makingMarker, held}, c.entry.stage):
			return fmt.Errorf("%s is in the list in stage %d", c.name, c.entry.stage)
		}
	}
	byKind := 0
	for kind, list := range s.byKind {
		for i, c := range list {
			byKind++
			if !c.listed || int(c.kind) != kind || i > 0 && list[i-1].seq > c.seq {
				return fmt.Errorf("%s of kind %d is in the list of kind %d, at %d", c.name, c.kind, kind, i)
			}
		}
	}
	switch {
	case s.kindsDiffer && byKind != len(s.contenders), !s.kindsDiffer && byKind != 0:
		return fmt.Errorf("%d contenders are in the list, and %d in those of the kinds", len(s.contenders), byKind)
	case foreign != s.foreign:
		return fmt.Errorf("%d contenders of others are in the list, and %d are counted", foreign, s.foreign)
	case s.session == Lost && s.completeThrough != nothingKnown:
		return fmt.Errorf("the directory of a lost session is known through %d", s.completeThrough)
	}
	return nil
}

// checkEntries checks the entries, and those without an answer or a session.
func (s *State) checkEntries() error {
	downgrades, unanswered := map[*entry]int16{}, slices.Collect(s.unanswered.All())
	for i, e := range s.entries.list {
		serial := e.serial
		switch wanted := len(e.requests) > 0; {
		case serial < s.firstSerial || serial > s.lastSerial || i > 0 && serial <= s.entries.list[i-1].serial:
			return fmt.Errorf("entry %d of %d has the serial %d, of %d to %d", i, len(s.entries.list), serial, s.firstSerial, s.lastSerial)
		case e.entry != e:
			return fmt.Errorf("entry %d is not its contender's", serial)
		case slices.Contains([]stage{unsent, created}, e.stage):
			return fmt.Errorf("entry %d is in stage %d", serial, e.stage)
		case wanted != (e.stage == creating || e.stage == queued || e.stage == held) && s.closed == 0 && e.downgrade.pending == 0 && e.stage != makingMarker:
			return fmt.Errorf("entry %d is in stage %d with %d requests", serial, e.stage, len(e.requests))
		case e.answered() && e.stage != leaving && (e.createdAt < e.sentAt || e.name == ""):
			return fmt.Errorf("entry %d is answered: sent at %d, created at %d, %q", serial, e.sentAt, e.createdAt, e.name)
		case !e.answered() && e.name != "" && !strings.HasPrefix(e.name, s.incarnation.prefix(serial, "")):
			return fmt.Errorf("entry %d has no answer, and has the name of another node: %s", serial, e.name)
		case !e.answered() && !slices.Contains(unanswered, e):
			return fmt.Errorf("entry %d has no answer and is not awaited", serial)
		case e.downgrade.of != nil && (!e.downgrade.made || e.answered() || e.downgrade.of.stage != held):
			return fmt.Errorf("entry %d is to be beside %d, in stage %d", serial, e.downgrade.of.serial, e.downgrade.of.stage)
		case e.ending == releasing && e.stage != leaving && e.downgrade.pending == 0 && e.stage != held:
			return fmt.Errorf("entry %d is being released in stage %d", serial, e.stage)
		}
		if e.downgrade.of != nil {
			downgrades[e.downgrade.of]++
		}
	}
	for _, e := range s.entries.list {
		if e.downgrade.pending != downgrades[e] {
			return fmt.Errorf("entry %d counts %d downgrades of %d", e.serial, e.downgrade.pending, downgrades[e])
		}
	}
	open, lists := int32(0), int32(0)
	for _, e := range unanswered {
		switch {
		case e.stage == creating:
			open++
		case e.stage != abandoned:
			return fmt.Errorf("entry %d in stage %d is awaited", e.serial, e.stage)
		}
		if e.listAfter {
			lists++
		}
	}
	if open != s.creating || lists != s.listsDue {
		return fmt.Errorf("%d creates and %d lists are open, and %d and %d are counted", open, lists, s.creating, s.listsDue)
	}
	for e := range s.unsent.All() {
		if e.stage != unsent {
			return fmt.Errorf("an unsent entry is in stage %d", e.stage)
		}
	}
	switch {
	case s.anyOutside() && !s.numbers.ending() && !s.untilTick:
		return fmt.Errorf("entries are not sent, and there is a session")
	case !slices.IsSortedFunc(unanswered, func(a, b *entry) int { return int(int64(a.serial) - int64(b.serial)) }):
		return fmt.Errorf("creates are awaited in another order than they were sent")
	}
	return nil
}

// checkWaiting checks that the queued entries wait, and no others.
func (s *State) checkWaiting() error {
	waiting, tries := 0, 0
	for kind, line := range s.waiting {
		for i, c := range line {
			waiting++
			if c.entry.hasTry() {
				tries++
			}
			switch {
			case c.entry.stage != queued || int(c.kind) != kind:
				return fmt.Errorf("%s of kind %d waits as kind %d in stage %d", c.name, c.kind, kind, c.entry.stage)
			case i > 0 && line[i-1].seq > c.seq:
				return fmt.Errorf("%s waits behind %s, whose number is greater", c.name, line[i-1].name)
			case !c.listed:
				return fmt.Errorf("%s waits and is not in the list", c.name)
			}
		}
	}
	queues := 0
	for _, e := range s.entries.list {
		if e.stage == queued {
			queues++
		}
	}
	if waiting != queues || tries != int(s.waitingTries) {
		return fmt.Errorf("%d entries are queued and %d wait, %d of them tries; %d are counted", queues, waiting, tries, s.waitingTries)
	}
	return nil
}

// checkRequests checks that requests and owners find their entries.
func (s *State) checkRequests() error {
	open := map[requests.ID]bool{}
	for id, e := range s.requests.All() {
		open[id] = true
		switch {
		case !slices.ContainsFunc(e.requests, func(r request) bool { return r.id == id }):
			return fmt.Errorf("request %d is not one of its entry's", id)
		case e.stage != unsent && s.entries.at(e.serial) != e:
			return fmt.Errorf("request %d is of entry %d in stage %d, which is not known", id, e.serial, e.stage)
		}
	}
	for _, e := range s.entries.list {
		for _, r := range e.requests {
			if !open[r.id] {
				return fmt.Errorf("request %d of entry %d is not open", r.id, e.serial)
			}
		}
	}
	for o, e := range s.owners {
		if ownerOf(e) != o || len(e.requests) == 0 {
			return fmt.Errorf("%+v has the entry %d of %+v, with %d requests", o, e.serial, ownerOf(e), len(e.requests))
		}
	}
	return nil
}

// checkHolders checks that holders is complete, and the rule among the holders of this process: of
// those ahead of one fewer than Permits block it. (A late list may show contenders of other
// processes that have gone, and Permits may have become fewer.)
func (s *State) checkHolders() error {
	n := 0
	for e := range own(s.contenders) {
		if e.stage == held || e.stage == makingMarker {
			n++
			if !slices.Contains(s.holders, &e.contender) {
				return fmt.Errorf("%s holds and is not in holders", e.name)
			}
		}
	}
	if n != len(s.holders) || !slices.IsSortedFunc(s.holders, compareSeq) {
		return fmt.Errorf("%d entries hold; in holders are, perhaps not by number, %d", n, len(s.holders))
	}
	if s.rule.CountUnknown {
		return nil
	}
	for e := range own(s.holders) {
		if e.stage != held || e.downgrade.made {
			continue
		}
		blockers := 0
		for other := range own(s.contenders[:place(s.contenders, e.seq)]) {
			if other.stage == held && s.rule.BlockedBy[e.kind].Has(other.kind) {
				blockers++
			}
		}
		if blockers >= s.rule.Permits {
			return fmt.Errorf("%s holds behind %d that block it", e.name, blockers)
		}
	}
	return nil
}

// checkRest checks the proofs, the list in flight, the watches and the delay.
func (s *State) checkRest() error {
	switch d := s.delay; {
	case s.staleBefore > s.tickedAt || s.tickedAt > s.clock || s.allDoubtedAt > s.clock || s.departuresListedAt > s.clock:
		return fmt.Errorf("proofs %+v at %d", s.proofs, s.clock)
	case s.listing.again && s.listing.serial == 0:
		return fmt.Errorf("a list is to be repeated, and none is in flight")
	case d != nil && d.entry.stage != makingMarker && d.entry.stage != leaving:
		return fmt.Errorf("the held marker is of an entry in stage %d", d.entry.stage)
	case s.contention.later && s.contention.set:
		return fmt.Errorf("a watch that is set is to be set at the next Tick")
	case s.contention.requested && s.listing.serial == 0:
		return fmt.Errorf("a list is to set a watch, and none is in flight")
	case len(s.contention.deleteAfter) > 0 && !s.contention.requested:
		return fmt.Errorf("%d nodes wait for no list", len(s.contention.deleteAfter))
	case s.lastDeleted != nil && (s.lastDeleted.stage != leaving || !s.lastDeleted.inDirectory):
		return fmt.Errorf("the node deleted last is in stage %d", s.lastDeleted.stage)
	}
	for _, e := range s.entries.list {
		if s.delay == nil && e.stage == makingMarker {
			return fmt.Errorf("entry %d makes its held marker, and no effect for it is under way", e.serial)
		}
	}
	for name, w := range s.watches {
		if name == "" || w.serial > s.lastSerial {
			return fmt.Errorf("watch %+v of %q", *w, name)
		}
	}
	for _, c := range s.contenders {
		if w := s.watches[c.name]; w != nil && w.active && s.session != Connected {
			return fmt.Errorf("the watch of %s counts without a connection", c.name)
		}
	}
	return nil
}
