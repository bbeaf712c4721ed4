package zkbridge

import (
	"context"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// The fixtures of these tests:
//
//	each, eachOwn        run a test on both servers
//	connected, open      open a bridge, with its session or without waiting for it
//	user                 a lock actor: requests and their answers (helpers_user_test.go)
//	testDialer           the network: counts requests, holds back replies (helpers_dialer_test.go)
//	pipeDialer, handshakeServer, textServer, silentServer
//	                     programs behind the port that are no ZooKeeper, or not quite
//	faultyClient         fails calls without a fault of the connection (helpers_client_test.go)
//	bridgeLog            the text of a log (helpers_log_test.go)
//	embedded.Fault       all other faults: a server that cuts, delays, drops, expires
//	zktest.Proxy         a network that refuses or cuts all connections, or delivers nothing
//
// In virtual time, zktest.Bubble, a test may call time.Sleep, which takes no time.

func TestMain(m *testing.M) { zktest.Main(m) }

// each is zktest.Each, with both halves beside one another and beside other tests. A run by habit
// has one in three of the real halves.
func each(t *testing.T, f func(t *testing.T, s *zktest.Server)) {
	t.Helper()
	t.Parallel()
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		if s.Real() {
			zktest.OneRunIn(t, 3)
		}
		t.Parallel()
		f(t, s)
	})
}

// eachOwn is each with servers that no other test uses: f counts their watches, or knows their
// zxids.
func eachOwn(t *testing.T, f func(t *testing.T, s *zktest.Server)) {
	t.Helper()
	t.Parallel()
	zktest.EachOwn(t, func(t *testing.T, s *zktest.Server) {
		t.Parallel()
		f(t, s)
	})
}

// timeLimit is how long a test waits for an event that must come, on the slowest machine.
const timeLimit = zktest.TimeLimit

// within returns a context that bounds what a test waits for.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), timeLimit)
	t.Cleanup(cancel)
	return ctx
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// logger shows the bridge's log with the environment variable ZKBRIDGE_LOG.
func logger() *slog.Logger {
	if os.Getenv("ZKBRIDGE_LOG") == "" {
		return nil
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// open opens a bridge without waiting, to be closed when the test ends.
func open(t testing.TB, cfg Config) *internals {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = logger()
	}
	system := host.NewSystem(nil, nil)
	b, err := Open(system, cfg)
	if err != nil {
		system.Close()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.Close()
		<-b.ended
		system.Close()
	})
	return b.Internals()
}

// connected opens a bridge and waits for its session. That is the longest one which the servers
// grant, so that a busy machine does not lose it.
func connected(t testing.TB, cfg Config) *internals {
	t.Helper()
	if cfg.SessionTimeout == 0 {
		cfg.SessionTimeout = time.Minute
	}
	b := open(t, cfg)
	ctx, cancel := context.WithTimeout(context.Background(), timeLimit)
	defer cancel()
	if err := b.Connected(ctx); err != nil {
		t.Fatal(err)
	}
	return b
}

// waitConnectError waits until an attempt to connect has failed with an error that contains text.
func waitConnectError(t testing.TB, b *internals, text string) {
	t.Helper()
	zktest.Eventually(t, timeLimit, func() bool {
		last := b.lastConnectError.Load()
		return last != nil && strings.Contains(last.err.Error(), text)
	}, "an attempt fails with an error that contains %q", text)
}

// waitNodes waits until the directory has n nodes.
func waitNodes(t *testing.T, s *zktest.Server, dir string, n int) {
	t.Helper()
	zktest.Eventually(t, timeLimit, func() bool { return len(s.Nodes(t, dir)) == n }, "%d nodes in %s", n, dir)
}

// makeNode makes a node on which all clients have all rights. Its data is null if data is empty.
func makeNode(t testing.TB, conn *zk.Conn, path, data string) {
	t.Helper()
	_, err := conn.Create(path, append([]byte(nil), data...), 0, zk.WorldACL(zk.PermAll))
	must(t, err)
}

// setRights gives all clients the rights on a node, and no other ones.
func setRights(t *testing.T, conn *zk.Conn, path string, rights int32) {
	t.Helper()
	_, err := conn.SetACL(path, zk.WorldACL(rights), -1)
	must(t, err)
}

// waitFired waits until the fault has fired.
func waitFired(t testing.TB, fault *embedded.Injected) {
	t.Helper()
	select {
	case <-fault.Fired():
	case <-time.After(timeLimit):
		t.Fatalf("%v has not happened", fault.Action)
	}
}

// textServer returns a Dial to a server that sends a text to each client, and reads what the client
// sends.
func textServer(text string) dialFunc {
	return pipeDialer(func(conn net.Conn) {
		go io.WriteString(conn, text)
		io.Copy(io.Discard, conn)
	})
}

// silentServer is a Dial to a server that answers nothing.
var silentServer = pipeDialer(func(conn net.Conn) { io.Copy(io.Discard, conn) })
