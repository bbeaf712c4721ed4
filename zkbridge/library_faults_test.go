package zkbridge

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/internal/jobs"
	"github.com/actorlock/actorlock/zkbridge/internal/writer"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Known faults of clients, such as go-zookeeper v1.0.4, and of ZooKeeper, and the tests that show that
// the bridge does not have them, or handles them.
//
//	events beyond six are dropped from its channel     TestManyWatchesAreSetAgain
//	an event comes before the reply of its watch       TestEventsAndReplies, TestWatchTable
//	watches are set again in packets, or events lost   TestManyWatchesAreSetAgain, TestWatchesSetAgainInPart, TestReconnect
//	a watch on a missing node stays for ever           TestEventsAndReplies, TestReadRefused
//	queued requests run in the next session            TestRequestsDieWithTheirSession, TestEpochs
//	it never declares a session expired                TestNotAnswering, TestFrozenServer
//	it goes on to another session by itself            TestForeignSession, TestSessionRefused
//	the handshake hangs, before or behind the length   TestIncompleteHandshake; in TLS: TestTLSHangs; in auth: TestAuthNeverAnswered
//	what is no ZooKeeper makes it allocate gigabytes   TestIncompleteHandshake, TestConnRefusesGarbage, TestGarbledConnectReply
//	large replies are unbounded, or end connections    TestMaxReply, TestAnswers
//	auth blocks for ever over failing connections      TestAuthOverFailingConnections
//	oversize requests crash it, or the connection      TestInvalidRequests, TestMultiIsChecked
//	containers by Create or Multi are none, or fail    TestDirectoriesAreContainers, TestMultiIsChecked
//	no paths are checked in a multi                    TestInvalidRequests, TestMultiIsChecked
//	a failed multi names only its first failure        TestFirstFailedOp, TestBadOperationInBatch
//	ErrAPIError may stand for a success                TestInconclusiveAnswer, TestAlwaysInconclusive
//	a lost connection leaves the outcome open          TestOutcomeUnknown, TestMultiOutcome, TestChaos
//	null data and no data                              TestDataIsKept
//	calls have no context and no time-out              TestMultiLater, TestMultiWhileSuspended, TestCloseInEachState
//	1000 open requests stop the server's reading       TestWorkQueuesAreBounded, TestManyReadsAreBounded
//	it takes a server for dead that answers others     TestAnswersAreSignsOfLife
//	it does not know what others have seen             TestConnectRequestHasTheNewestZxid
//	the granted timeout stays unknown                  TestOtherTimeoutGranted, TestConnClock
//	names are resolved once, one bad name fails all    TestNamesAreResolvedAnew, TestUnknownName, TestDeadServerOfAName
//	all clients pause for the same second              TestPauseIsSpread, TestPauseEndsWithClose
//	it has no chroot and no TLS                        TestChroot, TestTLS
//	Lock and CreateProtected orphan nodes              not used

// The bridge sets its watches again over the next connection, also if they take several messages,
// and reports the deletions of nodes while there was no connection.
func TestManyWatchesAreSetAgain(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		proxy := zktest.Proxy(t, s.Addr())
		var d testDialer
		u := newUser(t, connected(t, Config{Servers: proxy.Addr(), Dial: d.Dial}))
		conn, dir := s.Client(t), s.Path(t)
		u.subscribe()
		u.waitState(messages.SessionState_CONNECTED)
		const n = 1000 // of 300 bytes
		nodes := make([]string, n)
		for range n {
			u.create(dir, strings.Repeat("x", 250)+"-")
		}
		for i := range nodes {
			nodes[i] = next[*messages.Created](u).GetNode()
		}
		u.watch(dir, nodes...)
		u.watch(dir, nodes...) // a second watch of a node adds no message
		u.cutOff(proxy)
		remove := func(nodes []string) {
			var ops []any
			for _, node := range nodes {
				ops = append(ops, &zk.DeleteRequest{Path: dir + "/" + node, Version: -1})
			}
			_, err := conn.Multi(ops...)
			must(t, err)
		}
		remove(nodes[:n/2])
		d.take()
		proxy.Refuse(false)
		u.waitState(messages.SessionState_CONNECTED)
		u.waitDeleted(nodes[:n/2])
		if n := d.take()[embedded.OpSetWatches]; n != 3 {
			t.Errorf("%d messages set watches again", n)
		}
		zktest.Eventually(t, timeLimit, func() bool { return len(u.list(dir)) == n/2 }, "the bridge sees the deletions")
		remove(nodes[n/2:])
		u.waitDeleted(nodes[n/2:])
		none[*messages.Wake](u)
	})
}

