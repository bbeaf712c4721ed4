package lockqueue

import (
	"math"
	"slices"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// grantEligible grants the contenders that may hold, and has the next change noticed for those of
// nextToHold that may not. The contenders behind these wait for them, or for what they wait for.
func (s *State) grantEligible() {
	for slices.ContainsFunc(s.nextToHold(), func(c *contender) bool { return s.tryGrant(c.entry) }) {
	}
}

// tryGrant grants an entry of nextToHold if nothing blocks it and its node is proven to exist. It
// reports whether this entry or another one stopped waiting, so that others are next.
func (s *State) tryGrant(e *entry) bool {
	if e.rank.major > s.completeThrough || !e.listed || s.byCzxid && (s.awaitsEarlierCreate(e) || s.behindUnlisted(e)) {
		s.listGap(e)
		return false
	}
	// One blocker more than needed says whether there are more.
	s.blockers = s.rule.Blockers(s.blockers[:0], place(s.contenders, e.rank), e.kind,
		func(i int) queue.Kind { return s.contenders[i].kind }, s.rule.Permits+1)
	switch {
	case len(s.blockers) >= s.rule.Permits:
		return !s.awaitBlockers(e, s.blockers)
	case s.rule.BlockedBy[e.kind]&s.unseenDowngrades != 0:
		// The contender ahead may have left a downgrade at its place.
		if s.listing.serial == 0 {
			s.requestList()
		}
		return false
	case s.delay.entry != nil: // an effect about the held marker is under way
		return false
	case !s.proven(e):
		s.prove(e)
		return false
	}
	s.grant(e)
	return true
}

func (ev Resize) apply(s *State) {
	s.rule.Permits = ev.Permits
	s.grantEligible()
}

func (s *State) grant(e *entry) {
	s.stopWaiting(e)
	if s.rule.Delay {
		s.createHeldMarker(e)
		return
	}
	s.hold(e)
}

func (s *State) hold(e *entry) {
	e.stage = held
	for i := range e.requests {
		s.grantRequest(e, e.requests[i].id)
	}
	s.notifyRevoked(e)
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

// behindUnlisted reports whether a contender of this process is ahead of e that no list has shown.
func (s *State) behindUnlisted(e *entry) bool {
	return slices.ContainsFunc(s.unlisted(), func(o *entry) bool { return o.rank.compare(e.rank) < 0 })
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

// awaitBlockers has the departure of blockers noticed and returns true. It returns false if it had
// to refuse tries instead. blockers are indexes in the list, nearest first. With more of them than
// Permits, e cannot be next; e is crowded if, besides, all of them are of other processes.
func (s *State) awaitBlockers(e *entry, blockers []int) (blocked bool) {
	more := len(blockers) > s.rule.Permits
	crowded := more && !slices.ContainsFunc(blockers, func(i int) bool { return s.contenders[i].entry != nil })
	ask, others, seenSince := s.unwatched(blockers[:min(len(blockers), s.rule.Permits)])
	if s.waitingTries > 0 && s.refuseTries(e, seenSince) {
		return false
	}
	if !others {
		if e.provenAt < max(s.doubtedAt, e.doubtedAt) { // e need not wait for the proof when its turn comes
			s.prove(e)
		}
		return true
	}
	switch {
	case s.listing.serial != 0:
		return true
	case len(ask) > 0 && more && e.provenAt < max(s.doubtedAt, e.doubtedAt):
		// The contender that e waited for is gone, and several were ahead: a list shows how many
		// have gone with it.
		s.requestList()
		return true
	case !crowded && s.watches[e.name] == nil:
		// A contender that may be next after one of another process must notice when its own node
		// goes. A crowded one is not next: it comes here again when the nearest one ahead goes,
		// mostly with a list that shows its node.
		ask = append(ask, e.name)
	}
	if len(ask) > 0 {
		s.requestWatch(ask)
	}
	return true
}

// unwatched returns the names of the blockers of other processes that have no watch, reports whether
// there are blockers of other processes, and returns the clock at which all of them were last known to
// exist.
func (s *State) unwatched(blockers []int) (names []string, others bool, seenSince uint64) {
	seenSince = math.MaxUint64
	for _, i := range blockers {
		c := s.contenders[i]
		if c.entry != nil {
			continue // its leave calls grantEligible again
		}
		others = true
		w := s.watches[c.name]
		if w == nil {
			names = append(names, c.name)
		}
		if w == nil || !w.active {
			seenSince = min(seenSince, c.provenAt)
		}
	}
	return names, others, seenSince
}

// refuseTries refuses the tries of e, and of each contender that must wait at least as long as e.
// It reports whether there were any. seenSince is the clock at which the contenders ahead were last
// known to exist. A try that came later stays: the lock may have become free in between.
func (s *State) refuseTries(e *entry, seenSince uint64) (any bool) {
	for k := range s.waiting {
		if !keepsWaiting(s.rule, e.kind, queue.Kind(k)) {
			continue
		}
		for i := place(s.waiting[k], e.rank); i < len(s.waiting[k]); {
			w := s.waiting[k][i].entry
			if w.sentAt > seenSince {
				i++
				continue
			}
			for j := len(w.requests) - 1; j >= 0; j-- {
				if r := w.requests[j]; r.try {
					s.drop(w, r.id)
					s.refuse(r.id, requests.NotAcquired)
					any = true
				}
			}
			if len(w.requests) > 0 {
				i++
				continue
			}
			s.leave(w) // takes w out of waiting
		}
	}
	return any
}
