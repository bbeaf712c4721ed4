//go:build unix

// Command leader elects a leader among processes, and shows how another one takes over:
//
//	go run ./examples/leader [-zk SERVERS]
//
// It starts three candidates, and each leader has a fault: SIGTERM, kill -9, a pause
// (SIGSTOP), and a network that loses all packets. Without -zk it starts the embedded server.
//
//	go run ./examples/leader -zk SERVERS -id one
//
// is one candidate, until it is interrupted: run it in three terminals.
//
//	go run ./examples/leader -zk SERVERS -failover [-sessions 4s,10s,20s] [-rounds 5]
//
// measures how long it takes until the next leader leads, by session timeout.
package main

import (
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/examples/internal/console"
	"github.com/actorlock/actorlock/zkbridge/embedded"
)

func main() {
	var c participant
	flag.StringVar(&c.servers, "zk", "", "the ZooKeeper `servers`, as in zk1:2181,zk2:2181 (default: an embedded one)")
	flag.DurationVar(&c.session, "session", 4*time.Second, "the session timeout; 4s is the least that servers grant by default")
	flag.StringVar(&c.path, "path", "/leader/demo", "the path of the election, with -id")
	flag.StringVar(&c.id, "id", "", "be one candidate with this `name`")
	flag.BoolVar(&c.child, "child", false, "used by the program itself: end with the standard input")
	failover := flag.Bool("failover", false, "measure how long it takes until the next leader leads")
	sessions := flag.String("sessions", "4s,10s,20s", "the session timeouts of -failover")
	rounds := flag.Int("rounds", 5, "how often -failover measures each")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch {
	case c.id != "" && c.servers == "":
		err = fmt.Errorf("-id %s: give the servers, -zk, that the candidates have in common", c.id)
	case c.id != "":
		console.Survive() // a broken standard output must not end a term
		err = c.run(ctx, os.Stdout)
	case *failover:
		err = measure(ctx, c.servers, *sessions, *rounds, os.Stdout)
	default:
		err = run(ctx, c.servers, c.session, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "leader:", err)
		os.Exit(1)
	}
}

// run shows one fail-over after each fault.
func run(ctx context.Context, servers string, session time.Duration, out io.Writer) error {
	if servers == "" {
		server, err := embedded.Start(embedded.ServerConfig{TickTime: 200 * time.Millisecond})
		if err != nil {
			return err
		}
		defer server.Close()
		servers = server.Addr()
	}
	e, err := open(ctx, servers, session)
	if err != nil {
		return err
	}
	defer e.close()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute) // half a minute is enough on a machine without other work
	defer cancel()
	fmt.Fprintf(out, "Three processes are candidates at %s, with sessions of %v\n", e.path, session)
	for _, id := range []string{"one", "two", "three"} {
		if err := e.start(ctx, id); err != nil {
			return err
		}
	}
	leader, err := e.nextLeader(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "  %s leads, process %d, token %v\n", leader.id, leader.pid(), leader.token)
	for _, f := range faults {
		took, next, err := e.failOver(ctx, leader, f)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s %s:\n  %s leads %v later, token %v\n", f.name, leader.id, next.id, took.Round(time.Millisecond), next.token)
		if next.token.Compare(leader.token) <= 0 {
			return fmt.Errorf("token %v comes after %v", next.token, leader.token)
		}
		if err := e.undo(ctx, leader, f); err != nil {
			return err
		}
		fmt.Fprintf(out, "  %s\n", f.after)
		leader = next
	}
	return nil
}

// election has the candidates of one path.
type election struct {
	*actors.Election
	locks   *actors.Locks
	path    string
	servers string
	session time.Duration
	all     []*candidateProcess
	led     chan *candidateProcess // receives each process that becomes the leader
}

// open connects the program itself, which is no candidate.
func open(ctx context.Context, servers string, session time.Duration) (*election, error) {
	locks, err := actors.Connect(ctx, servers, actors.Config{SessionTimeout: session})
	if err != nil {
		return nil, err
	}
	path := "/leader/" + rand.Text()[:8] // used by no other run
	return &election{Election: locks.Election(path), locks: locks, path: path, servers: servers, session: session, led: make(chan *candidateProcess, 100)}, nil
}

func (e *election) close() {
	for _, p := range e.all {
		p.kill()
	}
	e.locks.Close()
}

// start starts a candidate, and waits until it is a participant.
func (e *election) start(ctx context.Context, id string) error {
	p, err := startProcess(ctx, e, id)
	if err != nil {
		return err
	}
	e.all = append(e.all, p)
	return e.await(ctx, p)
}

// await waits until a candidate is a participant.
func (e *election) await(ctx context.Context, p *candidateProcess) error {
	for {
		all, err := e.Participants(ctx)
		if err != nil {
			return err
		}
		for _, participant := range all {
			if string(participant.Data) == p.id {
				return nil
			}
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-p.ended:
			return fmt.Errorf("%s has ended early", p.id)
		case <-ctx.Done():
			return fmt.Errorf("%s does not take part: %w", p.id, context.Cause(ctx))
		}
	}
}

func (e *election) nextLeader(ctx context.Context) (*candidateProcess, error) {
	select {
	case p := <-e.led:
		return p, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("there is no leader: %w", context.Cause(ctx))
	}
}

// failOver injects a fault into the leader, and returns when there is another leader.
func (e *election) failOver(ctx context.Context, leader *candidateProcess, f fault) (took time.Duration, next *candidateProcess, err error) {
	start := time.Now()
	if err := f.inject(leader); err != nil {
		return 0, nil, err
	}
	next, err = e.nextLeader(ctx)
	return time.Since(start), next, err
}

// undo ends a fault, and starts a process again that has ended.
func (e *election) undo(ctx context.Context, p *candidateProcess, f fault) error {
	if f.undo == nil {
		p.kill()
		return e.start(ctx, p.id)
	}
	if err := f.undo(p); err != nil {
		return err
	}
	select {
	case <-p.over:
	case <-ctx.Done():
		return fmt.Errorf("%s has not noticed that its term is over: %w", p.id, context.Cause(ctx))
	}
	return e.await(ctx, p)
}
