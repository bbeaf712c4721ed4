// Package zkbridge owns the connection to ZooKeeper. One actor, the bridge, handles the requests of
// lock actors, and sends them answers and watch events as messages; bridge.proto in package messages
// is the conversation.
//
// An epoch is one ZooKeeper session. The [Bridge] numbers it when it begins to open the session;
// subscribers hear of it from the moment the session is established until it is lost. Requests name their
// epoch and never run in another one. A session is CONNECTED, or SUSPENDED as long as it has no
// connection, until it is LOST. If rights allow it, the session has one session node, below [GenerationDirectory].
// Each batch that creates contenders also writes that node: the results of creates in a transaction have no czxid,
// and the result of the write has the zxid of the transaction, which is the czxid of all nodes that it
// creates.
//
// The actor does not block: it writes requests without waiting, and the goroutine that reads the
// connection sends it the answers as messages. Work that takes several requests, one after the other,
// runs on a bounded number of goroutines. go-zookeeper finds the servers, opens the session, keeps it
// alive and closes it. Requests do not go through go-zookeeper: package internal/zkconn writes them to the
// same connection, and reads their answers.
//
// # When a session is lost
//
// ZooKeeper's leader counts the timeout from when it last heard of the session. Its followers answer
// pings and reads by themselves and report every half tickTime. A follower that is cut off from the
// leader goes on answering for up to syncLimit ticks, and hangs up then. In a handshake a follower asks
// the leader. Pings come every third of the timeout.
//
// A bridge takes its session for lost by its own clock, without reaching a server. [Session].Deadline is
// heard + SessionTimeout - Margin, where heard depends on the connection:
//
//   - With a connection, heard = answered, which is when the newest message that has an answer was sent.
//   - Without one, heard = max(handshake, min(answered, disconnected - SessionTimeout/3)). handshake is when
//     the last answered handshake was begun: its follower has asked the leader. disconnected is when this
//     process lost the connection to its follower.
//
// Why disconnected - SessionTimeout/3: pings come every SessionTimeout/3, so the leader has heard of a
// ping that was sent at most that long before the follower's last report. The bridge does not know when
// that report was, and takes disconnected for it. A follower that still reaches the leader reports once
// more after this process has lost the connection, so its last report is not before disconnected. A
// follower that had lost the leader made its last report up to (syncLimit + 1/2) * tickTime before
// disconnected, and one that crashed up to tickTime/2: Margin has to cover that.
//
// So the deadline proves this as long as the process is not paused:
//
//   - Connected to a single server, to the leader, or to a follower in touch with it: the session
//     outlives the deadline by Margin, which covers clocks that run at different speeds. If the follower
//     crashes, the session outlives the deadline by Margin - tickTime/2.
//   - Connected to a follower that is cut off: it goes on answering, but then hangs up, and the deadline
//     without a connection counts. The hang-up and that deadline come before the session can expire if
//     Margin is at least (syncLimit + 1/2) * tickTime. Since Margin is half of SessionTimeout at most,
//     that takes a SessionTimeout of (2 * syncLimit + 1) * tickTime or more: with ZooKeeper's defaults,
//     2 s and 5, a Margin of 11 s and a SessionTimeout of 22 s. With a SessionTimeout of 30 s and that
//     Margin, 30 - 11 - 30/3 = 9 s are left to reconnect.
//   - If work stops as soon as the session is SUSPENDED: the leader keeps the session for two thirds of
//     SessionTimeout at least after it has lost the follower, which hangs up within (syncLimit + 1/2) *
//     tickTime, 11 s with the defaults. So any Margin suffices if two thirds of SessionTimeout are more than
//     that: a SessionTimeout of more than 16.5 s.
//
// The deadline proves nothing if a follower that is cut off from the leader also falls silent, because it
// is frozen or cut off from its clients, too. A Margin that is greater by a third of SessionTimeout
// covers that. The deadline proves nothing of a process that is itself paused. Then, and beside a silent
// follower if Margin is smaller, only fencing tokens, and transactions that check the holder's node,
// protect.
//
// # After a loss
//
// The servers may keep a session that is lost here: for up to SessionTimeout after they last heard of
// it, and for that long again after a restart, which makes them count anew. Meanwhile its nodes keep
// locks from all clients. So the bridge resumes the lost session by its password, on a separate
// connection, and closes it, which deletes all its nodes at once. It waits for Margin after it has told
// its subscribers of the loss, and until it is connected with its next session. After 20 attempts without
// success it leaves the session to expire. [Bridge.Close] tries once to close lost sessions if there is a
// connection, without waiting for Margin.
//
// So a process that was cut off cannot acquire these locks anew before it is connected again and Margin
// has passed since the loss. Before the loss, as long as the session is SUSPENDED, it keeps its grants. A
// process that has ended has lost the password of its session: its locks are free when the servers
// expire the session.
//
// # When servers disagree
//
// A follower may show a node for good that the leader does not have, and a contender behind it would wait for
// ever. So the bridge asks the leader for the watched nodes that have not changed for a minute, or for
// SessionTimeout if that is longer: by a transaction that checks up to 128 of them and changes nothing. If the
// leader does not have a node, and the server still shows it afterwards, the log names server and node at level
// ERROR, and the bridge leaves that server for another of Config.Servers with the same session. The bridge
// cannot notice a server that lacks a node which the leader has: its clients may take a lock that is held, and
// only fencing tokens distinguish them from the holder.
//
// # Nodes that the bridge cannot delete
//
// A node that ZooKeeper does not delete, since a right is missing or no answer is clear, holds its lock
// until it is gone. The bridge answers the request with Failed and goes on trying while the session
// lives; the log names the node at level ERROR. The bridge does not end the session, which would cost
// the holders of all other locks theirs. It does end it if only that deletes a node: if the answer to a create
// is lost, the right to READ the directory is missing, and the server cannot list the session's nodes, as
// before ZooKeeper 3.6. A bridge that panics ends it, too: it publishes ENDED at once, and
// closes the session Margin later.
//
// # The files, in reading order
//
//   - session.go: the states of a session, and what changes them.
//   - config.go, auth.go, path.go: the configuration of a bridge, and which paths it accepts.
//   - bridge.go, sessionstream.go, stats.go: Bridge, which other goroutines call, and its counts.
//   - actor.go: the actor, and the way of a Create and of a Watch through it.
//   - sessionchange.go: a change of the session, such as its loss, and how the subscribers learn of it.
//   - actorepoch.go, actorend.go: how the actor opens epochs and ends them, and how it ends itself.
//   - epoch.go, workqueue.go, timers.go: all that the bridge does within one session, how much at a time, and when.
//   - sessionnode.go, generationhistory.go, generation.go, losthistory.go: how an epoch gets ready for
//     requests: the session node is made, and the generation is read, and raised if history was lost.
//   - requests.go: the messages of lock actors, and which of them the bridge accepts.
//   - atomiccreate.go: several creates in one transaction.
//   - watches.go, reads.go: lists, and watches of nodes.
//   - call.go, ops.go, multi.go, transact.go, getnode.go: transactions and reads of goroutines that wait.
//   - leadercheck.go, lostsession.go: what the bridge does by itself.
//
// Package internal/writer creates and deletes nodes, package internal/zkconn is the connection, and
// package internal/reply answers requests. Each knows only those named after it.
package zkbridge
