// Package zktest starts ZooKeeper for tests: the embedded server, which needs nothing but Go, and a
// real one, which runs as a child process from the jars of Debian's package zookeeper.
//
//	func TestMain(m *testing.M) { zktest.Main(m) }
//
//	func TestLock(t *testing.T) {
//		zktest.Each(t, func(t *testing.T, s *zktest.Server) {
//			conn := s.Client(t)
//			path := s.Path(t) // the real server is shared: use only this path
//			...
//		})
//	}
//
// Without a real ZooKeeper the tests that need one are skipped, and [Main] reports that. With the
// environment variable ACTORLOCK_REQUIRE_ZOOKEEPER=1, as in CI, they fail instead.
// ACTORLOCK_ZOOKEEPER_JARS names another folder of jars, such as the lib folder of an Apache
// release.
//
// Servers listen on the loopback interface only. On Linux a child process ends with the test
// binary, also with a killed one, and only there a test can freeze a real server.
package zktest

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// defaultTick allows session timeouts from 400 ms on: ZooKeeper's shortest one is two ticks.
const defaultTick = 200 * time.Millisecond

// defaultContainerInterval is the interval at which servers delete empty containers. ZooKeeper's
// default is a minute.
const defaultContainerInterval = 500 * time.Millisecond

// defaultHeap is the memory of a real server in MiB.
const defaultHeap = 256

// ServerOption changes the configuration of a server that belongs to one test.
type ServerOption func(*serverOptions)

type serverOptions struct {
	tick     time.Duration
	interval time.Duration // see ContainerInterval
	settings []string      // lines of zoo.cfg
	flags    []string      // of the virtual machine; see Property
	schemes  []string      // see EnforceAuth
	version  string        // see Version
	heap     int           // in MiB: see Heap
	links    bool
	observer bool                          // see Observer
	proxy    func(target string) *TCPProxy // for links
}

// TickTime sets ZooKeeper's unit of time; the default is 200 ms. A session timeout is at least two
// ticks, and the server notices an expiry up to one tick late.
func TickTime(d time.Duration) ServerOption {
	return func(o *serverOptions) { o.tick = d }
}

// Setting adds a line to the zoo.cfg of a real server. It overrides the line of this package for
// the same key. ZooKeeper takes an unknown key for the system property zookeeper.<key>. The
// embedded server ignores the setting.
func Setting(key, value string) ServerOption {
	return func(o *serverOptions) { o.settings = append(o.settings, key+"="+value) }
}

// Property sets a system property of a real server that zoo.cfg does not set, such as jute.maxbuffer.
// The embedded server ignores it.
func Property(key, value string) ServerOption {
	return func(o *serverOptions) { o.flags = append(o.flags, "-D"+key+"="+value) }
}

// EnforceAuth has the server refuse clients that have no identity of one of the schemes.
func EnforceAuth(schemes ...string) ServerOption {
	return func(o *serverOptions) {
		o.schemes = schemes
		o.settings = append(o.settings, "enforce.auth.enabled=true", "enforce.auth.schemes="+strings.Join(schemes, ","))
	}
}

// Version has the embedded server behave as a version of ZooKeeper: see [embedded.ServerConfig]. A
// real server has its own.
func Version(version string) ServerOption {
	return func(o *serverOptions) { o.version = version }
}

// ContainerInterval sets the interval at which the server deletes empty containers; the default is
// 500 ms.
func ContainerInterval(d time.Duration) ServerOption {
	return func(o *serverOptions) { o.interval = d }
}

// Heap sets how much memory a real server may use, in MiB; the default is 256. A node takes up to a
// KiB, and a server that lacks memory ends. A server with more memory than the default also has
// the collector that Java chooses. The embedded server ignores the setting.
func Heap(mib int) ServerOption {
	return func(o *serverOptions) { o.heap = mib }
}

// Observer has the last member of an ensemble not vote.
func Observer() ServerOption {
	return func(o *serverOptions) { o.observer = true }
}

// Links puts a proxy into each connection from one member of an ensemble to another, for
// [Server.Isolate] and [Server.Delay].
func Links() ServerOption {
	return func(o *serverOptions) { o.links = true }
}

// maxSession returns the longest session timeout. It also allows the one that programs use outside
// of tests; ZooKeeper's default is 20 ticks.
func (o serverOptions) maxSession() time.Duration { return max(20*o.tick, time.Minute) }

