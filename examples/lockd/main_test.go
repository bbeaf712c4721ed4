//go:build unix

package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/remote"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// asLockd is the environment variable that makes the test binary run as lockd.
const asLockd = "ACTORLOCK_TEST_BE_LOCKD"

// fileLimit is the environment variable with the number of files that lockd may have open.
const fileLimit = "ACTORLOCK_TEST_FILES"

// timeLimit is how long a test waits for an event that must come, on the slowest machine.
const timeLimit = 2 * time.Minute

func TestMain(m *testing.M) {
	connectLimit = timeLimit
	if os.Getenv(asLockd) != "" {
		if n, err := strconv.ParseUint(os.Getenv(fileLimit), 10, 64); err == nil {
			syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: n, Max: n})
		}
		main()
	}
	zktest.Main(m)
}

// lockd is a running lockd.
type lockd struct {
	cmd    *exec.Cmd
	addr   string
	stderr string // the file of standard error
	ended  chan struct{}
}

// log returns what lockd has written to standard error.
func (p *lockd) log() string {
	text, err := os.ReadFile(p.stderr)
	return string(text) + fmt.Sprintf(" (%v)", err)
}

// start starts lockd on a free port, and waits until it is ready. The test kills it at its end.
func start(t testing.TB, zk *zktest.Server, flags ...string) *lockd {
	t.Helper()
	return startWith(t, nil, zk, flags...)
}

// startWith is start with more variables in the environment of lockd.
func startWith(t testing.TB, env []string, zk *zktest.Server, flags ...string) *lockd {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	file, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	p := &lockd{ended: make(chan struct{}), stderr: file.Name()}
	p.cmd = exec.CommandContext(ctx, os.Args[0], append([]string{"-zk", zk.Addr(), "-listen", "127.0.0.1:0"}, flags...)...)
	p.cmd.Env = append(append(os.Environ(), asLockd+"=1", "GORACE=atexit_sleep_ms=0"), env...)
	p.cmd.Stderr = file
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	go func() {
		defer close(p.ended)
		io.Copy(io.Discard, lines)
		p.cmd.Wait() // its error is in ProcessState
	}()
	t.Cleanup(func() { cancel(); <-p.ended })
	addr, ready := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "serving on ")
	if err != nil || !ready || strings.HasSuffix(addr, ":0") {
		cancel()
		<-p.ended
		t.Fatalf("it printed %q, %v; %s", line, err, p.log())
	}
	p.addr = addr
	return p
}

func (p *lockd) signal(t testing.TB, s os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// wantCode waits for the end of lockd, and checks its exit code.
func (p *lockd) wantCode(t *testing.T, want int) {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(timeLimit):
		t.Fatalf("lockd has not ended; %s", p.log())
	}
	if code := p.cmd.ProcessState.ExitCode(); code != want {
		t.Errorf("code %d, want %d; %s", code, want, p.log())
	}
}

func dial(t testing.TB, servers string, secured *tls.Config) (*actors.Locks, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeLimit)
	defer cancel()
	return remote.Dial(ctx, servers, remote.DialConfig{Config: actors.Config{TLS: secured}, Insecure: secured == nil})
}

// client returns the locks of a client of lockd.
func (p *lockd) client(t testing.TB) *actors.Locks {
	t.Helper()
	locks, err := dial(t, p.addr, nil)
	if err != nil {
		t.Fatalf("%v; %s", err, p.log())
	}
	t.Cleanup(func() { locks.Close() })
	return locks
}

// hold acquires a lock.
func hold(t *testing.T, locks *actors.Locks, path string) *actors.Grant {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeLimit)
	defer cancel()
	grant, err := locks.Mutex(path).Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return grant
}

func TestUsage(t *testing.T) {
	const zk, insecure = "-zk 127.0.0.1:1 ", "-zk 127.0.0.1:1 -listen :0 -insecure " // no server listens there: usage is checked first
	for _, c := range []struct{ args, want string }{
		{"-listen :0 -insecure", "-zk is missing"},
		{zk + "-insecure", "-listen is missing"},
		{zk + "-listen :0", "-tls-cert, -tls-key and -tls-client-ca are missing"},
		{zk + "-listen :0 -tls-cert a -tls-key b", "-tls-client-ca is missing"},
		{zk + "-listen :0 -tls-cert a -tls-client-ca b", "-tls-key is missing"},
		{zk + "-listen :0 -tls-key a -tls-client-ca b", "-tls-cert is missing"},
		{insecure + "-tls-cert a", "choose one of them"},
		{insecure + "-zk-tls-cert a", "-zk-tls-key is missing"},
		{insecure + "-acl creator", "by -auth-file, ACTORLOCK_AUTH or -zk-tls-cert"},
		{insecure + "-session 0", "-session 0s"},
		{zk + "-insecure -listen nonsense", `-listen "nonsense"`},
		{zk + "-insecure -listen :99999", `-listen ":99999"`},
		{insecure + "-margin 0", "-margin 0s"},
		{insecure + "-session 13s", "-session 13s"},
		{insecure + "-lease -1s", "-lease -1s"},
		{insecure + "-lease 1ns", "100ms at least"},
		{insecure + "-lease 5", "as in 5s"},
		{insecure + "-drain -1s", "-drain -1s"},
		{insecure + "-allow rules", "without TLS no client has an identity"},
		{insecure + "-max-clients 0", "-max-clients 0"},
		{insecure + "-max-clients-per-peer -1", "-max-clients-per-peer -1"},
		{insecure + "-max-requests -1", "-max-requests -1"},
		{insecure + "/locks", `argument "/locks"`},
		{insecure + "-server a", "-server"},
	} {
		if _, err := parse(strings.Fields(c.args)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("lockd %s: %v; want %q", c.args, err, c.want)
		}
	}
}

