package locktest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/remote"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Tests that kill and pause processes start this test binary again, as a program that uses locks.
// The program reads commands from its standard input, a line each, prints a line for each result,
// and ends when its input ends.

// childArguments is the environment variable that makes this test binary such a program. It has the
// servers, the session timeout, and what else the commands of the tests need.
const childArguments = "ACTORLOCK_TEST_BE_PROCESS"

// LockServers begins the address of a process that has lock servers in place of ZooKeeper; their
// addresses follow.
const LockServers = "lock-servers:"

// ChildProcess is the process of such a program.
type ChildProcess struct {
	t      testing.TB
	Cmd    *exec.Cmd
	in     io.WriteCloser
	lines  chan string // closed at its end
	stderr bytes.Buffer
}

// StartProcess starts a process, and waits until it is connected. The end of the test kills it. The
// program has the argument in its field of that name.
func StartProcess(t testing.TB, addr string, timeout time.Duration, argument string) *ChildProcess {
	t.Helper()
	return StartProcessBy(t, exec.Command(os.Args[0]), addr, timeout, argument)
}

// StartProcessBy is StartProcess by a command that executes this test binary.
func StartProcessBy(t testing.TB, cmd *exec.Cmd, addr string, timeout time.Duration, argument string) *ChildProcess {
	t.Helper()
	p := &ChildProcess{t: t, Cmd: cmd, lines: make(chan string, 1000)}
	p.Cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %v %s", childArguments, addr, timeout, argument), "GORACE=atexit_sleep_ms=0")
	p.Cmd.Stderr = &p.stderr
	setProcessGroup(p.Cmd)
	var err error
	p.in, err = p.Cmd.StdinPipe()
	Must(t, err)
	out, err := p.Cmd.StdoutPipe()
	Must(t, err)
	Must(t, p.Cmd.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for s := bufio.NewScanner(out); s.Scan(); {
			p.lines <- s.Text()
		}
		close(p.lines)
		p.Cmd.Wait() // a killed process has an error
	}()
	t.Cleanup(func() {
		p.Cmd.Process.Kill()
		go func() {
			for range p.lines {
			}
		}()
		<-ended
		if t.Failed() && p.stderr.Len() > 0 {
			t.Logf("process %d: %s", p.Cmd.Process.Pid, &p.stderr)
		}
	})
	p.Expect("connected")
	return p
}

// Send sends a command.
func (p *ChildProcess) Send(format string, args ...any) {
	p.t.Helper()
	_, err := fmt.Fprintf(p.in, format+"\n", args...)
	Must(p.t, err)
}

// Expect waits for the next line, which must begin with the words, and returns the rest of the
// line.
func (p *ChildProcess) Expect(words string) string {
	p.t.Helper()
	line := p.NextLine()
	rest, ok := strings.CutPrefix(line, words)
	if !ok {
		p.t.Fatalf("process %d prints %q, want %q", p.Cmd.Process.Pid, line, words)
	}
	return strings.TrimSpace(rest)
}

// NextLine waits for the next line.
func (p *ChildProcess) NextLine() string {
	p.t.Helper()
	line, open := Receive(p.t, p.lines, fmt.Sprint("a line of process ", p.Cmd.Process.Pid))
	if !open {
		p.t.Fatalf("process %d has ended", p.Cmd.Process.Pid)
	}
	return line
}

// Granted waits for a grant, skips the lines before it, and returns the token.
func (p *ChildProcess) Granted() actors.Token {
	p.t.Helper()
	for {
		if text, ok := strings.CutPrefix(p.NextLine(), "granted"); ok {
			token, err := actors.ParseToken(strings.TrimSpace(text))
			Must(p.t, err)
			return token
		}
	}
}

// ExpectNothing checks that there is no further line yet.
func (p *ChildProcess) ExpectNothing() {
	p.t.Helper()
	select {
	case line := <-p.lines:
		p.t.Errorf("process %d prints %q", p.Cmd.Process.Pid, line)
	default:
	}
}

// ---- the program in the process

