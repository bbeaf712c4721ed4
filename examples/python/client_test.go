//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

// timeLimit is how long a test waits for an event that must come, on the slowest machine.
const timeLimit = 2 * time.Minute

func TestDescriptorsAreFresh(t *testing.T) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if fresh, err := withDescriptors(string(text)); err != nil || fresh != string(text) {
		t.Errorf("%s is not fresh, %v: run go generate", file, err)
	}
}

// program is a running program, which the test kills at its end.
type program struct {
	cmd    *exec.Cmd
	in     io.Closer
	lines  chan string // of standard output; closed at its end
	stderr bytes.Buffer
}

func start(t *testing.T, name string, args ...string) *program {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p := &program{cmd: exec.CommandContext(ctx, name, args...), lines: make(chan string, 10)}
	p.cmd.Stderr = &p.stderr
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		p.in, err = p.cmd.StdinPipe()
	}
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			p.lines <- s.Text()
		}
		p.cmd.Wait() // its error is in ProcessState
	}()
	t.Cleanup(func() {
		cancel()
		for range p.lines {
		}
	})
	return p
}

// wantLine waits for a line that begins with the text, and returns the rest.
func (p *program) wantLine(t *testing.T, text string) string {
	t.Helper()
	select {
	case line, open := <-p.lines:
		rest, is := strings.CutPrefix(line, text)
		if !open {
			t.Fatalf("%q has ended; %s", p.cmd.Args, &p.stderr)
		}
		if !is {
			t.Fatalf("%q printed %q, want %q", p.cmd.Args, line, text)
		}
		return rest
	case <-time.After(timeLimit):
		t.Fatalf("%q has not printed %q", p.cmd.Args, text)
	}
	return ""
}

// wantCode waits for the end of the program, and checks its exit code.
func (p *program) wantCode(t *testing.T, want int) {
	t.Helper()
	for range p.lines {
	}
	if code := p.cmd.ProcessState.ExitCode(); code != want {
		t.Errorf("%q: code %d, want %d; %s", p.cmd.Args, code, want, &p.stderr)
	}
}

// python returns the Python that has gRPC.
func python(t *testing.T) string {
	t.Helper()
	const debian = "/usr/bin/python3" // a python3 before it in the path does not have Debian's packages
	if out, err := exec.Command(debian, "-c", "import grpc, google.protobuf").CombinedOutput(); err != nil {
		zktest.Lack(t, errors.New("no gRPC for Python on this machine (install Debian's packages python3-grpcio and python3-protobuf)"),
			fmt.Errorf("%s has no grpc: %w: %s", debian, err, out))
	}
	return debian
}

// startLockd builds lockd and starts it, without TLS unless flags say otherwise.
func startLockd(t *testing.T, zk *zktest.Server, flags ...string) (p *program, addr string) {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "lockd")
	if out, err := exec.Command("go", "build", "-o", bin, "../lockd").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if len(flags) == 0 {
		flags = []string{"-insecure"}
	}
	p = start(t, bin, append([]string{"-zk", zk.Addr(), "-listen", "127.0.0.1:0", "-lease", "5s"}, flags...)...)
	return p, p.wantLine(t, "serving on ")
}

