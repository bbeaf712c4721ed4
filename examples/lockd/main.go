// Command lockd serves the locks of an ensemble to processes without ZooKeeper:
//
//	lockd -zk zk1:2181,zk2:2181 -listen :7400 -tls-cert lockd.pem -tls-key lockd.key -tls-client-ca clients.pem
//	lockd -zk zk1:2181 -listen 127.0.0.1:7400 -insecure
//
// Its clients are programs with remote.Dial, lockrun -server, and programs of any language that
// speak messages/remote.proto over gRPC. They hold their locks by leases; the page
// .github/REMOTE.md says what a client may believe, and when. lockd prints "serving on ADDR" when it
// is ready, and answers the standard health service of gRPC.
//
// -tls-cert, -tls-key and -tls-client-ca concern its clients. The flags for a secured ensemble are
// those of lockrun, where those of TLS have other names: -zk-tls-ca, -zk-tls-cert, -zk-tls-key and
// -zk-tls-server-name. The environment sets the flags of the ensemble as well: ACTORLOCK_ZK,
// ACTORLOCK_ZK_TLS_CA, and so on.
//
// # The end
//
// SIGTERM or SIGINT drains lockd: it takes no new clients and requests, asks holders to release, and
// renews no lease after a fifth of -drain. It exits with 0 once no client may believe in a lock.
// After -drain, or at a second signal, it exits with 75 and leaves its ZooKeeper session as it is:
// clients may still believe in their locks, which stay taken until the session expires. Give the
// supervisor more time than -drain before it kills lockd.
//
// # Exit codes
//
//	 0  it has drained
//	64  the command line is not acceptable, or a file that it names
//	69  ZooKeeper cannot be reached at the start, does not answer, or refuses, or the address of
//	    -listen is not available
//	75  the drain was cut short
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/actorlock/actorlock/actors/remote"
	"github.com/actorlock/actorlock/examples/internal/console"
	"github.com/actorlock/actorlock/examples/internal/lockflags"
	"github.com/actorlock/actorlock/gen/host"
)

const (
	exitUsage       = 64
	exitUnavailable = 69
	exitCutShort    = 75
)

// lockdFlags are the flags.
type lockdFlags struct {
	lockflags.Flags
	clients  lockflags.ServerTLS
	insecure bool
	listen   string
	margin   time.Duration
	lease    time.Duration
	drain    time.Duration
}

func (o *lockdFlags) define(set *flag.FlagSet) {
	o.DefineZooKeeper(set, "zk-", 30*time.Second)
	o.clients.Define(set)
	set.BoolVar(&o.insecure, "insecure", false, "serve without TLS all clients that can reach -listen")
	set.StringVar(&o.listen, "listen", "", "the `address` for clients, as in :7400; port 0 is a free port")
	lockflags.DurationVar(set, &o.margin, "margin", 12*time.Second,
		"the `duration` before the possible expiry of the session at which the server takes it for lost. It must cover the silence of a\n"+
			"follower: (syncLimit + 1/2) ticks and the round trips, which is 12s with ZooKeeper's tick of 2s and syncLimit of 5. -session\n"+
			"less -margin, less 2s, is what a client may believe after its last renewal: 16s")
	lockflags.DurationVar(set, &o.lease, "lease", 30*time.Second,
		"the longest `duration` for which a client may believe in its locks without an answer; -session and -margin bound it, too")
	lockflags.DurationVar(set, &o.drain, "drain", time.Minute,
		"how long clients have at the end to release, or to see their leases end; after this `duration` lockd exits with 75.\n"+
			"Of it a fifth is for clients to release, and the rest must be longer than the lease")
}

func (o *lockdFlags) check(args []string) error {
	switch {
	case len(args) > 0:
		return fmt.Errorf("argument %q: no arguments are accepted beside the flags", args[0])
	case o.listen == "":
		return errors.New("-listen is missing: it must be the address for clients, as in :7400")
	case !isAddress(o.listen):
		return fmt.Errorf("-listen %q: it must be host:port or :port, as in :7400", o.listen)
	case o.margin <= 0:
		return fmt.Errorf("-margin %v: it must be positive", o.margin)
	case o.Session > 0 && o.margin > o.Session/2:
		return fmt.Errorf("-margin %v, -session %v: the margin must be half of the session timeout at most", o.margin, o.Session)
	case o.lease < remote.MinLease:
		return fmt.Errorf("-lease %v: it must be %v at least", o.lease, remote.MinLease)
	case o.drain < 0:
		return fmt.Errorf("-drain %v: it must not be negative", o.drain)
	}
	if err := o.Flags.Check(); err != nil {
		return err
	}
	return o.clients.Check(o.insecure)
}

func isAddress(text string) bool {
	_, port, err := net.SplitHostPort(text)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	return err == nil
}

// parse returns the options in the arguments and the environment. It prints the usage for -h, and
// returns flag.ErrHelp.
func parse(args []string) (*lockdFlags, error) {
	o := &lockdFlags{Flags: lockflags.Flags{Warn: warn}}
	set := flag.NewFlagSet("lockd", flag.ContinueOnError)
	set.SetOutput(io.Discard) // main prints the error
	o.define(set)
	err := set.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		help(set)
	}
	if err == nil {
		err = o.ReadEnvironment(set, os.LookupEnv)
	}
	if err == nil {
		err = o.check(set.Args())
	}
	return o, err
}

func help(set *flag.FlagSet) {
	fmt.Print("usage: lockd -zk SERVERS -listen ADDR (-tls-cert FILE -tls-key FILE -tls-client-ca FILE | -insecure) [flags]\n" +
		"Serves the locks of a ZooKeeper ensemble to processes without ZooKeeper, until SIGTERM or SIGINT.\n\nFlags:\n")
	set.SetOutput(os.Stdout)
	set.PrintDefaults()
	fmt.Printf("\nA flag of ZooKeeper that is left out is taken from the environment: %s for -zk, and so on.\n%s\n"+
		"\nExit codes: 0 drained, %d usage, %d ZooKeeper unreachable or refuses, %d the drain was cut short\n",
		lockflags.EnvName("zk"), lockflags.AuthHelp, exitUsage, exitUnavailable, exitCutShort)
}

// stderr writes the messages of lockd and the library.
var stderr = console.Logger(os.Stderr, "lockd", slog.LevelInfo)

func warn(format string, args ...any) { stderr.Error(fmt.Sprintf(format, args...)) }

func main() {
	console.Survive() // a broken standard error must not end the server
	o, err := parse(os.Args[1:])
	code := exitUsage
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(0)
	case err == nil:
		code, err = o.run(os.Stdout)
	}
	if err != nil {
		warn("%v", err)
		host.AwaitLog(stderr, time.Second)
	}
	os.Exit(code)
}
