package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// asLockrun is the environment variable that makes the test binary run as lockrun.
const asLockrun = "ACTORLOCK_TEST_BE_LOCKRUN"

func TestMain(m *testing.M) {
	connectLimit, lookLimit = timeLimit, timeLimit
	if os.Getenv(asLockrun) != "" {
		os.Unsetenv(asLockrun)
		main()
	}
	zktest.Main(m)
}

// timeLimit is how long a test waits for an event that must come, on the slowest machine.
const timeLimit = 2 * time.Minute

// lockrunProcess is a running lockrun.
type lockrunProcess struct {
	cmd    *exec.Cmd
	stderr errorOutput
	lines  chan string // of standard output; closed when no process has it open any more
	ended  chan struct{}
}

// errorOutput keeps standard error, and may be read while it is written.
type errorOutput struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (e *errorOutput) Write(b []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.text.Write(b)
}

func (e *errorOutput) String() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.text.String()
}

// launch starts lockrun, and kills it when the test ends.
func launch(t *testing.T, stdin string, args ...string) *lockrunProcess {
	t.Helper()
	return launchWith(t, func(cmd *exec.Cmd) {
		if stdin != "" {
			cmd.Stdin = strings.NewReader(stdin)
		}
	}, args...)
}

// launchWith is launch with changes to the command before its start.
func launchWith(t *testing.T, change func(cmd *exec.Cmd), args ...string) *lockrunProcess {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p := &lockrunProcess{cmd: exec.CommandContext(ctx, os.Args[0], args...), lines: make(chan string, 100), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), asLockrun+"=1", "GORACE=atexit_sleep_ms=0")
	p.cmd.Stderr = &p.stderr
	p.cmd.WaitDelay = time.Second // the command may hold standard error
	change(p.cmd)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stdout = write
	err = p.cmd.Start()
	write.Close()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer read.Close()
		defer close(p.lines)
		for s := bufio.NewScanner(read); s.Scan(); {
			p.lines <- s.Text()
		}
	}()
	go func() {
		defer close(p.ended)
		p.cmd.Wait() // its error is in ProcessState
	}()
	t.Cleanup(func() {
		cancel()
		<-p.ended
		p.waitOutputEnd(t)
	})
	return p
}

// endsWith runs lockrun to its end, and checks the exit code. On a slow machine a small -wait may
// be over before lockrun is connected: then it runs again.
func endsWith(t *testing.T, want int, args ...string) *lockrunProcess {
	t.Helper()
	timeout := time.Now().Add(timeLimit)
	for {
		p := launch(t, "", args...)
		code := p.code(t)
		if code == exitUnavailable && want != code && slices.Contains(args, "-wait") && time.Now().Before(timeout) {
			continue
		}
		if code != want {
			t.Errorf("%q: code %d, want %d; %s", args, code, want, &p.stderr)
		}
		return p
	}
}

// code waits for the end of lockrun, and returns its exit code, or 128 plus the number of the signal
// that has ended it.
func (p *lockrunProcess) code(t *testing.T) int {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(timeLimit):
		t.Fatalf("%q has not ended after %v", p.cmd.Args[1:], timeLimit)
	}
	if status, is := p.cmd.ProcessState.Sys().(syscall.WaitStatus); is && status.Signaled() {
		return exitSignal + int(status.Signal())
	}
	return p.cmd.ProcessState.ExitCode()
}

// line waits for the next line of standard output.
func (p *lockrunProcess) line(t *testing.T) string {
	t.Helper()
	select {
	case line, ok := <-p.lines:
		if !ok {
			t.Fatalf("%q has ended its output: code %d, %s", p.cmd.Args[1:], p.code(t), &p.stderr)
		}
		return line
	case <-time.After(timeLimit):
		t.Fatalf("%q has printed nothing for %v", p.cmd.Args[1:], timeLimit)
	}
	return ""
}

// waitOutputEnd waits until no process has standard output open any more.
func (p *lockrunProcess) waitOutputEnd(t *testing.T) {
	t.Helper()
	timeout := time.After(timeLimit)
	for {
		select {
		case _, ok := <-p.lines:
			if !ok {
				return
			}
		case <-timeout:
			t.Fatalf("the command of %q still runs after %v", p.cmd.Args[1:], timeLimit)
		}
	}
}

func (p *lockrunProcess) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
}

// lockFlags returns the flags for a lock on s, and more. -- and a command follow them.
func lockFlags(s *zktest.Server, path string, more ...string) []string {
	return append([]string{"-zk", s.Addr(), "-lock", path}, more...)
}

// holder starts a lockrun that holds the lock until the test ends it. Its command has a child
// process of the same kind.
func holder(t *testing.T, s *zktest.Server, path string, more ...string) *lockrunProcess {
	t.Helper()
	p := launch(t, "", append(lockFlags(s, path, more...), "--", "sh", "-c", "echo up; sleep 1000; echo woken")...)
	if got := p.line(t); got != "up" {
		t.Fatalf("the holder printed %q", got)
	}
	return p
}
