package zktest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest/jars"
)

const (
	nameEmbedded = "embedded"
	nameReal     = "zookeeper"
)

// Server is the ZooKeeper of a test: the embedded server, a real one, or an ensemble of real ones.
// Several goroutines may call its methods. A method with a parameter t fails the test if it cannot
// do its work.
type Server struct {
	addr     string
	embedded *embedded.Server // nil on a real server
	nodes    []*serverProcess // the processes of a real server
	members  []*Server        // one per node of an ensemble
	shared   bool             // other tests use it, too
	virtual  bool             // it has no network
	external bool             // others have started it: see envServer
	blind    bool             // it does not tell its watches
	version  string           // as others have started it
	prefix   string           // of the names of the tests' nodes

	// inspector is the connection of Nodes to a shared server, where a session for each call would
	// cost too much. A server that tests stop and freeze has none.
	inspector *client
}

// Addr returns the address of the server, host:port, or the addresses of an ensemble with commas
// between them. A server that was stopped and started again keeps its address.
func (s *Server) Addr() string { return s.addr }

// Name returns "embedded" or "zookeeper".
func (s *Server) Name() string {
	if s.Real() {
		return nameReal
	}
	return nameEmbedded
}

// Real reports whether this is ZooKeeper itself.
func (s *Server) Real() bool { return s.embedded == nil }

// Embedded returns the embedded server, for its fault injection, and nil on a real one.
func (s *Server) Embedded() *embedded.Server { return s.embedded }

// Version returns the version of ZooKeeper, such as "3.9.3"; on the embedded server the one that it
// behaves as.
func (s *Server) Version(t testing.TB) string {
	t.Helper()
	if !s.Real() {
		return s.embedded.Version()
	}
	reply, err := fourLetter(strings.Split(s.addr, ",")[0], "srvr")
	if err != nil {
		t.Fatalf("zktest: the version of %s: %v", s.addr, err)
	}
	return versionIn(reply)
}

// Keeper returns the version of ClickHouse Keeper or RaftKeeper that the server has or behaves as, such
// as "keeper-26.8", and "" on any other server.
func (s *Server) Keeper() string {
	version := s.version
	if !s.Real() {
		version = s.embedded.Version()
	}
	if !strings.Contains(version, "keeper-") {
		return ""
	}
	return version
}

// Virtual reports whether the server is one of [Virtual], which has no network.
func (s *Server) Virtual() bool { return s.virtual }

// Dial connects to an address of the server, through the network if the server has one. A client
// can have it as its Dial.
func (s *Server) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if s.virtual {
		return s.embedded.Dial(ctx, network, address)
	}
	return new(net.Dialer).DialContext(ctx, network, address)
}

// Members returns the servers of an ensemble. It returns none for a single server.
func (s *Server) Members() []*Server { return s.members }

// Leader waits for the end of an election, and returns the leader of the ensemble. A single server
// is its own leader.
func (s *Server) Leader(t testing.TB) *Server {
	t.Helper()
	if len(s.members) == 0 {
		return s
	}
	var leader *Server
	Eventually(t, TimeLimit, func() bool {
		for _, m := range s.members {
			if m.nodes[0].mode() == "leader" {
				leader = m
			}
		}
		return leader != nil
	}, "the ensemble %s has a leader", s.addr)
	return leader
}

// Stop kills the server as kill -9 does, and returns when the process has ended. The server keeps
// its data. Stop fails the test for the server that [Real] shares.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	if !s.Real() {
		s.embedded.Halt()
		return
	}
	s.mustBePrivate(t, "Stop")
	s.halt()
}

// Start starts a stopped server again, on the same port and data, and blocks until it serves. A
// member of an ensemble serves when it has a majority. Start does nothing to a server that runs.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	if !s.Real() {
		s.embedded.Restart()
		return
	}
	s.mustBePrivate(t, "Start")
	if err := s.start(); err != nil {
		t.Fatalf("zktest: start ZooKeeper again: %v", err)
	}
}

// Upgrade stops a real server that belongs to this test, and starts it on its data with the jars of
// a folder, which may be of another version. It blocks as Start does.
func (s *Server) Upgrade(t testing.TB, dir string) {
	t.Helper()
	classPath, err := jars.ClassPathOf(dir)
	if err != nil {
		t.Fatalf("zktest: upgrade: %v", err)
	}
	s.Stop(t)
	for _, n := range s.nodes {
		n.install.classPath = classPath
	}
	s.Start(t)
}

// Reconfigure stops a real server that belongs to this test, adds lines to its zoo.cfg as [Setting]
// does, and starts it on its data. It blocks as Start does.
func (s *Server) Reconfigure(t testing.TB, lines ...string) {
	t.Helper()
	s.Stop(t)
	for _, n := range s.nodes {
		if err := n.configure(lines); err != nil {
			t.Fatalf("zktest: reconfigure %s: %v", n.addr(), err)
		}
	}
	s.Start(t)
}

// Freeze suspends the server, as a long pause of its virtual machine would: its connections stay
// open, and it answers nothing until [Server.Thaw]. Sessions of the embedded server expire during
// the freeze, and those of a real one only after it. Freeze returns when the server has stopped.
func (s *Server) Freeze(t testing.TB) {
	t.Helper()
	if !s.Real() {
		s.embedded.Pause()
		return
	}
	s.mustBePrivate(t, "Freeze")
	for _, n := range s.nodes {
		if err := n.freeze(); err != nil {
			t.Fatalf("zktest: freeze %s: %v", n.addr(), err)
		}
	}
}

