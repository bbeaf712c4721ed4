// Package remote serves the locks of a process to others: to clients without a ZooKeeper session,
// such as the many processes that one ensemble cannot bear sessions of. The clients reach a
// [LockServer] over gRPC, and [Dial] returns an actors.Locks that works as that of actors.Connect.
//
//	server, err := remote.NewServer(locks, remote.ServerConfig{})
//	streams, err := server.GRPC(certificates)
//	err = streams.Serve(listener)
//
//	locks, err := remote.Dial(ctx, "lock1:7400,lock2:7400", remote.DialConfig{Config: actors.Config{TLS: certificates}})
//
// A client holds what it holds by a lease, which it renews: package lease has the rule, and why no
// two hold at a time. When the lease is over the grants end with ErrSessionLost, as those of a
// process do whose ZooKeeper session is lost. The client then gets another lease, of another server
// if there are several, and what waits queues anew.
//
// Not available at a client are Custom, Multi and RaiseGeneration: they need ZooKeeper in the
// process. Guard returns operations for a ZooKeeper client that the program has itself. Owners of different clients are different, whatever their names. A LocalQueue is shared
// by all clients of a server.
//
// The messages are in messages/remote.proto. To be read in this order: numbered.go (messages arrive
// once), frames.go, transport.go and grpc.go (streams); at the client clientlease.go (which server to
// ask, and until when the lease is valid: it does no I/O, as numbered.go), dial.go, session.go, client.go
// (the actor), clientstream.go and clientleave.go (the beginning and the end of streams), clientmessages.go,
// clientquestions.go and clientlock.go (the actor of a lock); at the server answerqueue.go, serverconfig.go, server.go,
// servedclient.go (the actor of a client) and servedend.go (the end of its lease), serverstream.go, rate.go,
// servedrequest.go, servedlimits.go (what a client may ask for), servedturn.go (clients with many requests
// take turns) and servedquestion.go.
package remote
