package locktest

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// keepers are the versions of ClickHouse Keeper on which tests run, and RaftKeeper: see
// [embedded.ServerConfig]. The first knows most, the second least.
var keepers = []string{"keeper-26.8", "keeper-22.8", "keeper-25.12", "keeper-26.1", "raftkeeper-2.1"}

// drawKeeper skips a test on one of the keepers in most runs by habit. With -run it is one run in six, but
// none on the first, or where -run names the version.
func drawKeeper(t *testing.T, version string) {
	t.Helper()
	selected := flag.Lookup("test.run").Value.String()
	n := 6
	switch {
	case selected == "" && version == keepers[0]:
		n = 12
	case selected == "":
		n = 48
	case version == keepers[0] || strings.Contains(selected, version) || zktest.Exhaustive():
		return
	}
	if rand.IntN(n) != 0 {
		t.Skipf("runs in one run of %d; with -run of its name in all", n)
	}
}

// Each runs f on both servers and on each of the Keepers, in parallel with other tests. f releases
// the locks that it acquires: when it has returned, no node is left, and no watch. A run by habit
// has one in three of the real halves, which take most of the processor time, and a sample
// of those on a Keeper; a run with -run has all on the newest Keeper. One with ACTORLOCK_EXHAUSTIVE=1 has all of the real halves.
func Each(t *testing.T, f func(b *Fixture)) {
	t.Helper()
	t.Parallel()
	eachServer(t, f)
	for _, version := range keepers {
		t.Run(version, func(t *testing.T) {
			drawKeeper(t, version)
			t.Parallel()
			OnServer(t, zktest.Embedded(t, zktest.Version(version)), f)
		})
	}
}

func eachServer(t *testing.T, f func(b *Fixture)) {
	t.Helper()
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		if s.Real() {
			zktest.OneRunIn(t, 3)
		}
		t.Parallel()
		OnServer(t, s, f)
	})
}

// Resumes reports whether the server resumes sessions. On ClickHouse Keeper a session, and its locks for the process that
// had them, end with the connection; others get these locks when the session has expired.
func (b *Fixture) Resumes() bool { return !strings.HasPrefix(b.Keeper(), "keeper-") }

// NeedsResumption skips a test on a server that resumes no session: its locks end with the
// connection.
func (b *Fixture) NeedsResumption() {
	b.Helper()
	if !b.Resumes() {
		b.Skip("ClickHouse Keeper resumes no session")
	}
}

// Knows reports whether the server knows what ClickHouse Keeper knows from a version on, such as 26 and 8
// for containers. RaftKeeper knows no containers, and all that is older.
func (b *Fixture) Knows(major, minor int) bool {
	b.Helper()
	name, number, isKeeper := strings.Cut(b.Keeper(), "keeper-")
	if !isKeeper {
		return true
	}
	var has, of int
	if _, err := fmt.Sscanf(number, "%d.%d", &has, &of); err != nil {
		b.Fatalf("version %q: %v", b.Keeper(), err)
	}
	if name == "raft" {
		return major < 26 || major == 26 && minor < 8
	}
	return has > major || has == major && of >= minor
}

// KnowsContainers reports whether the server deletes empty directories of locks.
func (b *Fixture) KnowsContainers() bool {
	b.Helper()
	return b.Knows(26, 8)
}

// NeedsContainers skips a test on a server that has no containers.
func (b *Fixture) NeedsContainers() {
	b.Helper()
	if !b.KnowsContainers() {
		b.Skip("the server knows no containers")
	}
}

// OnOneServer is Each on one of the servers, which it draws at random, for a test with a client of
// another library, whose process takes seconds to start. A run by habit has one in eight of these
// tests, and an exhaustive run has all of them on both servers.
func OnOneServer(t *testing.T, f func(b *Fixture)) {
	t.Helper()
	t.Parallel()
	if zktest.Exhaustive() {
		eachServer(t, f)
		return
	}
	zktest.OneRunIn(t, 8)
	name, start := "embedded", func(t *testing.T) *zktest.Server { return zktest.Embedded(t) }
	if rand.N(2) == 0 {
		name, start = "zookeeper", func(t *testing.T) *zktest.Server { return zktest.Real(t) }
	}
	t.Run(name, func(t *testing.T) { OnServer(t, start(t), f) })
}

// OnServer is Each on the given server.
func OnServer(t *testing.T, s *zktest.Server, f func(b *Fixture)) {
	t.Helper()
	b := &Fixture{T: t, Server: s, LockPath: s.Path(t)}
	f(b)
	if !t.Failed() {
		b.Clean()
	}
}

// OnEmbedded is Each without the real server.
func OnEmbedded(t *testing.T, f func(b *Fixture)) {
	t.Helper()
	OnServer(t, zktest.Embedded(t), f)
}

// NewFixture returns a Fixture on a server of the test's own. The test calls Clean.
func NewFixture(t *testing.T, s *zktest.Server) *Fixture {
	return &Fixture{T: t, Server: s, LockPath: s.Path(t)}
}

// Ensemble starts three servers, whose members notice soon that another is gone. By habit it skips
// the test in seven runs of eight.
func Ensemble(t *testing.T, opts ...zktest.ServerOption) *Fixture {
	t.Helper()
	if testing.Short() {
		t.Skip("starts three servers")
	}
	zktest.OneRunIn(t, 8)
	t.Parallel()
	s := zktest.Ensemble(t, 3, append(opts, zktest.Setting("syncLimit", "4"))...)
	return NewFixture(t, s)
}

// LocksOn returns Locks that know all members, and that connect to the given member first.
func (b *Fixture) LocksOn(member *zktest.Server, configure ...func(*actors.Config)) *actors.Locks {
	b.Helper()
	var proxies []*zktest.TCPProxy
	var addrs []string
	for _, m := range b.Members() {
		p := zktest.Proxy(b, m.Addr())
		p.Refuse(m != member)
		proxies, addrs = append(proxies, p), append(addrs, p.Addr())
	}
	locks := Connect(b.T, strings.Join(addrs, ","), configure...)
	for _, p := range proxies {
		p.Refuse(false)
	}
	return locks
}