// All open requests fail with the loss of the session, also if they are more than fit into any
// queue.
func TestRequestsDieWithTheirSession(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		proxy := zktest.Proxy(t, s.Addr())
		u, dir := newUser(t, connected(t, Config{Servers: proxy.Addr()})), s.Path(t)
		makeNode(t, s.Client(t), dir+"-theirs", "theirs")
		u.created(dir, "n-")
		u.created(dir+"-theirs", "n-")
		proxy.BlackHole(true)
		for i := range 200 { // some go in transactions, some alone
			u.create(dir, "n-")
			u.create(dir+"-theirs", "n-")
			if i%10 == 0 {
				go u.bridge.MultiIn(context.Background(), 1, &zk.CreateRequest{Path: fmt.Sprintf("%s/m%d", dir, i)})
			}
		}
		s.Expire(t, u.bridge.Session().ID)
		proxy.Cut()
		proxy.BlackHole(false)
		for range 400 {
			if m := next[*messages.Failed](u); m.GetReason() != messages.Reason_SESSION_LOST {
				t.Errorf("%v", m)
			}
		}
		zktest.Eventually(t, timeLimit, func() bool { return u.epoch() == 2 }, "next session")
		u.created(dir, "new-")
		u.created(dir+"-theirs", "new-")
		for _, d := range []string{dir, dir + "-theirs"} {
			if names := s.Nodes(t, d); len(names) != 1 {
				t.Errorf("%s: %v", d, names)
			}
		}
	})
}

func TestDirectoriesAreContainers(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		u, dir := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t)
		u.release(dir, u.created(dir, "n-").GetNode())
		next[*messages.NodeReleased](u)
		conn := s.Client(t)
		zktest.Eventually(t, timeLimit, func() bool { exists, _, err := conn.Exists(dir); return !exists && err == nil }, "the server deletes the container")
		u.created(dir, "n-") // in a new container
	})
}

func TestWorkQueuesAreBounded(t *testing.T) {
	t.Parallel()
	const serverStopsReadingAt = 1000
	if n := writer.MaxInFlight + writer.MaxSingle + jobs.MaxReads; n > serverStopsReadingAt/10 {
		t.Errorf("%d calls at a time", n)
	}
	s := zktest.Embedded(t)
	u := newUser(t, connected(t, Config{Servers: s.Addr()}))
	u.created("/d", "n-")
	s.Embedded().Pause()
	for range 1000 {
		u.create("/d", "n-")
		u.bridge.Ref().SendList(&messages.List{Epoch: 1, Directory: "/d"}, u)
		u.bridge.Ref().SendWatch(&messages.Watch{Epoch: 1, Directory: "/d", Nodes: []string{"x"}}, u)
	}
	var n int
	u.bridge.runInActor(func(c *bridgeActor) {
		n = c.epoch.Writer.InFlight() + c.epoch.Jobs().Singles.Running() + c.epoch.Jobs().Reads.Running()
	})
	if n > writer.MaxInFlight+writer.MaxSingle+jobs.MaxReads {
		t.Errorf("%d calls are in flight", n)
	}
	s.Embedded().Resume()
	for range 1000 {
		next[*messages.Created](u)
		next[*messages.Listed](u)
		next[*messages.Watched](u)
	}
}

