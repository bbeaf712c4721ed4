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

// keepsWaiting reports whether no contender of kind k may hold while one of kind w waits ahead
// of it: a k has to wait for all that a w waits for, or for the w itself.
func keepsWaiting(r queue.Rule, w, k queue.Kind) bool {
	return r.BlockedBy[w]&^r.BlockedBy[k] == 0 || r.Permits == 1 && r.BlockedBy[k].Has(w)
}

// nearTheEnd reports whether one of the names is a contender's whose number may not be its alone.
func nearTheEnd(r queue.Rule, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		seq, _, ok := r.Parse(name)
		return ok && queue.NearEnd(seq)
	})
}
