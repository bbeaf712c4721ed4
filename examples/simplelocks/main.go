// Command simplelocks shows a herd: three clients, each with a session of its own, pass around the
// simple mutex and the simple read-write lock of package simplelock.
//
//	go run ./examples/simplelocks [-zk SERVERS]
//
// Without -zk it starts the embedded server.
package main

import (
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/examples/simplelocks/simplelock"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
	"github.com/actorlock/actorlock/zkbridge/embedded"
)

func main() {
	servers := flag.String("zk", "", "the ZooKeeper `servers`, as in zk1:2181,zk2:2181 (default: an embedded one)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *servers, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "simplelocks:", err)
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
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute) // a second is enough on an idle machine
	defer cancel()
	system := host.NewSystem(nil, nil)
	defer system.Close()
	path, lines := "/simplelocks/"+rand.Text(), make(chan string)
	var clients errgroup.Group
	for i := range 3 {
		clients.Go(func() error { return use(ctx, system, servers, path, fmt.Sprint("client ", i), lines) })
	}
	var err error
	go func() { err = clients.Wait(); close(lines) }()
	for line := range lines {
		fmt.Fprintln(out, line)
	}
	return err
}

// use acquires both locks in turns.
func use(ctx context.Context, system *host.System, servers, path, name string, lines chan<- string) error {
	bridge, err := zkbridge.Open(system, zkbridge.Config{Servers: servers})
	if err != nil {
		return err
	}
	defer bridge.Close()
	mutex := simplelock.Start(system, bridge, path+"-mutex", simplelock.Mutex)
	rw := simplelock.Start(system, bridge, path+"-rw", simplelock.ReadWrite)
	for id := range uint64(6) {
		lock, kind := mutex, messages.Kind_EXCLUSIVE
		if id >= 2 {
			lock, kind = rw, messages.Kind(1+id%2)
		}
		pending := lock.Acquire(&messages.Acquire{RequestId: id, Kind: uint32(kind)})
		grant, err := pending.Wait(ctx)
		if err != nil {
			pending.Cancel()
			return err
		}
		lines <- fmt.Sprintf("%s holds %s (%v), token %v", name, grant.Path, kind, actors.TokenOf(grant))
		if _, err := lock.Release(&messages.Release{RequestId: id}).Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}
