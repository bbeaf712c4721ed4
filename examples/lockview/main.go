// Command lockview serves a page that shows the locks below a path as queues, and each change at
// once: the holders and the waiters in their order, with their time, process and session, and the
// hand-offs.
//
//	go run ./examples/lockview                                # on an embedded server, with a demonstration
//	go run ./examples/lockview -zk zk1:2181,zk2:2181 /locks
//	go run ./examples/lockview -zk zk1:2281 -tls-ca ca.pem -auth-file lockview.auth /locks
//
// The flags and environment variables of a secured ensemble, or of a lock server in place of one, are
// those of lockrun. It prints the address of the page. It serves the page on the loopback interface.
// With -revoke the page can ask a holder to release. With another -listen, other machines can use the
// page; -hosts has the names of this machine that its address may have. lockview needs READ on the
// locks' directories and on the nodes in them. The locks may be of any client: of this library,
// Curator, kazoo or go-zookeeper.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/actorlock/actorlock/examples/internal/console"
	"github.com/actorlock/actorlock/examples/internal/lockflags"
	"github.com/actorlock/actorlock/zkbridge/embedded"
)

type pageOptions struct {
	lockflags.Flags
	listen string
	hosts  string
	root   string
	revoke bool
}

func main() {
	console.Survive() // a broken standard error must not end the page
	o := pageOptions{Flags: lockflags.Flags{Warn: warn}}
	o.Define(flag.CommandLine)
	flag.StringVar(&o.listen, "listen", "127.0.0.1:8080", "the `address` of the page; port 0 is a free port")
	flag.StringVar(&o.hosts, "hosts", "", "the `names` of this machine in the page's address, with commas; localhost and IP addresses need none")
	flag.BoolVar(&o.revoke, "revoke", false, "let the page ask holders to release")
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), "usage: lockview [flags] [PATH]\n"+
			"Serves a page that shows the locks at and below PATH (default /). Without -zk and -server it shows a demonstration.\n")
		flag.PrintDefaults()
		fmt.Fprintf(flag.CommandLine.Output(), "The environment sets flags as well: %s sets -zk, and so on.\n%s\n", lockflags.EnvName("zk"), lockflags.AuthHelp)
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := o.ReadEnvironment(flag.CommandLine, os.LookupEnv)
	if err == nil {
		err = o.parsePath(flag.Args())
	}
	if err == nil {
		err = run(ctx, o, os.Stdout)
	}
	if err != nil {
		warn("%v", err)
		os.Exit(1)
	}
}

// stderr writes the messages of lockview itself.
var stderr = console.Logger(os.Stderr, "lockview", slog.LevelWarn)

func warn(format string, args ...any) { stderr.Error(fmt.Sprintf(format, args...)) }

func (o *pageOptions) parsePath(args []string) error {
	o.root = "/"
	switch {
	case len(args) > 1:
		return fmt.Errorf("argument %q: one path is accepted, after the flags", args[1])
	case len(args) == 1 && !strings.HasPrefix(args[0], "/"):
		return fmt.Errorf("path %q: it must begin with /", args[0])
	case len(args) == 1:
		o.root = args[0]
	}
	return nil
}

// warnOpen warns that other machines can use the page.
func (o *pageOptions) warnOpen(listen net.Addr) {
	may := "read the page"
	if o.revoke {
		may += " and ask holders to release"
	}
	o.Warn("everybody who can reach %v may %s, without a login: put a proxy with a login in front of it, or listen on 127.0.0.1", listen, may)
}

// connectLimit is how long lockview tries to connect. Tests raise it, for machines that have other
// work.
var connectLimit = 15 * time.Second

// run serves the page until ctx ends.
func run(ctx context.Context, o pageOptions, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	demonstration := o.Servers == "" && o.LockServers == ""
	if demonstration {
		server, err := embedded.Start(embedded.ServerConfig{})
		if err != nil {
			return err
		}
		defer server.Close()
		o.Servers = server.Addr()
	}
	if err := o.Check(); err != nil {
		return err
	}
	cfg, err := o.Config()
	if err != nil {
		return err
	}
	cfg.RequireChroot = o.Servers != "" && !demonstration
	connecting, connected := context.WithTimeout(ctx, connectLimit)
	defer connected()
	locks, err := o.Connect(connecting, cfg)
	if err != nil {
		return err
	}
	defer locks.Close()
	go o.Certificates.Watch(ctx)
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return err
	}
	s := &server{board: newBoard(locks, o.root), hosts: strings.FieldsFunc(o.hosts, func(r rune) bool { return r == ',' })}
	if address, ok := listener.Addr().(*net.TCPAddr); !ok || !address.IP.IsLoopback() {
		o.warnOpen(listener.Addr())
	}
	if o.revoke {
		s.revoke = func(ctx context.Context, node string) error {
			_, err := locks.Revoke(ctx, node, 0)
			return err
		}
	}
	fmt.Fprintf(out, "locks below %s: http://%s/\n", console.Printable(o.root), listener.Addr())

	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		s.board.run(ctx)
	}()
	if demonstration {
		stop, err := demonstrate(ctx, o.Servers)
		if err != nil {
			return err
		}
		defer stop()
	}
	web := newWebServer(ctx, s.handler())
	defer context.AfterFunc(ctx, func() { web.Close() })()
	if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	<-stopped
	return nil
}

// newWebServer returns a server that bounds how long it waits for a client. Its requests have ctx.
func newWebServer(ctx context.Context, handler http.Handler) *http.Server {
	return &http.Server{Handler: handler, ReadHeaderTimeout: requestLimit, WriteTimeout: requestLimit, IdleTimeout: requestLimit,
		BaseContext: func(net.Listener) context.Context { return ctx }}
}
