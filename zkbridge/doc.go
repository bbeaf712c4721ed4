// Package zkbridge owns the connection to ZooKeeper. One actor, the bridge, handles the requests of
// lock actors, and sends them answers and watch events as messages; bridge.proto in package
// messages is the conversation.
//
// An epoch is one ZooKeeper session. The [Bridge] numbers it when it begins to open the session;
// subscribers hear of it from the moment the session is established until it is lost. Requests name
// their epoch and never run in another one. A session is CONNECTED, or SUSPENDED as long as it has
// no connection, until it is LOST. If rights allow it, the session has one session node, below
// [GenerationDirectory]. Each batch that creates contenders also writes that node: the results of
// creates in a transaction have no czxid, and the result of the write has the zxid of the
// transaction, which is the czxid of all nodes that it creates.
//
// The actor does not block: it writes requests without waiting, and the goroutine that reads the
// connection sends it the answers as messages. Work that takes several requests, one after the
// other, runs on a bounded number of goroutines. Package internal/zkconn is the connection; of
// go-zookeeper the bridge has only types, errors and codes, which users know.
//
// The page SESSIONS.md shows what the deadline of a session proves, what follows after a loss,
// what the bridge does when servers disagree, and about nodes that it cannot delete.
//
// # The files, in reading order
//
//   - session.go, config.go, auth.go: the session as others see it, and the configuration of a bridge.
//   - bridge.go, stats.go: Bridge, which other goroutines call, and its counts.
//   - internals.go, call.go: Internals, for the packages of locks.
//   - ops.go, multi.go, getnode.go, readlimit.go, survey.go, atomiccreate.go, generation.go, promise.go,
//     sessionstream.go: what else these do.
//   - connection.go, outage.go: what Bridge and the actor share, such as the present session.
//   - actor.go: the actor, and what an epoch needs of it.
//   - state.go: how the subscribers and others learn of the state.
//   - accept.go, room.go, newcreates.go: which requests the bridge accepts, how senders of thousands of
//     requests wait, and creates in directories that may be missing, until the writer can take them.
//   - creates.go, requests.go, transact.go: the messages of lock actors.
//   - sessionchange.go, actorepoch.go, lostsession.go, actorend.go: a change of the session, such as its loss,
//     how the actor opens epochs and ends them, how it closes lost sessions, and how it ends itself.
//   - mailbox.go: the way of a message to these.
//
// Package internal/epoch is what the bridge does within one session, and tells the actor of its events;
// package internal/generation knows when tokens would go back. Package internal/requests reads for lock actors and for goroutines that wait, package internal/writer
// creates and deletes nodes, package internal/watches knows whom the change of a node wakes, package
// internal/zkconn is the connection, package internal/reply answers requests, and package internal/jobs
// runs work, so much at a time. Each knows only those named after it. Package zkpath has the paths for all.
//
// A program that brings a bridge of its own needs [Open], [Config], [Bridge], [Session] and the errors.
// [Internals], and what stands in the arguments and results of its methods only, is for the packages of locks.
package zkbridge
