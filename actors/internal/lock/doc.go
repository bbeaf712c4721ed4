// Package lock holds what the actors of all recipes have in common: each embeds an [Actor], which
// deals with owners.
//
// A state machine decides; the actor around it turns messages into events and performs the effects.
// The Actor is the outer half of that: it keeps the open requests, receives the messages of service
// Lock, answers, retires when it is idle, and answers what comes after the end. The inner half is a
// [Behavior]: package recipes has one for each recipe. Package manager starts the actors.
//
// To be read in this order: behavior.go, actor.go (an Acquire, its Granted and its Lost),
// request.go and table.go (open requests), answers.go (also Cancel, Release and lost grants),
// timers.go (how long a request waits and holds, and what is counted of it), senders.go (requests of
// other actors), own.go (messages of the manager and of an actor to itself, and its end).
package lock
