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
// runs on a bounded number of goroutines. go-zookeeper finds the servers, opens the session and closes
// it. Requests and pings do not go through go-zookeeper: package internal/zkconn writes them to the same
// connection, and reads their answers.
//
// # When a session is lost
//
// ZooKeeper's leader counts the timeout from when it last heard of the session. Its followers
// answer pings and reads by themselves and report every half tickTime. A follower that is cut off
// from the leader goes on answering for up to syncLimit ticks, and hangs up then. In a handshake a
// follower asks the leader. The bridge sends a ping every sixth of the timeout, in place of
// go-zookeeper's.
//
// A bridge ends its session, as a loss, when the generation of tokens changes: see
// [GenerationPath].
//
// A bridge takes its session for lost by its own clock, without reaching a server. The clock goes
// on while the machine is suspended. [Session].Deadline is heard + SessionTimeout, with or without
// a connection, where
//
//   - heard = min(proven, newest - Margin);
//   - newest is when the newest message that has an answer was sent, over the present connection or
//     the last one;
//   - proven is when the newest message was sent of those whose answers had arrived over that
//     connection by newest - Margin, or when the last answered handshake was begun if that is
//     later.
//
// Why proven: a follower has answered the message of newest, so it had not hung up when that was
// sent. It was in touch with the leader at most (syncLimit + 1/2) * tickTime before. If Margin is
// as long, the follower has reported after newest - Margin, and what it had answered by then is in
// a report. So the leader has heard of a message that was sent at proven or later. Nothing in this
// depends on how regularly this process sends messages, nor on when it learns that the connection
// is lost. For clocks that run at different speeds the bridge takes off 0.5 % of SessionTimeout from
// proven, and adds 0.5 % to the Margin in it.
//
// So the deadline proves this, also of a process that was paused, as soon as it looks at the clock:
//
//   - Connected to a single server, to the leader, or to a follower in touch with it: the session
//     outlives the deadline by Margin. If the follower crashes, the session outlives the deadline by
//     Margin - SessionTimeout/6: the leader may not have heard of the last ping.
//   - Connected to a follower that is cut off, whether it hangs up, falls silent, or is out of
//     reach: the session does not expire before the deadline if Margin is at least (syncLimit +
//     1/2) * tickTime. Since Margin is half of SessionTimeout at most, that takes a SessionTimeout
//     of (2 * syncLimit + 1) * tickTime or more: with ZooKeeper's defaults, 2 s and 5, a Margin of
//     11 s and a SessionTimeout of 22 s.
//   - If work stops as soon as the session is SUSPENDED: the leader keeps the session for five
//     sixths of SessionTimeout at least after it has lost the follower, which hangs up within
//     (syncLimit + 1/2) * tickTime, 11 s with the defaults. So any Margin suffices if five sixths
//     of SessionTimeout are more than that, a SessionTimeout of more than 13.2 s, as long as the
//     process is not paused.
//
// Pings come every sixth of the timeout, so at the loss of the connection the deadline is 0.64
// SessionTimeout - Margin away or more, and up to SessionTimeout - Margin if the process sends
// other messages: two thirds less the error of the clocks, and less a thirty-second of Margin, since
// the bridge keeps so many messages in mind. With a SessionTimeout of 30 s and a Margin of 11 s, 8 s
// are left to reconnect. A connection on which nothing comes for half of SessionTimeout is given up.
//
// The deadline proves nothing of work that a paused process goes on with before it looks at the
// clock, nothing if Margin is smaller, and nothing of a link between follower and leader that fails
// in one direction after the other. Then only fencing tokens, and transactions that check the
// holder's node, protect.
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
//   - sessionnode.go, generation.go, losthistory.go: how an epoch gets ready for requests: the
//     session node is made, and the generation is read, and raised if history was lost.
//   - requests.go: the messages of lock actors, and which of them the bridge accepts.
//   - atomiccreate.go: several creates in one transaction.
//   - watches.go, reads.go: lists, and watches of nodes.
//   - call.go, ops.go, multi.go, transact.go, getnode.go: transactions and reads of goroutines that wait.
//   - leadercheck.go, lostsession.go: what the bridge does by itself.
//
// Package internal/writer creates and deletes nodes, package internal/zkconn is the connection, and
// package internal/reply answers requests. Each knows only those named after it.
package zkbridge
