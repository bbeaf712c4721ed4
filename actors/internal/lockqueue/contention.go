package lockqueue

import (
	"slices"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// Those who hold the lock may want to know when others wait for it.

// outlook is what is done to notice others. A watch on the directory must not be left
// behind, and there is no way to take one back: it ends with the next change, which
// the deletion of the holder's own node is at the latest.
type contentionWatch struct {
	wanted      bool     // somebody has ever asked for it
	set         bool     // a watch is set, or being set, and nothing has come of it
	requested   bool     // the list in flight sets it
	deleteAfter []*entry // to be deleted when that has arrived, not earlier
}

// lookOut tells those who hold and want to know that others wait. If none do, it sees
// to it that the coming of one is noticed. It is called after every event.
func (s *State) watchContention() {
	if !s.contention.wanted {
		return
	}
	for c := range own(s.contenders[:s.endOfHolders()]) {
		if c.wantsContention() && s.contended(c) {
			s.notifyContended(c)
		}
	}
	if !s.contention.set && s.awaitsContention() {
		s.requestList()
	}
}

// settled is the place that all of ours that hold come before.
func (s *State) endOfHolders() int {
	next, last := s.nextToHold(), 0
	for k := range s.waiting {
		i := slices.IndexFunc(next, func(w *contender) bool { return keepsWaiting(s.rule, w.kind, queue.Kind(k)) })
		if i < 0 {
			return len(s.contenders)
		}
		last = max(last, place(s.contenders, next[i].rank))
	}
	return last
}

func (c *entry) wantsContention() bool {
	if c.stage != held {
		return false
	}
	for _, r := range c.requests {
		if r.notifyContended {
			return true
		}
	}
	return false
}

// curious tells that somebody holds who does not know whether others wait.
func (s *State) awaitsContention() bool {
	for c := range own(s.contenders[:s.endOfHolders()]) {
		if c.wantsContention() {
			return true
		}
	}
	return false
}

// contended tells that a contender of somebody else waits, for c among others.
func (s *State) contended(c *entry) bool {
	for i := len(s.contenders) - 1; s.foreign > 0 && i >= 0 && s.contenders[i].rank.compare(c.rank) > 0; i-- {
		other := s.contenders[i]
		if other.entry != nil || !s.rule.BlockedBy[other.kind].Has(c.kind) {
			continue
		}
		last := i // what shares its rank and number may have come before it
		for last+1 < len(s.contenders) && s.contenders[last+1].rank == other.rank && s.contenders[last+1].seq == other.seq {
			last++
		}
		s.blockers = s.rule.Blockers(s.blockers[:0], last+1, other.kind, func(j int) queue.Kind {
			if j == i {
				return queue.MaxKinds // does not block itself
			}
			return s.contenders[j].kind
		}, s.rule.Permits)
		if len(s.blockers) == s.rule.Permits {
			return true
		}
	}
	return false
}

func (s *State) notifyContended(c *entry) {
	for i := range c.requests {
		if r := &c.requests[i]; r.notifyContended {
			r.notifyContended = false
			s.effect(Effect{Kind: NotifyContended, ID: r.id})
		}
	}
}

// watchDirectory tells whether the list that is about to be asked for is to set a watch.
func (s *State) takeDirectoryWatch() bool {
	if !s.contention.wanted || s.contention.set || !s.awaitsContention() {
		return false
	}
	s.contention.set, s.contention.requested = true, true
	return true
}

// arrive notes that the list in flight has arrived; set tells whether a watch stands
// if it was to set one.
func (s *State) listArrived(set bool) {
	if !s.contention.requested {
		return
	}
	before := s.contention.deleteAfter
	s.contention.requested, s.contention.deleteAfter = false, nil
	s.contention.set = s.contention.set && set
	for _, c := range before {
		if c == s.delay.entry {
			s.requestMarker(DeleteWithHeldMarker)
		} else {
			s.deleteNode(c)
		}
	}
}

// unseen is for a directory that cannot be listed: as far as those know who hold,
// others may wait.
func (s *State) assumeContended(e Failed) {
	if !s.contention.requested {
		return
	}
	s.listArrived(false)
	if e.Epoch != s.epoch || e.Reason == requests.SessionLost {
		return
	}
	for c := range own(s.contenders[:s.endOfHolders()]) {
		if c.wantsContention() {
			s.notifyContended(c)
		}
	}
}
