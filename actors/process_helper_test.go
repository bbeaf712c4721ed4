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

// Tests that kill and pause processes start this test binary again, as a user of locks.
// It is told what to do by lines of its standard input, says by lines what has become of
// it, and ends when its input does.

// asProcess makes this test binary such a process: servers, session timeout and, for
// writes that are fenced by tokens, the address of a resource server.
const asProcess = "ACTORLOCK_TEST_BE_PROCESS"

// childProcess is the process as its test sees it.
type childProcess struct {
	t      testing.TB
	cmd    *exec.Cmd
	in     io.WriteCloser
	lines  chan string // closed at its end
	stderr bytes.Buffer
}

// startProcess starts one and waits until it is connected. It is killed when the test ends.
func startProcess(t testing.TB, addr string, timeout time.Duration, resources string) *childProcess {
	t.Helper()
	p := &childProcess{t: t, cmd: exec.Command(os.Args[0]), lines: make(chan string, 1000)}
	p.cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %v %s", asProcess, addr, timeout, resources), "GORACE=atexit_sleep_ms=0")
	p.cmd.Stderr = &p.stderr
	aside(p.cmd)
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
		p.cmd.Wait() // its standard error is of interest, not how it has ended
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
	p.hear("connected")
	return p
}

// tell has the process do something.
func (p *childProcess) tell(format string, args ...any) {
	p.t.Helper()
	_, err := fmt.Fprintf(p.in, format+"\n", args...)
	must(p.t, err)
}

// hear waits for its next line, which must begin with the words, and returns the rest.
func (p *childProcess) hear(words string) string {
	p.t.Helper()
	line := p.next()
	rest, ok := strings.CutPrefix(line, words)
	if !ok {
		p.t.Fatalf("process %d says %q, not %q", p.cmd.Process.Pid, line, words)
	}
	return strings.TrimSpace(rest)
}

func (p *childProcess) next() string {
	p.t.Helper()
	line, open := receive(p.t, p.lines, fmt.Sprint("a line of process ", p.cmd.Process.Pid))
	if !open {
		p.t.Fatalf("process %d has ended", p.cmd.Process.Pid)
	}
	return line
}

// granted waits for a grant, and skips what comes before.
func (p *childProcess) granted() actors.Token {
	p.t.Helper()
	for {
		if text, ok := strings.CutPrefix(p.next(), "granted"); ok {
			token, err := actors.ParseToken(strings.TrimSpace(text))
			must(p.t, err)
			return token
		}
	}
}

// quiet checks that it has said nothing more.
func (p *childProcess) quiet() {
	p.t.Helper()
	select {
	case line := <-p.lines:
		p.t.Errorf("process %d says %q", p.cmd.Process.Pid, line)
	default:
	}
}

// ---- the process itself

type user struct {
	locks     *actors.Locks
	addr      string
	limit     time.Duration   // its session timeout
	resources *resourceClient // nil without
	out       sync.Mutex

	mu     sync.Mutex
	grants []*actors.Grant // that are not released
	rest   func()          // ends insist and returns when that has ended
}

func (u *user) say(format string, args ...any) {
	u.out.Lock()
	defer u.out.Unlock()
	fmt.Printf(format+"\n", args...)
}

// beProcess is main of the process.
func beProcess(how string) {
	u := &user{rest: func() {}}
	var addr, resources, timeout string
	fmt.Sscan(how, &addr, &timeout, &resources)
	u.addr = addr
	err := u.connect(addr, timeout, resources)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	u.say("connected")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		verb, path, _ := strings.Cut(in.Text(), " ")
		switch verb {
		case "lock":
			go u.lock(path)
		case "unlock":
			go u.unlock()
		case "insist":
			u.insist(path)
		case "rest":
			u.rest()
			u.say("rested")
		case "work":
			u.work(strings.Fields(path))
		case "measure":
			what, most, _ := strings.Cut(path, " ")
			u.measure(what, most)
		}
	}
	u.locks.Close()
	os.Exit(0)
}

func (u *user) connect(addr, timeout, resources string) (err error) {
	if u.limit, err = time.ParseDuration(timeout); err != nil {
		return err
	}
	if resources != "" {
		if u.resources, err = connectResources(resources); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	u.locks, err = actors.Connect(ctx, addr, actors.Config{SessionTimeout: u.limit})
	return err
}

func (u *user) lock(path string) {
	g, err := u.locks.Mutex(path).Lock(context.Background())
	if err != nil {
		u.say("refused %v", err)
		return
	}
	u.mu.Lock()
	u.grants = append(u.grants, g)
	u.mu.Unlock()
	u.say("granted %v", g.Token())
	<-g.Done()
	if !errors.Is(g.Err(), actors.ErrReleased) {
		u.say("lost %v", g.Err())
	}
}

// unlock releases the oldest grant.
func (u *user) unlock() {
	u.mu.Lock()
	g := u.grants[0]
	u.grants = u.grants[1:]
	u.mu.Unlock()
	if err := g.Unlock(context.Background()); err != nil {
		u.say("not unlocked %v", err)
		return
	}
	u.say("unlocked")
}

// insist writes and writes under the oldest grant, to a node of ZooKeeper and to the
// resource server, whatever becomes of the grant. It says what has become of its writes whenever
// that changes, and what the grant says after a time in which it did nothing.
func (u *user) insist(stock string) {
	g := u.grants[0]
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	u.rest = func() { cancel(); all.Wait() }
	insist := func(what string, write func() string) {
		all.Go(func() {
			for was := ""; ctx.Err() == nil; {
				if now := write(); now != "" && now != was {
					u.say("%s %s", what, now)
					was = now
				}
			}
		})
	}
	insist("guarded write", func() string {
		_, err := u.locks.Multi(ctx, g.Guard(&zk.SetDataRequest{Path: stock, Data: []byte(g.Token().String()), Version: -1})...)
		var refused *zkbridge.OpError
		switch {
		case err == nil:
			return "accepted"
		case errors.As(err, &refused) && refused.Index == 0:
			return "refused"
		}
		return "" // not sent, or the outcome is unknown
	})
	insist("write by token", func() string {
		_, accepted := u.resources.do("write", g.Path(), g.Token(), 0)
		if accepted {
			return "accepted"
		}
		return "refused"
	})
	all.Go(func() {
		for last := time.Now(); ctx.Err() == nil; <-time.After(time.Millisecond) {
			err := g.Err() // before anything else can hear of the loss
			if now := time.Now(); now.Sub(last) > u.limit {
				u.say("woken %v", err)
			}
			last = time.Now()
		}
	})
}
