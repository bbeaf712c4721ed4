// Package embedded is an in-memory server that speaks the client protocol of
// Apache ZooKeeper 3.8. It runs inside the process, for development and tests:
// all data is gone when it closes, and there is one server, no ensemble.
// Production means a real ensemble.
//
//	server := embedded.Run(t)
//	conn, events, err := zk.Connect([]string{server.Addr()}, 5*time.Second)
//
// # What is served
//
// Sessions with expiry, re-attachment and negotiated timeouts; persistent,
// ephemeral, sequential, container and TTL nodes; all reads and writes with
// ZooKeeper's error codes, zxids and stats; multi and multiRead; one-shot,
// persistent and recursive watches, and their re-registration on reconnect;
// ACLs of the schemes world, auth, digest and ip; the four-letter words ruok,
// stat, srvr, mntr, conf, cons, dump, envi, isro, wchs, wchc and wchp.
//
// Not served: SASL, TLS, quotas, reconfig, read-only mode, super users and
// anything that needs a second server. Known to differ: a check outside of a
// multi is answered, where ZooKeeper 3.8 answers only if it fails; TTL nodes
// need no server option.
//
// # Virtual time
//
// The server keeps time with package time only. With [Config].MemoryOnly and
// [Server.Dial] as the client's dialer, a whole system runs inside a
// testing/synctest bubble, where hours pass in moments.
//
// # Faults
//
// [Server.Inject] makes a chosen request go wrong: a lost reply, a cut
// connection, a delay, a black hole. [Server.Freeze] serves stale reads as a
// lagging follower does. [Server.Expire], [Server.DropConnections] and
// [Server.Pause] act at once.
package embedded