// Program is the program of a process, with the commands lock, unlock, deadline, serve, stop and
// those of its package.
type Program struct {
	Locks          *actors.Locks
	Addr           string
	SessionTimeout time.Duration
	Argument       string
	Stop           func() // ends the work of a command, and waits until it has ended
	out            sync.Mutex

	mu     sync.Mutex
	Grants []*actors.Grant // that are not released
}

// Command runs a command of the program, with the rest of the command's line.
type Command func(p *Program, rest string)

// Print prints a line.
func (p *Program) Print(format string, args ...any) {
	p.out.Lock()
	defer p.out.Unlock()
	fmt.Printf(format+"\n", args...)
}

// childMain is the main function of the program.
func childMain(arguments string, commands map[string]Command) {
	p := &Program{Stop: func() {}}
	var timeout string
	fmt.Sscan(arguments, &p.Addr, &timeout, &p.Argument)
	if err := p.connect(timeout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	p.Print("connected")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		verb, rest, _ := strings.Cut(in.Text(), " ")
		switch verb {
		case "lock":
			go p.lock(rest)
		case "unlock":
			go p.unlock()
		case "deadline":
			p.Print("deadline %d", p.Locks.Session().Deadline.UnixNano())
		case "serve":
			p.serve(rest)
		case "stop":
			p.Stop()
			p.Print("stopped")
		default:
			commands[verb](p, rest)
		}
	}
	p.Locks.Close()
	os.Exit(0)
}

func (p *Program) connect(timeout string) (err error) {
	if p.SessionTimeout, err = time.ParseDuration(timeout); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), zktest.TimeLimit)
	defer cancel()
	if servers, is := strings.CutPrefix(p.Addr, LockServers); is {
		p.Locks, err = remote.Dial(ctx, servers, remote.DialConfig{Insecure: true})
		return err
	}
	p.Locks, err = actors.Connect(ctx, p.Addr, actors.Config{SessionTimeout: p.SessionTimeout})
	return err
}

// serve serves the process's locks at an address.
func (p *Program) serve(address string) {
	server, err := remote.NewServer(p.Locks, remote.ServerConfig{Insecure: true, MaxClientsPerPeer: 20_000})
	var streams *remote.GRPCServer
	if err == nil {
		streams, err = server.GRPC(nil)
	}
	if err == nil {
		var l net.Listener
		if l, err = net.Listen("tcp", address); err == nil {
			p.Print("serving %s", l.Addr())
			go streams.Serve(l)
		}
	}
	if err != nil {
		p.Print("not serving: %v", err)
	}
}

func (p *Program) lock(path string) {
	g, err := p.Locks.Mutex(path).Lock(context.Background())
	if err != nil {
		p.Print("refused %v", err)
		return
	}
	p.mu.Lock()
	p.Grants = append(p.Grants, g)
	p.mu.Unlock()
	p.Print("granted %v", g.Token())
	<-g.Done()
	if !errors.Is(g.Err(), actors.ErrReleased) {
		p.Print("lost %v", g.Err())
	}
}

// unlock releases the oldest grant.
func (p *Program) unlock() {
	p.mu.Lock()
	g := p.Grants[0]
	p.Grants = p.Grants[1:]
	p.mu.Unlock()
	if err := g.Unlock(context.Background()); err != nil {
		p.Print("not unlocked %v", err)
		return
	}
	p.Print("unlocked")
}

// Exit ends a process in good order, and so its session.
func (p *ChildProcess) Exit() {
	p.t.Helper()
	Must(p.t, p.in.Close())
	for range p.lines {
	}
}

// ExpectAll waits for a line that begins with each of the words, in any order, and for no other
// line.
func (p *ChildProcess) ExpectAll(all ...string) {
	p.t.Helper()
	for len(all) > 0 {
		line, found := p.NextLine(), -1
		for i, words := range all {
			if strings.HasPrefix(line, words) {
				found = i
			}
		}
		if found < 0 {
			p.t.Fatalf("process %d prints %q, want one of %q", p.Cmd.Process.Pid, line, all)
		}
		all = append(all[:found:found], all[found+1:]...)
	}
}
