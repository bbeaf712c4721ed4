// Command remote shows a lock server and two clients, which are processes without ZooKeeper: they
// take turns on a lock, and one of them is killed while it holds. The lock is free again when the
// lease of the killed client is over.
//
//	go run ./examples/remote
//
// The lock server, and a ZooKeeper in memory behind it, run in the process of the command.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/remote"
	"github.com/actorlock/actorlock/zkbridge/embedded"
)

const lease = 2 * time.Second

func main() {
	server := flag.String("client", "", "be a client of the lock server at this `address` (the command starts its clients so)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	act := func() error { return run(ctx, os.Stdout) }
	if *server != "" {
		act = func() error { return takeTurns(ctx, *server, os.Stdin, os.Stdout) }
	}
	if err := act(); err != nil {
		fmt.Fprintln(os.Stderr, "remote:", err)
		os.Exit(1)
	}
}

// takeTurns is the client: it prints the token of each grant, and releases at the next line that it
// reads. It returns at the end of its input.
func takeTurns(ctx context.Context, server string, in io.Reader, out io.Writer) error {
	locks, err := remote.Dial(ctx, server, remote.DialConfig{Insecure: true})
	if err != nil {
		return err
	}
	defer locks.Close()
	for lines := bufio.NewScanner(in); ; {
		grant, err := locks.Mutex("/remote/turn").Lock(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, grant.Token())
		if !lines.Scan() {
			return grant.Unlock(ctx)
		}
		if err := grant.Unlock(ctx); err != nil {
			return err
		}
	}
}

// serve runs a lock server until stop is called, which drains it.
func serve(ctx context.Context) (addr string, stop func(), err error) {
	zooKeeper, err := embedded.Start(embedded.ServerConfig{})
	if err != nil {
		return "", nil, err
	}
	locks, err := actors.Connect(ctx, zooKeeper.Addr(), actors.Config{OmitHolder: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return "", nil, err
	}
	server, err := remote.NewServer(locks, remote.ServerConfig{Lease: lease, Logger: slog.New(slog.DiscardHandler), Insecure: true})
	if err != nil {
		return "", nil, err
	}
	streams, err := server.GRPC(nil) // nil: without TLS
	if err != nil {
		return "", nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	go streams.Serve(listener)
	return listener.Addr().String(), func() {
		server.Drain(ctx, 0)
		server.Close()
		streams.Stop()
		locks.Close()
		zooKeeper.Close()
	}, nil
}

// turn is a grant of a client.
type turn struct {
	client *clientProcess
	token  string
}

// clientProcess is a process that takes turns.
type clientProcess struct {
	name string
	cmd  *exec.Cmd
	in   io.WriteCloser
}

// start starts a client, whose turns go to the channel. The client ends with ctx.
func start(ctx context.Context, name, server string, turns chan<- turn) (*clientProcess, error) {
	c := &clientProcess{name: name, cmd: exec.CommandContext(ctx, os.Args[0], "-client", server)}
	c.cmd.Stderr = os.Stderr
	in, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	c.in = in
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			turns <- turn{c, strings.TrimSpace(lines.Text())}
		}
	}()
	return c, c.cmd.Start()
}

func run(ctx context.Context, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	server, stop, err := serve(ctx)
	if err != nil {
		return err
	}
	defer stop()
	fmt.Fprintf(out, "A lock server listens on %s. Its leases last %v.\n", server, lease)
	turns := make(chan turn, 2)
	for _, name := range []string{"A", "B"} {
		c, err := start(ctx, name, server, turns)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "Client %s is process %d, without ZooKeeper.\n", name, c.cmd.Process.Pid)
		defer c.cmd.Wait()
		defer c.in.Close() // the client releases, and ends
	}
	var killed time.Time
	for i := 1; ; i++ {
		var now turn
		select {
		case now = <-turns:
		case <-ctx.Done():
			return ctx.Err()
		}
		if !killed.IsZero() {
			fmt.Fprintf(out, "Client %s holds the lock %v after that, by token %s.\n", now.client.name, time.Since(killed).Round(time.Millisecond), now.token)
			return nil
		}
		fmt.Fprintf(out, "Client %s holds the lock by token %s.\n", now.client.name, now.token)
		if i < 5 {
			fmt.Fprintln(now.client.in) // its turn is over
			continue
		}
		if err := now.client.cmd.Process.Kill(); err != nil {
			return err
		}
		killed = time.Now()
		fmt.Fprintf(out, "Client %s is killed while it holds. Its lease has to end first.\n", now.client.name)
	}
}
