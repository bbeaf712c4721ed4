// Package shell holds what the actors of all recipes have in common: a [Manager] starts one actor per path,
// and a [Shell] is the part of each actor that deals with owners.
//
// A state machine decides; the actor around it turns messages into events and performs the
// effects. The shell is the outer half of that actor: it keeps the open requests, receives the
// messages of service Lock, answers, retires an idle actor, and answers what comes after the
// end. The inner half is a [Behavior]: package recipes has one for each recipe.
//
// To be read in this order: recipe.go, entry.go, behavior.go, shell.go (an Acquire, its Granted and
// its Lost), request.go and table.go (open requests), answers.go, release.go, limits.go (how long a
// request waits and holds), lost.go, monitor.go, refusenew.go, senders.go (requests of other actors), holder.go
// (what a node says about its holder), own.go (messages of an actor to itself), overdue.go (a session
// past its deadline), stop.go, bridge.go, manager.go, stats.go, open.go, sessionlog.go, ticks.go,
// cleanup.go (nodes that a stopped actor leaves), watch.go (the end of an actor of the program).
package shell
