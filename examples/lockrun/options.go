package main

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/actorlock/actorlock/examples/internal/lockflags"
	"github.com/actorlock/actorlock/zkbridge/zkpath"
)

// options are the flags and arguments of all commands.
type options struct {
	lockflags.Flags
	args []string // that are no flags

	// of a command to run
	path       string
	mode       string
	permits    int
	partitions int
	shares     bool // -partitions is given
	wait       time.Duration
	forever    bool // no -wait
	data       string
	onRevoke   string
	verbose    bool
	command    []string

	// of subcommands
	json  bool
	yes   bool
	grace time.Duration
	raise bool
	node  string // of the queue, if the argument is a node and not a lock
	token string
}

var runCommand = &command{
	arguments: "(-zk SERVERS | -server SERVERS) -lock PATH [flags] -- CMD ARG...",
	about: "Runs CMD while holding the lock PATH on ZooKeeper, and stops CMD if the lock is lost.\n" +
		"It waits for the lock also while ZooKeeper cannot be reached; at the start that is exit code 69.",
	examples: []string{
		"-zk zk1:2181,zk2:2181 -lock /locks/backup -- ./backup.sh --full",
		"-zk zk1:2181 -lock /locks/backup -wait 0 -- ./backup.sh        # exit code 75 if the lock is taken",
		"-zk zk1:2181 -lock /locks/data -mode read -wait 1m -- ./report.sh",
		"-zk zk1:2181 -lock /locks/tapes -mode semaphore -permits 3 -- ./backup.sh",
		"-zk zk1:2181 -lock /locks/index -v -on-revoke TERM -- ./reindex.sh",
		`-zk zk1:2181 -lock /locks/db -- sh -c 'psql -v token="$ACTORLOCK_TOKEN" -f job.sql'`,
		"-zk zk1:2181 -lock /jobs -partitions 16 -- ./worker.sh {}        # once for each partition that it leads",
		"-server lock1:7400 -tls-ca ca.pem -tls-cert me.pem -tls-key me.key -lock /locks/backup -- ./backup.sh",
		"-zk zk1:2281 -tls-ca ca.pem -auth-file /etc/lockrun.auth -acl creator -lock /locks/backup -- ./backup.sh",
	},
	define:   defineRun,
	check:    (*options).checkRun,
	run:      run,
	connects: true,
}

func defineRun(o *options, f *flags) {
	f.StringVar(&o.path, "lock", "", "the lock's `path`, as in /locks/backup")
	f.StringVar(&o.mode, "mode", "mutex", "the `mode` of holding the lock: "+strings.Join(acceptedModes(), ", "))
	lockflags.IntVar(f.FlagSet, &o.permits, "permits", 1, "the `number` that may hold the semaphore at a time; the same number for all users of the semaphore")
	lockflags.IntVar(f.FlagSet, &o.partitions, "partitions", 0, "share this `number` of partitions with all lockruns of the lock, and run the command once for each that this one leads; {} is its number")
	lockflags.DurationVar(f.FlagSet, &o.grace, "grace", 10*time.Second, "with -partitions: the `duration` that a command has to end before its partition goes to another lockrun")
	lockflags.DurationVar(f.FlagSet, &o.wait, "wait", 0, "give up with exit code 75 after this `duration`; 0 tries once (default: wait for ever)")
	f.StringVar(&o.data, "data", "", "`text` that other clients can read beside host, process and owner, while the lock is held or waited for")
	f.StringVar(&o.onRevoke, "on-revoke", "", "send the command this `signal` when another client asks for the lock: "+strings.Join(acceptedSignals(), ", "))
	f.BoolVar(&o.verbose, "v", false, "say on standard error who holds the lock, the place in the queue, and the times")
	f.values["mode"] = strings.Join(acceptedModes(), " ")
	f.values["on-revoke"] = strings.Join(acceptedSignals(), " ")
}

func (o *options) checkRun() error {
	o.command = o.args
	switch {
	case o.path == "":
		return errors.New("-lock is missing: it must be a path on ZooKeeper, as in /locks/backup")
	case o.permits < 1 || o.permits > math.MaxInt32:
		return fmt.Errorf("-permits %d: it must be from 1 to %d", o.permits, math.MaxInt32)
	case modes[o.mode] == nil:
		return fmt.Errorf("-mode %q is not available: accepted is %s", o.mode, strings.Join(acceptedModes(), ", "))
	case o.mode != "semaphore" && o.permits != 1:
		return fmt.Errorf("-permits %d: only a semaphore has more than 1, see -mode", o.permits)
	case o.wait < 0:
		return fmt.Errorf("-wait %v: it must not be negative; leave it out to wait for ever", o.wait)
	case o.onRevoke != "" && revokeSignal(o.onRevoke) == nil:
		return fmt.Errorf("-on-revoke %q is no signal that can be sent: accepted is %s", o.onRevoke, strings.Join(acceptedSignals(), ", "))
	case o.shares && (o.partitions < 1 || o.partitions > maxPartitions):
		return fmt.Errorf("-partitions %d: it must be from 1 to %d", o.partitions, maxPartitions)
	case o.grace < 0:
		return fmt.Errorf("-grace %v: it must not be negative", o.grace)
	case o.shares && (o.mode != "mutex" || !o.forever || o.onRevoke != ""):
		return fmt.Errorf("-partitions %d: -mode, -wait and -on-revoke are of a single lock", o.partitions)
	case len(o.command) == 0 || o.command[0] == "":
		return errors.New("the command is missing: write it behind --, as in -- ./backup.sh --full")
	}
	return checkPath("-lock", o.path)
}

// maxPartitions bounds -partitions: each has a process.
const maxPartitions = 4096

// checkPath returns an error unless path can be a lock's.
func checkPath(what, path string) error {
	if path == "/" {
		return fmt.Errorf("%s /: it must be a path below the root, as in /locks/backup", what)
	}
	if err := zkpath.Check(path); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

func acceptedModes() []string { return slices.Sorted(maps.Keys(modes)) }

func acceptedSignals() []string { return slices.Sorted(maps.Keys(signals)) }

// revokeSignal returns the signal of a name such as TERM or SIGTERM, or nil.
func revokeSignal(name string) os.Signal {
	return signals[strings.TrimPrefix(strings.ToUpper(name), "SIG")]
}
