package locktest

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Main is the body of a TestMain. It runs the tests, or the program of a test's process, with the
// commands of that program.
func Main(m *testing.M, commands map[string]Command) {
	if arguments := os.Getenv(childArguments); arguments != "" {
		childMain(arguments, commands)
	}
	zktest.Main(m)
}

const (
	// LongSession is the longest session timeout that the servers grant. A busy machine does not
	// lose such a session.
	LongSession = time.Minute
	// ShortWait is how long a test waits for an event that must not come.
	ShortWait = 300 * time.Millisecond
	// NoticeLimit is how long a process may go on with a lock after the deletion of its nodes.
	NoticeLimit = 3 * time.Second
	// SessionTimeout is the session timeout of tests in virtual time.
	SessionTimeout = 6 * time.Second
	// HeldMarker ends the path of a lock's held marker.
	HeldMarker = "-__held__"
)

// Fixture is one server and one lock's path on it.
type Fixture struct {
	*testing.T
	*zktest.Server
	LockPath string
	Cleanups []func() // that Clean calls first
}

// Clean waits until nothing is left of the lock on the server.
func (b *Fixture) Clean() {
	b.Helper()
	for _, f := range b.Cleanups {
		f()
	}
	b.WaitNoContender()
	b.ExpectNoMarkerOrWatch()
}

// WaitNoContender waits until no contender is left of the lock, nor a directory below its path where the server deletes
// empty ones.
func (b *Fixture) WaitNoContender() {
	b.Helper()
	if b.KnowsContainers() {
		b.WaitNodes(0)
		return
	}
	zktest.Eventually(b, b.limit(), func() bool { return b.contendersBelow(b.LockPath) == 0 }, "no contender is left under %s", b.LockPath)
}

// contendersBelow returns the number of nodes below a path that have a sequence number. It leaves out
// the library's own directory: a session's node can end with ten decimal digits, too.
func (b *Fixture) contendersBelow(path string) (n int) {
	for _, name := range b.lockNodesOf(path) {
		if sequential.MatchString(name) {
			n++
		}
		n += b.contendersBelow(path + "/" + name)
	}
	return n
}

var sequential = regexp.MustCompile(`[0-9]{10}$`)

// ExpectNoMarkerOrWatch checks that there is no held marker of the lock, and waits until it has no
// watch.
func (b *Fixture) ExpectNoMarkerOrWatch() {
	b.Helper()
	directory, name := filepath.Split(b.LockPath)
	if slices.Contains(b.Nodes(b, directory[:max(len(directory)-1, 1)]), name+HeldMarker) {
		b.Errorf("a held marker is left: %s%s", b.LockPath, HeldMarker)
	}
	if b.TellsWatches() && b.KnowsContainers() { // otherwise directories stay, and with them the watches of ended observers
		zktest.Eventually(b, b.limit(), func() bool { return b.LockWatches() == 0 }, "no watch is left")
	}
}

// LockWatches returns the number of the test's watches on nodes of the lock. Those on its directory do
// not count.
func (b *Fixture) LockWatches() int {
	b.Helper()
	return b.WatchesBelow(b, b.LockPath+"/")
}

// limit is how long a test waits for nodes and watches.
func (b *Fixture) limit() time.Duration {
	if b.Virtual() {
		return time.Hour
	}
	return zktest.TimeLimit
}

// LockNodes returns the children of the lock's path, or of that path with an end appended. It
// leaves out the library's own directory, which a chroot has.
func (b *Fixture) LockNodes(end ...string) []string {
	return b.lockNodesOf(b.LockPath + strings.Join(end, ""))
}

func (b *Fixture) lockNodesOf(path string) []string {
	return slices.DeleteFunc(b.Nodes(b, path), func(name string) bool { return name == "actorlock" })
}

// WaitNodes waits until the lock's directory has n children or, with ends, until each directory has
// n whose path is the lock's with one of the ends appended.
func (b *Fixture) WaitNodes(n int, ends ...string) {
	b.Helper()
	if len(ends) == 0 {
		ends = []string{""}
	}
	for _, end := range ends {
		var nodes []string
		zktest.Eventually(b, b.limit(), func() bool { nodes = b.LockNodes(end); return len(nodes) == n },
			"%d nodes under %s: %v", n, b.LockPath+end, &nodes)
	}
}

// Locks returns Locks on a connection of their own, which the end of the test closes.
func (b *Fixture) Locks(configure ...func(*actors.Config)) *actors.Locks {
	b.Helper()
	if b.Virtual() {
		configure = append([]func(*actors.Config){func(cfg *actors.Config) { cfg.SessionTimeout, cfg.Dial = SessionTimeout, b.Dial }}, configure...)
	}
	return Connect(b.T, b.Addr(), configure...)
}

// Connect returns Locks on a connection of their own to an address, which the end of the test
// closes.
func Connect(t *testing.T, addr string, configure ...func(*actors.Config)) *actors.Locks {
	t.Helper()
	cfg := actors.Config{SessionTimeout: LongSession}
	for _, f := range configure {
		f(&cfg)
	}
	ctx, cancel := context.WithTimeout(context.Background(), zktest.TimeLimit)
	defer cancel()
	locks, err := actors.Connect(ctx, addr, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { locks.Close() })
	if *throughServer {
		return ThroughServer(t, locks, cfg)
	}
	return locks
}

// OnBridge returns Locks of actors.New and their bridge, which the end of the test closes.
func (b *Fixture) OnBridge(configure ...func(*zkbridge.Config)) (*actors.Locks, *zkbridge.Bridge) {
	b.Helper()
	cfg := zkbridge.Config{Servers: b.Addr(), SessionTimeout: LongSession, Dial: b.Dial}
	if b.Virtual() {
		cfg.SessionTimeout = SessionTimeout
	}
	for _, f := range configure {
		f(&cfg)
	}
	system := host.NewSystem(nil, nil)
	bridge, err := zkbridge.Open(system, cfg)
	Must(b, err)
	locks := actors.New(system, bridge, actors.Config{})
	b.Cleanup(func() {
		locks.Close()
		bridge.Close()
		system.Close()
	})
	Must(b, bridge.Connected(Within(b)))
	return locks, bridge
}

// IdleTimeout returns a configuration with an IdleTimeout.
func IdleTimeout(d time.Duration) func(*actors.Config) {
	return func(cfg *actors.Config) { cfg.IdleTimeout = d }
}

// Remove deletes nodes in one transaction, as another client.
func (b *Fixture) Remove(nodes ...string) {
	b.Helper()
	var deletes []any
	for _, node := range nodes {
		deletes = append(deletes, &zk.DeleteRequest{Path: node, Version: -1})
	}
	_, err := b.Client(b).Multi(deletes...)
	Must(b, err)
}

// ExpireSession ends the session, and waits for the next one.
func (b *Fixture) ExpireSession(locks *actors.Locks) {
	b.Helper()
	old := locks.Session()
	b.Expire(b, old.ID)
	b.WaitNewSession(locks, old)
}

// WaitNewSession waits until the process has a session after an old one.
func (b *Fixture) WaitNewSession(locks *actors.Locks, old zkbridge.Session) {
	b.Helper()
	zktest.Eventually(b, zktest.TimeLimit, func() bool {
		s := locks.Session()
		return s.State == messages.SessionState_CONNECTED && s.Epoch > old.Epoch
	}, "a new session")
}
