// Package zkconn connects to ZooKeeper: it finds the servers, opens a session, keeps it alive, and
// sends requests over the connection. Of go-zookeeper it has only types, errors and codes.
//
// A [SessionConn] is one session and its connections, one after the other. It posts what happens to
// the session as events, and its user decides what follows. A [Client] sends requests. The package
// knows nothing of locks, of batches, or of the bridge's actor.
//
// The files, in reading order:
//
//   - chroot.go: the path in front of all others.
//   - config.go: what a connection needs to know.
//   - errors.go, right.go: what an error says about the request that got it.
//   - op.go, codec.go: the operations of a transaction, and the messages of ZooKeeper's protocol.
//   - jitter.go, hostlist.go, resolver.go, dial.go: which server is dialed, when, and how.
//   - conn.go, handshake.go, requests.go: one connection, how it opens or resumes the session, and the
//     requests on it.
//   - sessionconn.go: the session and its connections.
//   - deadline.go, clock.go, clock_steps.go: until when the session is believed in, and by which clock.
//   - optional.go, probe.go: the requests that not every server knows, and how the client finds out.
//   - client.go, multiread.go, noderead.go, watchagain.go: the requests that the bridge sends; directory.go:
//     how it makes a directory.
//   - closesession.go: how a session that was lost is closed.
package zkconn
