package main

import "context"

var uncontended = inShortRounds(inOneProcess("uncontended",
	"One client acquires and releases in turn, and waits until the server has acknowledged each release. Rounds are short, so that p99 is "+
		"close to the longest of a round.",
	load{clients: 1, locks: 1, acknowledged: true}))

var hot64 = scenario{
	name:  "hot64",
	about: "64 clients of one process share one lock; each asks again as soon as it has released.",
	fits:  func(peer) bool { return true },
	run: func(ctx context.Context, t *trial) (run, error) {
		r, err := t.load(ctx, 1, load{clients: 64, locks: 1}, t.length)
		if err != nil || !t.peer.shares {
			return r, err
		}
		own, err := t.load(ctx, 1, load{clients: 64, locks: 1, ownObjects: true}, t.length/2)
		r.Violations += own.Violations
		r.Extra[ownObjectsKey] = own.OpsPerSec
		return r, err
	},
}

// ownObjectsKey is the field of a peer that is faster if clients do not share its lock object.
const ownObjectsKey = "ops_per_sec_own_objects"

var many256 = inOneProcess("many256",
	"256 clients of one process have a lock each.",
	load{clients: 256, locks: 256})

// many256Acknowledged is many256 with clients that wait: no transaction has both the deletion of a
// node and the next create.
var many256Acknowledged = inOneProcess("many256-acknowledged",
	"256 clients of one process have a lock each, and wait until the server has acknowledged each release, as `Unlock` does.",
	load{clients: 256, locks: 256, acknowledged: true})
