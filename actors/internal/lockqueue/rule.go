package lockqueue

import (
	"slices"

	"github.com/actorlock/actorlock/actors/queue"
)

// The questions of the State to the rule.

// downgradesFrom returns the kinds of the downgrades that a contender of a kind may have left at
// its place when it went.
func downgradesFrom(r queue.Rule, of queue.Kind) (kinds queue.KindSet) {
	for k, held := range r.Reenter {
		if queue.Kind(k) != of && held.Has(of) {
			kinds |= queue.Kinds(queue.Kind(k))
		}
	}
	return kinds
}

// keepsWaiting reports whether a contender of kind ahead that waits keeps each later one of kind behind
// waiting: the later one must wait for all that it waits for, or for itself.
func keepsWaiting(r queue.Rule, ahead, behind queue.Kind) bool {
	return r.BlockedBy[ahead]&^r.BlockedBy[behind] == 0 || r.Permits == 1 && r.BlockedBy[behind].Has(ahead)
}

// blockersAhead returns how many contenders ahead block an entry.
func (s *State) blockersAhead(e *entry) (n int) {
	for kind, list := range s.byKind {
		if s.rule.BlockedBy[e.kind].Has(queue.Kind(kind)) {
			n += place(list, e.rank)
		}
	}
	return n
}

// nearestBlockers returns the contenders that block an entry, nearest first. As many as the rule has Permits keep it
// waiting. If there is one more, which is the last that nearestBlockers returns, a single departure is not enough. It
// returns none if all contenders are of this process, whose departures need no watch.
func (s *State) nearestBlockers(e *entry) []*contender {
	if s.foreign == 0 {
		return nil
	}
	s.blockers = s.blockers[:0]
	for kind, list := range s.byKind {
		if s.rule.BlockedBy[e.kind].Has(queue.Kind(kind)) {
			end := place(list, e.rank)
			s.blockers = append(s.blockers, list[max(end-s.rule.Permits-1, 0):end]...)
		}
	}
	slices.SortFunc(s.blockers, func(a, b *contender) int { return b.rank.compare(a.rank) })
	return s.blockers[:min(len(s.blockers), s.rule.Permits+1)]
}