// The errors of the start have the exit codes of lockrun.
func TestStartFails(t *testing.T) {
	t.Parallel()
	zk := zktest.Embedded(t)
	busy := start(t, zk, "-insecure")
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"-listen :0 -insecure", exitUsage, "-zk is missing"},
		{"-zk host:port -listen :0 -insecure", exitUsage, "host:port"},
		{"-zk " + zk.Addr() + " -listen :0 -tls-cert /no/such -tls-key /no/such -tls-client-ca /no/such", exitUsage, "/no/such"},
		{"-zk " + zk.Addr() + " -listen :0 -insecure -zk-tls-ca /no/such", exitUsage, "-zk-tls-ca"},
		{"-zk " + zk.Addr() + " -listen :0 -insecure -margin 31s", exitUsage, "31s"},
		{"-zk " + zk.Addr() + " -listen :0 -insecure -session 10h", exitUnavailable, "10h"},
		{"-zk " + zk.Addr() + " -listen " + busy.addr + " -insecure", exitUnavailable, "address already in use"},
	} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], strings.Fields(c.args)...)
		cmd.Env = append(os.Environ(), asLockd+"=1", "GORACE=atexit_sleep_ms=0")
		text, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.Contains(string(text), c.want) {
			t.Errorf("lockd %s: code %d, want %d and %q; %s", c.args, code, c.code, c.want, text)
		}
	}
}

// A holder that is asked to release, and does, lets lockd end with 0. Its lock is free then.
func TestDrain(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, zk *zktest.Server) {
		path := zk.Path(t)
		p := start(t, zk, "-insecure", "-drain", "2m")
		grant := hold(t, p.client(t), path)
		if grant.Token().Czxid == 0 || len(zk.Nodes(t, path)) != 1 {
			t.Errorf("%v: %q", grant.Token(), zk.Nodes(t, path))
		}
		p.signal(t, syscall.SIGTERM)
		select {
		case <-grant.Revoked():
		case <-time.After(timeLimit):
			t.Fatalf("the holder is not asked to release; %s", p.log())
		}
		if err := grant.Err(); err != nil {
			t.Error(err)
		}
		if err := grant.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		p.wantCode(t, 0)
		if nodes := zk.Nodes(t, path); len(nodes) > 0 {
			t.Errorf("lockd has left %q", nodes)
		}
	})
}

// clientLog keeps the lines of a client.
type clientLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *clientLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *clientLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// A client that does not release loses its lease in the time of -drain, and lockd ends with 0.
func TestDrainEndsLeases(t *testing.T) {
	t.Parallel()
	zk := zktest.Embedded(t)
	p := start(t, zk, "-insecure", "-drain", "5s", "-lease", "1s")
	log := &clientLog{}
	locks, err := remote.Dial(t.Context(), p.addr, remote.DialConfig{Insecure: true, Config: actors.Config{Logger: slog.New(slog.NewTextHandler(log, nil))}})
	if err != nil {
		t.Fatal(err)
	}
	defer locks.Close()
	grant := hold(t, locks, zk.Path(t))
	p.signal(t, syscall.SIGTERM)
	p.wantCode(t, 0)
	if !errors.Is(grant.Err(), actors.ErrSessionLost) {
		t.Errorf("the client believes in its lock: %v", grant.Err())
	}
	if text := log.String(); !strings.Contains(text, "drains") || strings.Contains(text, "in time") {
		t.Errorf("the client says %s", text)
	}
}

// If -drain is too short for that, or a second signal comes, lockd exits with another code and leaves
// its session, and so the lock, to the client that may believe in it.
func TestDrainIsCutShort(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"time", "second signal"} {
		t.Run(how, func(t *testing.T) {
			zk := zktest.Embedded(t)
			path := zk.Path(t)
			drain := "1s"
			if how != "time" {
				drain = "1h"
			}
			p := start(t, zk, "-insecure", "-drain", drain, "-lease", "20s")
			grant := hold(t, p.client(t), path)
			p.signal(t, syscall.SIGINT)
			if how != "time" {
				<-grant.Revoked()
				p.signal(t, syscall.SIGTERM)
			}
			p.wantCode(t, exitCutShort)
			if text := p.log(); !strings.Contains(text, "1 clients may believe in their locks") || !strings.Contains(text, "leaves its ZooKeeper session open") {
				t.Error(text)
			}
			if nodes := zk.Nodes(t, path); len(nodes) != 1 {
				t.Errorf("the session is closed: %q, %v", nodes, grant.Err())
			}
		})
	}
}
