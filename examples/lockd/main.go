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
// # Certificates
//
// The files of certificates, keys and authorities are read again for each handshake if they have
// changed: a renewed certificate needs no restart. SIGHUP reads them again at once, as it does the
// rules, and ends nothing. Files that cannot be used change nothing. lockd warns a week and a day
// before a certificate ends, after its end, and when it refuses a client whose certificate has ended.
//
// # Rules
//
// -allow names a file of rules for what clients may do, one a line. The first rule that matches counts.
// lockd refuses what no rule allows. Empty lines and those that begin with # are ignored.
//
//	allow spiffe://prod/backup  /locks/backup  acquire,inspect
//	deny  *                     /locks/secret  *
//	allow *                     /              inspect
//
// A line has allow or deny; the identity of clients, which is the first URI of their certificate, else
// the first DNS name, else the common name, and may end with a * for any text; the path of a lock or of
// a directory above it; and what clients do: acquire, inspect, change (ask a holder to release, take a
// lock from it, change a number of permits), or * for all. lockd looks for a change of the file
// once a second. What a client holds it keeps when the rules change. lockd -check-allow FILE IDENTITY
// VERB PATH says what holds, with exit code 0 for allowed and 1 for refused.
//
// # Metrics and audit
//
// -metrics serves /metrics in Prometheus' format, and /health, which is 200 while lockd takes clients and
// its session is connected, else 503. Neither needs a certificate, so that -metrics should be an
// address that only the monitoring reaches.
//
// -audit appends a line of JSON to a file for each grant, release and loss of a client's lock, and for
// each change that a client asks for (revoke, revoke-holders, set-count, try-set-count): time, event,
// identity, address, path, recipe, kind, owner, token, seconds (waited, or held), arguments, error.
// SIGHUP opens the file again, so that it can be moved away. No lock waits for the disk: what cannot be
// written is dropped, and a line with the event dropped, a line of the log and
// actorlock_audit_dropped_total say how many.
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
//	 0  it has drained; of -check-allow: allowed
//	 1  of -check-allow: refused
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
	allow    string
	metrics  string
	audit    string
	check    string // the file of -check-allow
	args     []string
	limits   remote.ServerConfig // of which only the limits are set
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
	set.StringVar(&o.allow, "allow", "", "the `file` of rules for what clients may do, one a line: allow|deny IDENTITY PATH VERB[,VERB] (default: all clients may do all)")
	set.StringVar(&o.metrics, "metrics", "", "the `address`, as in 127.0.0.1:7401, for /metrics in Prometheus' format and /health, without TLS and for everybody who reaches it")
	set.StringVar(&o.audit, "audit", "", "append a line of JSON for each grant, release, loss and change to this `file`; - is standard output")
	set.StringVar(&o.check, "check-allow", "", "print what the rules in this `file` say of IDENTITY VERB PATH, which follow, and serve nobody")
	lockflags.IntVar(set, &o.limits.MaxClients, "max-clients", 20_000, "the largest `number` of clients at one time")
	lockflags.IntVar(set, &o.limits.MaxClientsPerPeer, "max-clients-per-peer", 0, "the largest `number` of clients of one identity at one address (default: a quarter of -max-clients)")
	lockflags.IntVar(set, &o.limits.MaxQuestionsPerClient, "max-questions", 64, "the largest `number` of questions of one client that are open, as of lockrun watch")
	lockflags.SizeVar(set, &o.limits.MaxDataPerClient, "max-data", "the largest `size` of the data in the nodes of one client's requests (default: 8MiB)")
	lockflags.IntVar(set, &o.limits.MaxRequestsPerClient, "max-requests", 10_000, "the largest `number` of requests of one client that wait or hold, by what they cost; all clients of one identity at one address may have four times as many")
}

func (o *lockdFlags) checkAll(args []string) error {
	if o.args = args; o.check != "" {
		return nil
	}
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
	case o.metrics != "" && !isAddress(o.metrics):
		return fmt.Errorf("-metrics %q: it must be host:port or :port, as in 127.0.0.1:7401", o.metrics)
	case o.drain < 0:
		return fmt.Errorf("-drain %v: it must not be negative", o.drain)
	case o.allow != "" && o.insecure:
		return errors.New("-allow and -insecure: without TLS no client has an identity for rules")
	case o.limits.MaxClients < 1:
		return fmt.Errorf("-max-clients %d: it must be 1 or more", o.limits.MaxClients)
	case o.limits.MaxClientsPerPeer < 0:
		return fmt.Errorf("-max-clients-per-peer %d: it must be positive, or 0 for a quarter of -max-clients", o.limits.MaxClientsPerPeer)
	case o.limits.MaxQuestionsPerClient < 1:
		return fmt.Errorf("-max-questions %d: it must be 1 or more", o.limits.MaxQuestionsPerClient)
	case o.limits.MaxRequestsPerClient < 1:
		return fmt.Errorf("-max-requests %d: it must be 1 or more", o.limits.MaxRequestsPerClient)
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
		err = o.checkAll(set.Args())
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

// stderr writes the messages of lockd and the library, with time and level. The handler quotes what is
// not printable.
var stderr = host.BoundLogger(slog.New(slog.NewTextHandler(os.Stderr, nil)))

func warn(format string, args ...any) { stderr.Error(fmt.Sprintf(format, args...)) }

func main() {
	console.Survive() // a broken standard error must not end the server
	o, err := parse(os.Args[1:])
	code := exitUsage
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(0)
	case err == nil && o.check != "":
		code, err = checkAllow(o.check, o.args)
	case err == nil:
		code, err = o.run(os.Stdout)
	}
	if err != nil {
		warn("%v", err)
		host.AwaitLog(stderr, time.Second)
	}
	os.Exit(code)
}