// Thaw resumes a frozen server.
func (s *Server) Thaw(t testing.TB) {
	t.Helper()
	if !s.Real() {
		s.embedded.Resume()
		return
	}
	s.mustBePrivate(t, "Thaw")
	for _, n := range s.nodes {
		if err := n.thaw(); err != nil {
			t.Fatalf("zktest: thaw %s: %v", n.addr(), err)
		}
	}
}

// Isolate cuts a follower off from the other members of its ensemble, or ends that. The members do
// not notice it at once: the messages between them are held back, and their connections stay open.
// The follower's clients still reach it, and it answers them until it notices. The server must be a
// member of an ensemble with [Links]. (Votes may take another way, so that another member need not
// become the leader if the leader is isolated.)
func (s *Server) Isolate(t testing.TB, cutOff bool) {
	t.Helper()
	s.eachLink(t, func(link *TCPProxy) { link.BlackHole(cutOff) })
}

// Delay delays all bytes between a member of an ensemble with [Links] and the other members, in
// each direction.
func (s *Server) Delay(t testing.TB, d time.Duration) {
	t.Helper()
	s.eachLink(t, func(link *TCPProxy) { link.Delay(d) })
}

func (s *Server) eachLink(t testing.TB, do func(*TCPProxy)) {
	t.Helper()
	for _, n := range s.nodes {
		if len(n.links) == 0 {
			t.Fatalf("zktest: %s has no links: it takes a member of an Ensemble with Links", n.addr())
		}
		for _, link := range n.links {
			do(link)
		}
	}
}

func (s *Server) mustBePrivate(t testing.TB, verb string) {
	t.Helper()
	if s.shared {
		t.Fatalf("zktest: %s on the server that all tests share: use Own", verb)
	}
}

// Expire ends a session at once, so that its client finds it expired. On a real server it resumes
// the session and closes it, as ZooKeeper's own tests do. It returns when the session has ended,
// and fails the test if there was none.
func (s *Server) Expire(t testing.TB, sessionID int64) {
	t.Helper()
	if !s.Real() {
		if !s.embedded.Expire(sessionID) {
			t.Fatalf("zktest: no session %s to expire", messages.FormatSession(sessionID))
		}
		return
	}
	if strings.HasPrefix(s.Keeper(), "keeper-") && s.Real() {
		t.Skip("zktest: the server lets nobody resume a session, and so cannot end one")
	}
	if err := expireSession(strings.Split(s.addr, ","), sessionID); err != nil {
		t.Fatalf("zktest: expire session %s: %v", messages.FormatSession(sessionID), err)
	}
}

// Watches returns the number of watches that the server has, with those of other tests if the
// server is shared. All members of an ensemble must run; Watches waits for a member that serves no
// client because it was the leader until now. On a real server it is the count of the command mntr,
// because wchs leaves out the watches on children. It leaves out the watch that each session of
// package zkbridge has on the generation's node.
func (s *Server) Watches(t testing.TB) int {
	t.Helper()
	if !s.Real() {
		return watchesByPath(s.embedded, func(path string) bool { return !isGeneration(path) })
	}
	return s.sum(t, watches)
}

// TellsWatches reports whether [Server.Watches] and WatchesBelow can count. They skip the test on a
// server of others that answers no such question.
func (s *Server) TellsWatches() bool { return !s.blind }

// WatchesBelow returns the number of watches on nodes whose path begins with prefix, and so leaves
// out those of other tests. A real server, unlike the embedded one, does not tell watches on
// children by path: they are not counted there. For the rest it is as [Server.Watches].
func (s *Server) WatchesBelow(t testing.TB, prefix string) (total int) {
	t.Helper()
	below := func(path string) bool { return strings.HasPrefix(path, prefix) && !isGeneration(path) }
	if s.Real() {
		return s.sum(t, func(addr string) (int, error) { return watchesOnPaths(addr, below) })
	}
	return watchesByPath(s.embedded, below)
}

// sum adds the counts of all members.
func (s *Server) sum(t testing.TB, of func(addr string) (int, error)) (total int) {
	t.Helper()
	if s.blind {
		t.Skip("zktest: the server does not tell its watches (4lw.commands.whitelist)")
	}
	for addr := range strings.SplitSeq(s.addr, ",") {
		var count int
		var err error
		if !poll(TimeLimit, nil, func() bool { count, err = of(addr); return err == nil }) {
			t.Fatalf("zktest: %v", err)
		}
		total += count
	}
	return total
}

// watchesByPath returns the number of watches of an embedded server on the paths that counts
// accepts.
func watchesByPath(s *embedded.Server, counts func(path string) bool) (total int) {
	for path, n := range s.WatchedPaths() {
		if counts(path) {
			total += n
		}
	}
	return total
}

// isGeneration reports whether a path is the generation's node, which may be below a chroot.
func isGeneration(path string) bool { return strings.HasSuffix(path, "/actorlock/generation") }

var pathCounter atomic.Int64

// Path returns a path that no other call returns. Its node does not exist.
func (s *Server) Path(t testing.TB) string {
	name := strings.Map(func(r rune) rune {
		if r <= ' ' || r == '/' || r > '~' {
			return '-'
		}
		return r
	}, t.Name())
	return fmt.Sprintf("/%s%s-%d", s.prefix, name, pathCounter.Add(1))
}

// start starts all processes that do not run, and waits until they serve.
func (s *Server) start() error {
	errs := make([]error, len(s.nodes))
	var wg sync.WaitGroup
	for i, n := range s.nodes {
		wg.Go(func() { errs[i] = n.start(TimeLimit) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// halt kills all processes, and returns when they have ended.
func (s *Server) halt() {
	for _, n := range s.nodes {
		n.kill()
	}
}

// close kills all processes for good: other processes may have their ports.
func (s *Server) close() {
	for _, n := range s.nodes {
		n.close()
	}
}
