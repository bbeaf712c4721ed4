package zktest

import (
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"

	cmap "github.com/orcaman/concurrent-map"
	"go.uber.org/goleak"
)

// Main is the body of a TestMain. It runs the tests, stops the server that [Real] shares, and
// exits. It fails a passing run that has left goroutines behind, and writes one line if tests were
// skipped, because a real ZooKeeper or another thing was missing ([Lack]).
//
// The go command shows that line with -v or if a test fails, but not for packages that pass in `go
// test ./...`. It does not cache a run that skipped tests, so that the next run looks for ZooKeeper
// again.
//
// Parallel tests run eight to a processor by default, because they mostly wait for servers and
// sessions. An exhaustive run, which computes more, has four to a processor, so that no session
// expires for want of processor time. Without -v slog.Default writes nothing: the tests end
// thousands of sessions, and their log would hide the failed test.
func Main(m *testing.M, ignore ...goleak.Option) {
	parseFlags()
	if !testing.Verbose() {
		slog.SetDefault(slog.New(slog.DiscardHandler))
	}
	os.Exit(run(m.Run, func(line string) { fmt.Fprintln(os.Stderr, line) }, ignore...))
}

func parseFlags() {
	if !flag.Parsed() { // the command line comes later, and overrides this
		each := 8
		if Exhaustive() {
			each = 4
		}
		flag.Set("test.parallel", strconv.Itoa(each*runtime.GOMAXPROCS(0)))
		flag.Parse()
	}
}

// By default each actor system makes 1,024 maps: a third of the processor time of the tests, and of the
// programs that they run of the test's binary.
func init() { cmap.SHARD_COUNT = 1 }

func run(tests func() int, report func(string), ignore ...goleak.Option) int {
	shared.manage()
	code := tests()
	if err := shared.stop(); err != nil {
		fmt.Fprintf(os.Stderr, "zktest: the shared ZooKeeper: %v\n", err)
		code = max(code, 1)
	}
	if notice := lacking.notice(); notice != "" {
		report(notice)
		preventCaching()
	}
	if code != 0 || externalAddr() != "" {
		return code // a failed test may leave goroutines, and so may one that cannot go on with a server of others
	}
	if err := goleak.Find(ignore...); err != nil {
		fmt.Fprintf(os.Stderr, "zktest: %v\n", err)
		return 1
	}
	return 0
}

// preventCaching keeps the go command from caching this run, by an unknown line in its list of the
// test's inputs. The list has no file outside of the module, so that the go command would show the
// cached run, with its skipped tests, also after ZooKeeper was installed.
func preventCaching() {
	f := flag.Lookup("test.testlogfile")
	if f == nil || f.Value.String() == "" {
		return
	}
	log, err := os.OpenFile(f.Value.String(), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return
	}
	defer log.Close()
	fmt.Fprintln(log, "zktest skipped-tests")
}

// shared is the server behind Real.
var shared sharedServer

type sharedServer struct {
	mu      sync.Mutex
	managed bool // Main runs, and will stop it
	dir     string
	server  *Server
	err     error // why it did not start, for all tests
}

func (s *sharedServer) manage() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.managed = true
}

// get returns the server, which it starts if necessary. It returns nil without Main, which would
// have to stop the server.
func (s *sharedServer) get(inst install) (*Server, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.managed || s.err != nil:
		return nil, s.err
	case s.server == nil:
		s.server, s.err = s.launch(inst)
	}
	return s.server, s.err
}

func (s *sharedServer) launch(inst install) (*Server, error) {
	if addr := externalAddr(); addr != "" {
		return external(addr)
	}
	dir, err := os.MkdirTemp("", "zktest-")
	if err != nil {
		return nil, err
	}
	s.dir = dir
	server, err := launch(inst, dir, 1, collect(nil))
	if err != nil {
		return nil, err
	}
	server.shared = true
	if server.inspector, err = dial(server.addr, clientSession, server.Dial); err != nil {
		server.close()
		return nil, err
	}
	return server, nil
}

// stop ends the server and removes its folder. It returns an error if the server had ended before.
func (s *sharedServer) stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	if s.server != nil {
		if s.server.external {
			err = s.server.removeNodes()
		} else if n := s.server.nodes[0]; n.proc.ended() {
			err = fmt.Errorf("ended while tests ran, %s\n%s", n.proc.state, n.logTail())
		}
		err = errors.Join(err, s.server.inspector.close())
		s.server.close()
	}
	s.managed, s.server, s.err = false, nil, nil
	return errors.Join(err, os.RemoveAll(s.dir))
}
