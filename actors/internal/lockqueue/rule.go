package lockqueue

import (
	"slices"

	"github.com/actorlock/actorlock/actors/queue"
)

// The questions of the State to the rule.

// downgradesFrom returns the kinds of the downgrades that a contender of a kind may have left at
// its place when it went.
func downgradesFrom(r *queue.Rule, of queue.Kind) (kinds queue.KindSet) {
	for k, held := range r.Reenter {
		if queue.Kind(k) != of && held.Has(of) {
			kinds |= queue.Kinds(queue.Kind(k))
		}
	}
	return kinds
}

// keepsWaiting reports whether a contender of kind ahead that waits keeps each later one of kind
// behind waiting: the later one must wait for all that it waits for, or for itself.
func keepsWaiting(r *queue.Rule, ahead, behind queue.Kind) bool {
	return r.BlockedBy[ahead]&^r.BlockedBy[behind] == 0 || r.Permits == 1 && r.BlockedBy[behind].Has(ahead)
}

// kindsDiffer reports whether a kind is not blocked by all kinds.
func kindsDiffer(r *queue.Rule) bool {
	return slices.ContainsFunc(r.BlockedBy, func(set queue.KindSet) bool { return set != 1<<len(r.BlockedBy)-1 })
}

// ofKind returns the contenders of a kind, by number. If each kind is blocked by all, it returns
// all contenders for the first kind and none for the others, because then nothing depends on which
// kind they are of.
func (s *State) ofKind(kind queue.Kind) []*contender {
	switch {
	case s.kindsDiffer && len(s.byKind) > 0:
		return s.byKind[kind]
	case !s.kindsDiffer && kind == 0:
		return s.contenders
	}
	return nil
}

// blockersAhead returns how many contenders ahead of a number block one of a kind.
func (s *State) blockersAhead(of queue.Kind, seq int64) (n int) {
	for kind := range queue.Kind(len(s.rule.BlockedBy)) {
		if s.rule.BlockedBy[of].Has(kind) {
			n += place(s.ofKind(kind), seq)
		}
	}
	return n
}

// nearestBlockers returns the contenders that block an entry, nearest first. As many as the rule
// has Permits keep it waiting. If there is one more, which is the last that nearestBlockers
// returns, a single departure is not enough. It returns none if all contenders are of this process,
// whose departures need no watch.
func (s *State) nearestBlockers(e *entry) []*contender {
	if s.foreign == 0 {
		return nil
	}
	s.blockers = s.blockers[:0]
	for kind := range queue.Kind(len(s.rule.BlockedBy)) {
		if s.rule.BlockedBy[e.kind].Has(kind) {
			list := s.ofKind(kind)
			end := place(list, e.seq)
			s.blockers = append(s.blockers, list[max(end-s.rule.Permits-1, 0):end]...)
		}
	}
	slices.SortStableFunc(s.blockers, compareSeq)
	slices.Reverse(s.blockers)
	return s.blockers[:min(len(s.blockers), s.rule.Permits+1)]
}
