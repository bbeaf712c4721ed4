package main

import (
	"context"
	"fmt"
)

var (
	cold1   = cold("cold", 1)
	cold64  = cold("cold64", 64)
	cold256 = cold("cold256", 256)
)

// cold returns a scenario of clients that use each path once.
func cold(name string, clients int) scenario {
	return scenario{
		name: name,
		about: fmt.Sprintf("Clients: %d, of one process. Each acquires and releases a lock on a path that was not used before, and goes on "+
			"to another such path. The time includes the making of the directory.", clients),
		fits: func(p peer) bool { return p.reference },
		run: func(ctx context.Context, t *trial) (run, error) {
			return t.load(ctx, 1, load{clients: clients, locks: clients, fresh: true}, t.length)
		},
	}
}
