package actors_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge"
)

// Tests that kill and pause processes start this test binary again, as a program that uses locks.
// The program reads commands from its standard input, a line each, prints a line for each result,
// and ends when its input ends.

// childArguments is the environment variable that makes this test binary such a program. It has the
// servers, the session timeout and, for writes that are fenced by tokens, the address of a resource
// server.
const childArguments = "ACTORLOCK_TEST_BE_PROCESS"

// childProcess is the process of such a program.
type childProcess struct {
	t      testing.TB
	cmd    *exec.Cmd
	in     io.WriteCloser
	lines  chan string // closed at its end
	stderr bytes.Buffer
}

// startProcess starts a process, and waits until it is connected. The end of the test kills it.
func startProcess(t testing.TB, addr string, timeout time.Duration, resources string) *childProcess {
	t.Helper()
	p := &childProcess{t: t, cmd: exec.Command(os.Args[0]), lines: make(chan string, 1000)}
	p.cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %v %s", childArguments, addr, timeout, resources), "GORACE=atexit_sleep_ms=0")
	p.cmd.Stderr = &p.stderr
	setProcessGroup(p.cmd)
	var err error
	p.in, err = p.cmd.StdinPipe()
	must(t, err)
	out, err := p.cmd.StdoutPipe()
	must(t, err)
	must(t, p.cmd.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for s := bufio.NewScanner(out); s.Scan(); {
			p.lines <- s.Text()
		}
		close(p.lines)
		p.cmd.Wait() // a killed process has an error
	}()
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		go func() {
			for range p.lines {
			}
		}()
		<-ended
		if t.Failed() && p.stderr.Len() > 0 {
			t.Logf("process %d: %s", p.cmd.Process.Pid, &p.stderr)
		}
	})
	p.expect("connected")
	return p
}

// send sends a command.
func (p *childProcess) send(format string, args ...any) {
	p.t.Helper()
	_, err := fmt.Fprintf(p.in, format+"\n", args...)
	must(p.t, err)
}

// expect waits for the next line, which must begin with the words, and returns the rest of the
// line.
func (p *childProcess) expect(words string) string {
	p.t.Helper()
	line := p.nextLine()
	rest, ok := strings.CutPrefix(line, words)
	if !ok {
		p.t.Fatalf("process %d prints %q, want %q", p.cmd.Process.Pid, line, words)
	}
	return strings.TrimSpace(rest)
}

func (p *childProcess) nextLine() string {
	p.t.Helper()
	line, open := receive(p.t, p.lines, fmt.Sprint("a line of process ", p.cmd.Process.Pid))
	if !open {
		p.t.Fatalf("process %d has ended", p.cmd.Process.Pid)
	}
	return line
}

// granted waits for a grant, skips the lines before it, and returns the token.
func (p *childProcess) granted() actors.Token {
	p.t.Helper()
	for {
		if text, ok := strings.CutPrefix(p.nextLine(), "granted"); ok {
			token, err := actors.ParseToken(strings.TrimSpace(text))
			must(p.t, err)
			return token
		}
	}
}

// expectNothing checks that there is no further line yet.
func (p *childProcess) expectNothing() {
	p.t.Helper()
	select {
	case line := <-p.lines:
		p.t.Errorf("process %d prints %q", p.cmd.Process.Pid, line)
	default:
	}
}

// ---- the program in the process

type childProgram struct {
	locks          *actors.Locks
	addr           string
	sessionTimeout time.Duration
	resources      *resourceClient // nil without a resource server
	out            sync.Mutex

	mu     sync.Mutex
	grants []*actors.Grant // that are not released
	stop   func()          // ends write or work, and waits until it has ended
}

func (p *childProgram) print(format string, args ...any) {
	p.out.Lock()
	defer p.out.Unlock()
	fmt.Printf(format+"\n", args...)
}

// childMain is the main function of the program.
func childMain(arguments string) {
	p := &childProgram{stop: func() {}}
	var addr, resources, timeout string
	fmt.Sscan(arguments, &addr, &timeout, &resources)
	p.addr = addr
	err := p.connect(addr, timeout, resources)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	p.print("connected")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		verb, path, _ := strings.Cut(in.Text(), " ")
		switch verb {
		case "lock":
			go p.lock(path)
		case "unlock":
			go p.unlock()
		case "deadline":
			p.print("deadline %d", p.locks.Session().Deadline.UnixNano())
		case "write":
			p.write(path)
		case "stop":
			p.stop()
			p.print("stopped")
		case "work":
			p.work(strings.Fields(path))
		case "measure":
			what, most, _ := strings.Cut(path, " ")
			p.measure(what, most)
		}
	}
	p.locks.Close()
	os.Exit(0)
}

func (p *childProgram) connect(addr, timeout, resources string) (err error) {
	if p.sessionTimeout, err = time.ParseDuration(timeout); err != nil {
		return err
	}
	if resources != "" {
		if p.resources, err = connectResources(resources); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeLimit)
	defer cancel()
	p.locks, err = actors.Connect(ctx, addr, actors.Config{SessionTimeout: p.sessionTimeout})
	return err
}

func (p *childProgram) lock(path string) {
	g, err := p.locks.Mutex(path).Lock(context.Background())
	if err != nil {
		p.print("refused %v", err)
		return
	}
	p.mu.Lock()
	p.grants = append(p.grants, g)
	p.mu.Unlock()
	p.print("granted %v", g.Token())
	<-g.Done()
	if !errors.Is(g.Err(), actors.ErrReleased) {
		p.print("lost %v", g.Err())
	}
}

// unlock releases the oldest grant.
func (p *childProgram) unlock() {
	p.mu.Lock()
	g := p.grants[0]
	p.grants = p.grants[1:]
	p.mu.Unlock()
	if err := g.Unlock(context.Background()); err != nil {
		p.print("not unlocked %v", err)
		return
	}
	p.print("unlocked")
}

// write writes again and again under the oldest grant, to a node of ZooKeeper and to the resource
// server, also after the loss of the grant. It prints whether the writes are accepted whenever that
// changes, and the grant's Err after a pause of the process.
func (p *childProgram) write(node string) {
	g := p.grants[0]
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	p.stop = func() { cancel(); all.Wait() }
	repeat := func(what string, write func() string) {
		all.Go(func() {
			for was := ""; ctx.Err() == nil; {
				if now := write(); now != "" && now != was {
					p.print("%s %s", what, now)
					was = now
				}
			}
		})
	}
	repeat("guarded write", func() string {
		_, err := p.locks.Multi(ctx, g.Guard(&zk.SetDataRequest{Path: node, Data: []byte(g.Token().String()), Version: -1})...)
		var refused *zkbridge.OpError
		switch {
		case err == nil:
			return "accepted"
		case errors.As(err, &refused) && refused.Index == 0:
			return "refused"
		}
		return "" // not sent, or the outcome is unknown
	})
	repeat("write by token", func() string {
		_, accepted := p.resources.call("write", g.Path(), g.Token(), 0)
		if accepted {
			return "accepted"
		}
		return "refused"
	})
	all.Go(func() {
		for last := time.Now(); ctx.Err() == nil; <-time.After(time.Millisecond) {
			err := g.Err() // before any other goroutine can learn of the loss
			if now := time.Now(); now.Sub(last) > p.sessionTimeout {
				p.print("resumed %v", err)
			}
			last = time.Now()
		}
	})
}
