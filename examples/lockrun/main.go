// Command lockrun runs a command while holding a lock on ZooKeeper:
//
//	lockrun -zk zk1:2181,zk2:2181 -lock /locks/backup -wait 1m -- ./backup.sh --full
//	lockrun -zk zk1:2181,zk2:2181 -lock /locks/data -mode read -- ./report.sh
//	lockrun -zk zk1:2181,zk2:2181 -lock /locks/tapes -mode semaphore -permits 3 -- ./backup.sh
//
// The environment of the command has ACTORLOCK_TOKEN, the fencing token in its sortable text
// form, ACTORLOCK_PATH, the path of the lock, and ACTORLOCK_NODE, the full path of the holder's
// node. The command runs in a process group of its own. lockrun forwards the signals INT, TERM,
// HUP and QUIT to the group. lockrun releases the lock when the command has ended, even if
// processes of the command still run in the background. lockrun stops the group if the lock is
// lost, before the ZooKeeper session can expire. The group is killed if lockrun is killed.
//
// The exit code is that of the command, 128 plus the signal's number if a signal has ended
// the command, or one of these:
//
//	 64  the command line is not acceptable
//	 69  ZooKeeper cannot be reached, does not answer, or refuses, also within -wait
//	 70  the lock was lost; the command's process group has been stopped
//	 75  the lock was not acquired within -wait, counted from the start of lockrun, which ends
//	     at most one second later
//	126  the command cannot be run
//	127  the command was not found
//
// The command has the standard input, output and error of lockrun. A command that reads from the
// terminal gets the terminal's foreground, and its signals: Ctrl-C reaches the command alone, and
// Ctrl-Z does not stop it.
//
//	lockrun generation -zk zk1:2181,zk2:2181
//	lockrun generation -zk zk1:2181,zk2:2181 -raise
//
// prints the generation with which the ensemble's tokens begin. With -raise it raises the
// generation first: do that after a restore from a backup, or a move of the locks to another
// ensemble, before clients connect again. The exit code is 0, or 64, 69 or 128 plus a signal's
// number as above.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/actorlock/actorlock/zkbridge"
)

const (
	exitUsage         = 64
	exitUnavailable   = 69
	exitLost          = 70
	exitNotAcquired   = 75
	exitNotExecutable = 126
	exitNotFound      = 127
	exitSignal        = 128 // plus the signal's number
)

func main() {
	code, err := lockrun(os.Args[1:])
	if err != nil {
		warn("%v", err)
	}
	os.Exit(code)
}

// warn prints a line to standard error.
func warn(format string, args ...any) { fmt.Fprintf(os.Stderr, "lockrun: "+format+"\n", args...) }

func lockrun(args []string) (code int, err error) {
	if len(args) > 0 && args[0] == "generation" {
		return generation(args[1:])
	}
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return 0, nil
	}
	if err == nil {
		err = o.check()
	}
	if err != nil {
		return exitUsage, err
	}
	return run(o)
}

type options struct {
	servers string
	path    string
	mode    string
	permits int
	wait    time.Duration
	forever bool // no -wait
	session time.Duration
	command []string
}

const usage = `usage: lockrun -zk SERVERS -lock PATH [flags] -- CMD ARG...
       lockrun generation -zk SERVERS [-raise]
Runs CMD while holding the lock PATH on ZooKeeper.
`

func parse(args []string) (*options, error) {
	o := &options{}
	flags := newFlags(o)
	flags.StringVar(&o.path, "lock", "", "the lock's `path`, as in /locks/backup")
	flags.StringVar(&o.mode, "mode", "mutex", "how to hold the lock: "+accepted())
	flags.IntVar(&o.permits, "permits", 1, "how many may hold the semaphore at a time; the same number for all users of the semaphore")
	flags.DurationVar(&o.wait, "wait", 0, "give up with exit code 75 after so long; 0 tries once (default: wait for ever)")
	flags.DurationVar(&o.session, "session", 20*time.Second, "the session timeout: how long the lock outlives a lockrun that is cut off")
	err := parseFlags(flags, usage, args)
	o.forever = true
	flags.Visit(func(f *flag.Flag) { o.forever = o.forever && f.Name != "wait" })
	o.command = flags.Args()
	return o, err
}

// newFlags returns the flags that all uses of lockrun have.
func newFlags(o *options) *flag.FlagSet {
	flags := flag.NewFlagSet("lockrun", flag.ContinueOnError)
	flags.StringVar(&o.servers, "zk", "", "the ZooKeeper `servers`, as in zk1:2181,zk2:2181")
	return flags
}

// parseFlags parses args, and prints the usage for -h. Its caller prints the error.
func parseFlags(flags *flag.FlagSet, usage string, args []string) error {
	flags.SetOutput(io.Discard)
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		flags.SetOutput(os.Stdout)
		fmt.Print(usage)
		flags.PrintDefaults()
	}
	return err
}

var errNoServers = errors.New("-zk is missing: it must name the ZooKeeper servers, as in zk1:2181,zk2:2181")

func (o *options) check() error {
	switch {
	case o.servers == "":
		return errNoServers
	case o.path == "":
		return errors.New("-lock is missing: it must be a path on ZooKeeper, as in /locks/backup")
	case o.path == "/":
		return errors.New("-lock /: it must be a path below the root, as in /locks/backup")
	case o.permits < 1 || o.permits > math.MaxInt32:
		return fmt.Errorf("-permits %d: it must be from 1 to %d", o.permits, math.MaxInt32)
	case modes[o.mode] == nil:
		return fmt.Errorf("-mode %q is not available: accepted is %s", o.mode, accepted())
	case o.mode != "semaphore" && o.permits != 1:
		return fmt.Errorf("-permits %d: only a semaphore has more than 1, see -mode", o.permits)
	case o.wait < 0:
		return fmt.Errorf("-wait %v: it must not be negative; leave it out to wait for ever", o.wait)
	case o.session <= 0:
		return fmt.Errorf("-session %v: it must be positive", o.session)
	case len(o.command) == 0 || o.command[0] == "":
		return errors.New("the command is missing: write it behind --, as in -- ./backup.sh --full")
	}
	if err := zkbridge.CheckPath(o.path); err != nil {
		return fmt.Errorf("-lock: %w", err)
	}
	return nil
}

func accepted() string { return strings.Join(slices.Sorted(maps.Keys(modes)), ", ") }
