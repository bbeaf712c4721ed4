// Package manager starts the actors of locks, one for each path, and holds what they have in
// common: the bridge, the log, limits and counts. It does not know how an actor works.
//
// An [Entry] joins the two. The manager starts its actor by NewActor of its [Recipe], and then
// sends it the messages in entry.go. The actor calls the [Manager]: Admit for each request of an
// owner and UncountRequest at its end, RetireIfQuiet at each Tick, Forget and Stopped at its own
// end, StartCleanup and CleanedUp if it leaves nodes behind.
//
// To be read in this order: recipe.go, entry.go, manager.go, ticks.go, limits.go (how
// many requests may be open, and none once the locks are drained), stats.go and open.go (what a
// process has), cleanup.go (nodes that a stopped actor leaves), sessionlog.go, holder.go
// (what a node says about its holder), watch.go (the end of an actor of the program).
package manager
