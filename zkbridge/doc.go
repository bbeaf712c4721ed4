// Package zkbridge owns the connection to ZooKeeper. One actor, the bridge, takes
// the requests of lock actors, and turns replies and watch events into messages
// to them; bridge.proto in package messages is the conversation.
//
// A [Bridge] numbers its ZooKeeper sessions: an epoch is one session, from the
// moment it is established until it is lost. Requests name the epoch that they
// are meant for and never run in another one.
//
// All blocking is kept out of the actor: calls to ZooKeeper run on a bounded
// number of goroutines, whose results come back as messages.
package zkbridge