// The client renews its lease, releases at the end of its input, and stops when the server is killed.
func TestClient(t *testing.T) {
	zktest.OneRunIn(t, 8)
	t.Parallel()
	zk := zktest.Embedded(t)
	interpreter := python(t)
	server, addr := startLockd(t, zk)
	path := zk.Path(t)

	client := start(t, interpreter, "client.py", addr, path)
	first, err := actors.ParseToken(client.wantLine(t, "holds "))
	if err != nil {
		t.Fatal(err)
	}
	locks, err := actors.Connect(t.Context(), zk.Addr(), actors.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer locks.Close()
	if _, err := locks.Mutex(path).Lock(t.Context(), actors.WithTimeout(6*time.Second)); !errors.Is(err, actors.ErrTimedOut) {
		t.Errorf("the lease is not renewed: %v", err)
	}
	client.in.Close()
	client.wantLine(t, "released")
	client.wantCode(t, 0)
	if nodes := zk.Nodes(t, path); len(nodes) > 0 {
		t.Errorf("the client has left %q", nodes)
	}

	client = start(t, interpreter, "client.py", addr, path)
	second, err := actors.ParseToken(client.wantLine(t, "holds "))
	if err != nil || first.Compare(second) >= 0 {
		t.Errorf("%v, then %v, %v", first, second, err)
	}
	waits := start(t, interpreter, "client.py", addr, path)
	waiting := func() bool { return len(zk.Nodes(t, path)) == 2 }
	zktest.Eventually(t, timeLimit, waiting, "another client waits")
	waits.in.Close() // it leaves the queue
	waits.wantLine(t, "released")
	zktest.Eventually(t, timeLimit, func() bool { return !waiting() }, "it has left the queue")

	if err := server.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	client.wantLine(t, "lost: the lease is over")
	client.wantCode(t, 70)
	if nodes := zk.Nodes(t, path); len(nodes) != 1 {
		t.Errorf("the client has stopped behind the end of the server's session: %q", nodes)
	}
}

// A client whose input ends at once ends as one whose input ends later, also before the server has
// welcomed it.
func TestClientWithoutInput(t *testing.T) {
	zktest.OneRunIn(t, 8)
	t.Parallel()
	zk := zktest.Embedded(t)
	interpreter := python(t)
	_, addr := startLockd(t, zk)
	client := start(t, interpreter, "client.py", addr, zk.Path(t))
	client.in.Close()
	last := ""
	for line := range client.lines {
		last = line
	}
	if last != "released" {
		t.Errorf("the last line is %q; %s", last, &client.stderr)
	}
	client.wantCode(t, 0)
	if nodes := zk.Nodes(t, zk.Path(t)); len(nodes) > 0 {
		t.Errorf("the client has left %q", nodes)
	}
}

// The client resumes its lease when its connection breaks, and holds and waits on.
func TestClientResumes(t *testing.T) {
	zktest.OneRunIn(t, 8)
	t.Parallel()
	zk := zktest.Embedded(t)
	interpreter := python(t)
	_, addr := startLockd(t, zk)
	proxy, path := zktest.Proxy(t, addr), zk.Path(t)
	holds := start(t, interpreter, "client.py", proxy.Addr(), path)
	holds.wantLine(t, "holds ")
	waits := start(t, interpreter, "client.py", proxy.Addr(), path)
	zktest.Eventually(t, timeLimit, func() bool { return len(zk.Nodes(t, path)) == 2 }, "another client waits")
	proxy.BlackHole(true) // what is under way is lost
	proxy.Cut()
	proxy.BlackHole(false)
	locks, err := actors.Connect(t.Context(), zk.Addr(), actors.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer locks.Close()
	if _, err := locks.Mutex(path).Lock(t.Context(), actors.WithTimeout(6*time.Second)); !errors.Is(err, actors.ErrTimedOut) {
		t.Errorf("the lease is not resumed: %v", err)
	}
	holds.in.Close()
	holds.wantLine(t, "released")
	holds.wantCode(t, 0)
	waits.wantLine(t, "holds ")
	waits.in.Close()
	waits.wantLine(t, "released")
	waits.wantCode(t, 0)
}

// The module: its locks, time-outs, losses and several servers with a real lockd, and a server that
// breaks the protocol.
func TestModule(t *testing.T) {
	zktest.OneRunIn(t, 40) // it takes half a minute
	t.Parallel()
	zk := zktest.Embedded(t)
	interpreter := python(t)
	_, addr := startLockd(t, zk)
	path := zk.Path(t)
	for _, class := range []string{"Locks", "HostileServers"} {
		t.Run(class, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), timeLimit)
			defer cancel()
			tests := exec.CommandContext(ctx, interpreter, "-B", "test_actorlock.py", "-v", class)
			tests.Env = append(os.Environ(), "LOCKD="+addr, "LOCK="+path)
			text, err := tests.CombinedOutput()
			if err != nil || !strings.HasSuffix(strings.TrimSpace(string(text)), "OK") || strings.Contains(string(text), "Ran 0 tests") {
				t.Errorf("%v: %s", err, text)
			}
		})
	}
}
