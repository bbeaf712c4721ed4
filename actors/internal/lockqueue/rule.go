package lockqueue

import (
	"slices"

	"github.com/actorlock/actorlock/actors/queue"
)

// Questions to a rule.

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