func collect(opts []ServerOption) serverOptions {
	o := serverOptions{tick: defaultTick, interval: defaultContainerInterval, heap: defaultHeap, version: os.Getenv(envEmbedded)}
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// Each runs f as the subtest "embedded" on an embedded server of its own, and as the subtest
// "zookeeper" on the real server that [Real] returns. Without a real ZooKeeper the second subtest
// is skipped, or fails.
func Each(t *testing.T, f func(t *testing.T, s *Server)) {
	t.Helper()
	t.Run(nameEmbedded, func(t *testing.T) { f(t, Embedded(t)) })
	t.Run(nameReal, func(t *testing.T) { f(t, Real(t)) })
}

// EachOwn is [Each] with servers that belong to this test, which may stop and freeze them.
func EachOwn(t *testing.T, f func(t *testing.T, s *Server), opts ...ServerOption) {
	t.Helper()
	t.Run(nameEmbedded, func(t *testing.T) { f(t, Embedded(t, opts...)) })
	t.Run(nameReal, func(t *testing.T) { f(t, Own(t, opts...)) })
}

// Embedded starts an embedded server for this test and closes it when the test ends.
func Embedded(t testing.TB, opts ...ServerOption) *Server {
	t.Helper()
	needsNoExternal(t, "an embedded")
	o := collect(opts)
	e, err := embedded.Start(embedded.ServerConfig{
		TickTime:          o.tick,
		MinSessionTimeout: 2 * o.tick, // also as Keeper, which can be configured so
		MaxSessionTimeout: o.maxSession(),
		ContainerInterval: o.interval,
		EnforceAuth:       o.schemes,
		Version:           o.version,
	})
	if err != nil {
		t.Fatalf("zktest: start the embedded server: %v", err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("zktest: close the embedded server: %v", err)
		}
	})
	return &Server{addr: e.Addr(), embedded: e}
}

// Real returns the real server that all tests of the test binary share. The first call starts it,
// which takes about a second, and [Main] stops it. Tests use paths of their own ([Server.Path]),
// and do not stop or freeze it. In a test binary that does not use Main every call is an [Own].
//
// With the environment variable ACTORLOCK_SERVER it is the server at that address. Only the tests
// may use that server. Main removes their nodes from it.
//
// Without a real ZooKeeper it skips the test, or fails it if ACTORLOCK_REQUIRE_ZOOKEEPER=1.
func Real(t testing.TB) *Server {
	t.Helper()
	var inst install
	if externalAddr() == "" {
		inst = require(t)
	}
	s, err := shared.get(inst)
	if err != nil {
		t.Fatalf("zktest: the shared ZooKeeper: %v", err)
	}
	if s == nil {
		return Own(t)
	}
	return s
}

// Own starts a real server that belongs to this test, which may stop, freeze and restart it. It
// blocks until the server serves, about a second, and kills it when the test ends. Without a real
// ZooKeeper it ends the test as [Real] does.
func Own(t testing.TB, opts ...ServerOption) *Server {
	t.Helper()
	return Ensemble(t, 1, opts...)
}

// Ensemble starts n real servers that replicate to each other and belong to this test, and blocks
// until all of them serve, a few seconds. [Server.Members] and [Server.Leader] return single
// servers, which the test may stop and freeze. Without a real ZooKeeper it ends the test as [Real]
// does.
func Ensemble(t testing.TB, n int, opts ...ServerOption) *Server {
	t.Helper()
	needsNoExternal(t, "a private")
	inst := require(t)
	o := collect(opts)
	o.proxy = func(target string) *TCPProxy { return Proxy(t, target) }
	s, err := launch(inst, t.TempDir(), n, o)
	if err != nil {
		t.Fatalf("zktest: start ZooKeeper: %v", err)
	}
	t.Cleanup(s.close)
	return s
}

// TimeLimit is how long a test waits for an event that must come, on the slowest machine: one whose
// processors other programs keep busy. A test that measures times does so in virtual time
// ([Bubble]).
const TimeLimit = 3 * time.Minute

// Eventually calls cond until it returns true, and fails the test with the message after the
// timeout. It is the one place where tests poll.
func Eventually(t testing.TB, timeout time.Duration, cond func() bool, format string, args ...any) {
	t.Helper()
	if !poll(timeout, nil, cond) {
		t.Fatalf("not within %v: "+format, append([]any{timeout}, args...)...)
	}
}

// poll calls cond at growing intervals until it returns true, the timeout has passed or stop is
// closed. It reports whether cond has returned true.
func poll(timeout time.Duration, stop <-chan struct{}, cond func() bool) bool {
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		if cond() {
			return true
		}
		select {
		case <-time.After(pause):
		case <-stop:
			return false
		case <-deadline.C:
			return cond()
		}
	}
}
