package main

import (
	"context"
	"slices"
)

var rw90 = ofRecipe("rw90", "64 clients of one process share one read-write lock; each reads nine times, then writes, and asks again as soon as "+
	"it has released. No client may be inside together with a writer.", load{clients: 64, locks: 1, recipe: readWrite})

var semaphore3 = ofRecipe("semaphore", "30 clients of one process ask for one of 3 permits; each asks again as soon as it has released.",
	load{clients: 30, locks: 1, recipe: semaphore})

// ofRecipe is inOneProcess for the peers that have the recipe of the load.
func ofRecipe(name, about string, l load) scenario {
	s := inOneProcess(name, about, l)
	s.fits = func(p peer) bool { return p.has(l.recipe) }
	return s
}

// herdSize is the number of sessions in scenario simple-herd.
const herdSize = 30

var simpleHerd = scenario{
	name: "simple-herd",
	about: "30 clients with a session each pass one lock around: the mutex, where a release wakes the next in line, and the simple one, where it " +
		"wakes all. Each asks again as soon as it has released. ZooKeeper counts the packets for each hand-off; p50 and p99 are those of a wait.",
	fits: func(p peer) bool { return p.nodeEach() || slices.Contains(p.only, "simple-herd") },
	run: func(ctx context.Context, t *trial) (run, error) {
		return t.load(ctx, 1, load{clients: herdSize, locks: 1, connections: herdSize}, t.length)
	},
}
