// Command embedded runs the embedded server, an in-memory ZooKeeper for development and tests,
// until it is interrupted. It does not keep its data.
//
//	go run ./examples/embedded -listen 127.0.0.1:2181
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
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, *listen, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "embedded:", err)
		os.Exit(1)
	}
}

// serve runs the server until ctx ends.
func serve(ctx context.Context, listen string, out io.Writer) error {
	server, err := embedded.Start(embedded.ServerConfig{Addr: listen})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "listening on", server.Addr())
	<-ctx.Done()
	return server.Close()
}
