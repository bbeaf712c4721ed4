package machinetest

import "github.com/actorlock/actorlock/actors/queue"

// IndependentKinds is a rule of two kinds, each of which excludes only itself.
func IndependentKinds() queue.Rule {
	return queue.Rule{Permits: 1, OwnMarkersOnly: true, BlockedBy: []queue.KindSet{queue.Kinds(0), queue.Kinds(1)}, Markers: []string{"-a-", "-b-"}}
}

// IntentionLocks is the rule of the locks of that name, on a whole and its parts: IS, IX, S, X.
func IntentionLocks() queue.Rule {
	const is, ix, s, x = 0, 1, 2, 3
	return queue.Rule{
		Permits: 1, OwnMarkersOnly: true,
		BlockedBy: []queue.KindSet{is: queue.Kinds(x), ix: queue.Kinds(s, x), s: queue.Kinds(ix, x), x: queue.Kinds(is, ix, s, x)},
		Markers:   []string{"-is-", "-ix-", "-s-", "-x-"},
		Reenter:   []queue.KindSet{is: queue.Kinds(is, ix, s, x), ix: queue.Kinds(ix, x), s: queue.Kinds(s, x), x: queue.Kinds(x)},
	}
}
