// Package embedded is an in-memory server that speaks the client protocol of
// Apache ZooKeeper 3.9. It runs inside the process, for development and tests:
// all data is gone when it closes, and there is one server, no ensemble.
// Production means a real ensemble.
//
// # Testing your own service
//
// A test starts a server of its own, which takes less than a millisecond, and passes its
// address to the service. The service needs no change, in whatever language.
//
//	func TestFailover(t *testing.T) {
//		server := embedded.Run(t) // closed when the test ends
//		first := startService(t, server.Addr())
//		second := startService(t, server.Addr())
//		<-first.Leads
//
//		server.Expire(first.SessionID) // as after a long pause
//		<-first.Stopped                // does it notice?
//		<-second.Leads                 // does the other take over?
//	}
//
// Then ask what happens when a reply is lost ([Server.Inject]), when ZooKeeper
// hangs ([Server.Pause]), when the connection breaks ([Server.DropConnections])
// and when a read is old ([Server.Freeze]). [Server.Advance] moves the server's
// clock, so that no test waits for a session or a TTL to run out. Where a test
// fails, [Server.Dump] and [Server.Sessions] show what the service has left in
// ZooKeeper, and [ServerConfig].Logger tells every session and fault.
//
// # The protocol
//
// Sessions with expiry, re-attachment and negotiated timeouts; persistent,
// ephemeral, sequential, container and TTL nodes; all reads and writes with
// ZooKeeper's error codes, zxids and stats; multi and multiRead; one-shot,
// persistent and recursive watches, and their re-registration on reconnect;
// ACLs of the schemes world, auth, digest and ip; getEphemerals,
// getAllChildrenNumber and whoAmI; the four-letter words ruok, stat, srvr,
// mntr, conf, cons, dump, envi, isro, wchs, wchc and wchp. Frames are limited
// to 1 MiB less a byte, as in ZooKeeper; connections are not limited.
//
// Not served: SASL, TLS, reconfig, read-only mode, super users, the admin
// server and anything that needs a second server. Quotas can be set and are
// not enforced.
//
// Where versions differ, [ServerConfig].Version decides.
//
// Known to differ: before 3.8.5 and 3.9.3 ZooKeeper answers a check outside of a
// multi only if it fails; this server then answers each. TTL nodes need no server
// option. Emptied containers go after a second, not a minute. When a sequence number
// overflows, requests in a pipeline are numbered as if sent one by one; ZooKeeper's
// numbers then depend on how many are in flight.
//
// The tests run random scripts against this server and a real one and compare
// every reply, stat, zxid and event; and both with go-zookeeper, Curator, kazoo
// and zkCli.sh.
//
// # Virtual time
//
// The server keeps time with package time only. With [ServerConfig].MemoryOnly and
// [Server.Dial] as the client's dialer, a whole system runs inside a
// testing/synctest bubble, where hours pass in moments. A test of a service that
// must stop its work when its lock is lost:
//
//	func TestStopsWithItsLock(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			server := embedded.Run(t, embedded.ServerConfig{MemoryOnly: true})
//			locks, err := actors.Connect(t.Context(), "embedded", actors.Config{Dial: server.Dial})
//			if err != nil {
//				t.Fatal(err)
//			}
//			defer locks.Close()
//			service := startService(locks.Mutex("/leader"))
//			synctest.Wait() // until all that can happen has happened
//			// service leads
//			server.Inject(embedded.Fault{Op: embedded.OpAll, Session: locks.Session().ID,
//				Times: -1, Action: embedded.BlackHole})
//			time.Sleep(20 * time.Second) // the session's time, which takes no time
//			synctest.Wait()
//			// service has stopped, and may lead again with a new session
//		})
//	}
//
// The file service_test.go beside this one has all of it.
//
// # Faults
//
// [Server.Inject] makes a chosen request go wrong, by its kind, path, session
// and number: a lost reply, a cut or refused connection, a delay, a black hole,
// an expired session, stale reads. [Server.Freeze] serves stale reads as a
// lagging follower does, to one session, and [Server.FreezeAddress] to all
// that is connected at one address, as one server of an ensemble.
// [Server.Expire], [Server.DropConnections] and [Server.Pause] act at once. All
// of it is logged.
//
// # Size
//
// Measured on 64-bit Linux: an idle session on a TCP connection takes 11 KB,
// with the stacks of its two goroutines; a node with a path of 19 bytes and 16
// bytes of data takes 300 bytes. There is one more goroutine per server, and
// one per listener.
package embedded
