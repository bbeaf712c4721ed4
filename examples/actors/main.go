// Command actors shows the actors of a protoactor system that share a lock by messages:
//
//	go run ./examples/actors [-zk SERVERS]
//
// Without -zk it starts the embedded server.
package main

import (
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/examples/internal/console"
	"github.com/actorlock/actorlock/zkbridge/embedded"
)

func main() {
	servers := flag.String("zk", "", "the ZooKeeper `servers`, as in zk1:2181,zk2:2181 (default: an embedded one)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *servers, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "actors:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, servers string, out io.Writer) error {
	if servers == "" {
		server, err := embedded.Start(embedded.ServerConfig{})
		if err != nil {
			return err
		}
		defer server.Close()
		servers = server.Addr()
	}
	system := actor.NewActorSystem(actor.WithLoggerFactory(noLog))
	defer system.Shutdown()
	locks, err := actors.Connect(ctx, servers, actors.Config{System: system})
	if err != nil {
		return err
	}
	defer locks.Close()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute) // a second is enough on a machine without other work
	defer cancel()
	lock, err := locks.Mutex("/actors/printer-" + rand.Text()[:8]).PID()
	if err != nil {
		return err
	}

	printer := console.Logger(out, "actors", slog.LevelInfo) // which blocks no actor
	finished, granted := make(chan string, 6), make(chan string, 1)
	start := func(w *worker) {
		w.lock, w.out, w.finished = lock, printer, finished
		system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return w }))
	}
	// Three workers hold the lock twice each. A fourth cancels its request. A fifth stops while
	// it holds the lock, which the lock then takes back.
	start(&worker{name: "ann", turns: 2})
	start(&worker{name: "bob", turns: 2})
	start(&worker{name: "cat", turns: 2})
	start(&worker{name: "dan", turns: 1, cancels: true})
	start(&worker{name: "fay", turns: 1, stops: true})
	if err := wait(ctx, finished, 5); err != nil {
		return err
	}
	// The last worker holds the lock until it receives Lost: here because this process closes
	// its session.
	start(&worker{name: "eve", turns: 1, holds: granted})
	if err := wait(ctx, granted, 1); err != nil {
		return err
	}
	if err := locks.Close(); err != nil {
		return err
	}
	return wait(ctx, finished, 1)
}

func wait(ctx context.Context, names <-chan string, n int) error {
	for range n {
		select {
		case <-names:
		case <-ctx.Done():
			return fmt.Errorf("the workers have not finished: %w", context.Cause(ctx))
		}
	}
	return nil
}

func noLog(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }
