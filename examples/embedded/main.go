// Command embedded runs the embedded server, an in-memory ZooKeeper for development and tests,
// until it is interrupted. It does not keep its data.
//
//	go run ./examples/embedded -listen 127.0.0.1:2181
//
// With -version it behaves as another version of ZooKeeper, or as ClickHouse Keeper, such as
// keeper-26.8.
//
// It prints "listening on ADDR" when it is ready. With port 0 it listens on a free port.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/actorlock/actorlock/zkbridge/embedded"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:2181", "the `address` to listen on")
	version := flag.String("version", "", "behave as this `version` of ZooKeeper, or as keeper-26.8 or raftkeeper-2.1")
	session := flag.Duration("min-session", 0, "the shortest `session` timeout that it grants; default 4s, as Keeper 10s")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, embedded.ServerConfig{Addr: *listen, Version: *version, MinSessionTimeout: *session}, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "embedded:", err)
		os.Exit(1)
	}
}

// serve runs the server until ctx ends.
func serve(ctx context.Context, cfg embedded.ServerConfig, out io.Writer) error {
	server, err := embedded.Start(cfg)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "listening on", server.Addr())
	<-ctx.Done()
	return server.Close()
}