// All requests of users that read the children of directories share one limit of reads in flight.
func TestManyReadsAreBounded(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		s := embedded.Run(t, embedded.ServerConfig{MemoryOnly: true})
		running, most := make(chan struct{}, 10_000), 0
		f := &faultyClient{}
		u := userOfFaulty(t, Config{Servers: "embedded:1", SessionTimeout: 20 * time.Second, Dial: s.Dial}, f)
		const nodes, callers, limit = 2 * jobs.MaxSurveys, 2 * jobs.MaxSurveys, jobs.MaxSurveys
		for range nodes {
			u.created("/d", "n-")
		}
		f.beforeRead = func(string) {
			running <- struct{}{}
			time.Sleep(time.Second) // virtual
			<-running
		}
		done := make(chan error, callers)
		for range callers {
			go func() {
				all, err := u.bridge.Children(within(t), "/d", nil)
				if len(all) != nodes {
					t.Errorf("%d children", len(all))
				}
				done <- err
			}()
		}
		for left := callers; left > 0; {
			select {
			case err := <-done:
				must(t, err)
				left--
			case <-time.After(100 * time.Millisecond):
				synctest.Wait()
				most = max(most, len(running))
			}
		}
		if most != limit {
			t.Errorf("%d reads at a time, not %d", most, limit)
		}
	})
}

// The bridge finds a server that has another address now. Dial resolves the names in place of
// net.Dialer.
func TestNamesAreResolvedAnew(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	old, moved := zktest.Proxy(t, s.Addr()), zktest.Proxy(t, s.Addr())
	var mu sync.Mutex
	addresses := map[string]string{"zk.test:2181": old.Addr()}
	dial := func(ctx context.Context, network, name string) (net.Conn, error) {
		mu.Lock()
		address := addresses[name]
		mu.Unlock()
		if address == "" {
			return nil, fmt.Errorf("no such host: %s", name)
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	b := connected(t, Config{Servers: "bad.test,zk.test", Dial: dial})
	u := newUser(t, b)
	u.subscribe()
	u.waitState(messages.SessionState_CONNECTED)
	mu.Lock()
	addresses["zk.test:2181"] = moved.Addr()
	mu.Unlock()
	old.Refuse(true)
	old.Cut()
	u.waitState(messages.SessionState_CONNECTED)
	if moved.Connections() != 1 || b.Session().Epoch != 1 {
		t.Errorf("%d connections to the new address, %+v", moved.Connections(), b.Session())
	}
}

// Close ends the pause between two attempts to connect.
func TestPauseEndsWithClose(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{0, 100 * time.Millisecond, 1300 * time.Millisecond, time.Minute} {
		zktest.Bubble(t, func(t *testing.T) {
			dials := 0
			b := open(t, Config{Servers: "a,b", Dial: func(context.Context, string, string) (net.Conn, error) {
				dials++
				return nil, errors.New("refused")
			}})
			ctx, cancel := context.WithTimeout(context.Background(), after)
			defer cancel()
			begun := time.Now()
			if err := b.Connected(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != after {
				t.Errorf("%v after %v", err, time.Since(begun))
			}
			must(t, b.Close())
			<-b.ended
			if late := time.Since(begun) - after; late > 0 {
				t.Errorf("closed %v later", late)
			}
			if seconds := int(after / time.Second); 2*dials < seconds || dials > 8+seconds {
				t.Errorf("%d dials in %v", dials, after)
			}
		})
	}
}

// The bridge reports the changes at all watched directories once if the connection ends between two
// messages that set the watches again.
func TestWatchesSetAgainInPart(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	proxy := zktest.Proxy(t, s.Addr())
	u, conn := newUser(t, connected(t, Config{Servers: proxy.Addr()})), s.Client(t)
	u.subscribe()
	u.waitState(messages.SessionState_CONNECTED)
	const n = 6 // of 50 KB: two messages set the watches again
	unchanged := map[string]bool{}
	for i := range n {
		dir := fmt.Sprintf("/%d%s", i, strings.Repeat("x", 50<<10))
		unchanged[dir] = true
		u.created(dir, "n-")
		u.listed(&messages.List{Directory: dir, Watch: true})
	}
	cut := s.Embedded().Inject(embedded.Fault{Op: embedded.OpSetWatches, Nth: 2, Action: embedded.CutBefore})
	u.cutOff(proxy)
	for dir := range unchanged {
		makeNode(t, conn, dir+"/new", "")
	}
	proxy.Refuse(false)
	waitFired(t, cut)
	for range n {
		m := next[*messages.Wake](u)
		if !unchanged[m.GetDirectory()] {
			t.Errorf("a second Wake, or an unexpected one: %v", m)
		}
		delete(unchanged, m.GetDirectory())
	}
}
