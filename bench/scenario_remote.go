package main

import (
	"context"
	"slices"
)

// remoteNames are the names of remoteScenarios.
var remoteNames = []string{"remote", "remote-many256", "remote-hot64"}

// remoteScenarios measure clients of a lock server beside clients of ZooKeeper. The lock server is one more process.
func remoteScenarios() []scenario {
	loads := []load{{clients: 1, locks: 1, acknowledged: true}, {clients: 256, locks: 256}, {clients: 64, locks: 1, connections: 64}}
	abouts := []string{
		"one client acquires and releases a lock that no other wants, and waits for each release.",
		"256 clients of one process, each with a lock of its own; those of a lock server share one stream.",
		"64 clients with a session or a stream each pass one lock around. Each asks again as soon as it has released.",
	}
	var all []scenario
	for i, name := range remoteNames {
		all = append(all, scenario{name: name, about: abouts[i] + " A lock server is one more process; a grpc call is one round trip to it.",
			fits: func(p peer) bool { return p.name == "actorlock" || p.name == "zklock" || slices.Contains(p.only, name) },
			run: func(ctx context.Context, t *trial) (run, error) {
				return t.load(ctx, 1, loads[i], t.length)
			}})
	}
	return all
}
