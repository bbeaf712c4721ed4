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
// # Files
//
// The messages are in messages/remote.proto. A file uses only what stands before it in this list.
//
// Both ends: protocol.go, text.go, limits.go (what a client may ask for), size.go (what
// can be sent), numbered.go (messages arrive once), frames.go, frameturns.go (large frames are handled in turn), codec.go, transport.go and grpc.go
// (streams).
//
// The client: subscribers.go; clientlease.go (which server to ask, and until when the lease is valid);
// questions.go, those that wait for answers; sentrequests.go; session.go, what the session knows, and what
// any goroutine may ask it. Its actor: clientquestions.go; clientstate.go, the state of the session;
// clientmessages.go; clientrequest.go and clientlock.go (the actor of a lock); clientleave.go, the end of a lease;
// clientstream.go, the beginning and the end of streams; clientframes.go, what comes by a stream; client.go,
// which takes all messages; dial.go.
//
// The server: serverconfig.go, peers.go, hungup_linux.go, hungup_other.go, listener.go (connections before their
// handshakes), files_unix.go, files_other.go, rate.go, insight.go (its counters), clients.go, serverstream.go,
// answerqueue.go; serverstate.go, the server, its clients and their requests. Then server.go, which makes and ends clients. The actor of a client: servedsend.go;
// servedrequest.go, the owner of a request; servedturn.go (clients with many requests take turns);
// servedclients.go; servedend.go, the end of a lease; servedquestion.go; servedacquire.go, requests and the
// locks' answers; servedclient.go, which takes all messages. Streams over gRPC: grpcserver.go. For tests of
// other packages: hooks.go.
//
// Four files do no I/O: numbered.go and clientlease.go, which random histories test, questions.go and answerqueue.go.
package remote
