package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/actorlock/actorlock/actors"
)

const generationUsage = `usage: lockrun generation -zk SERVERS [-raise]
Prints the generation with which the ensemble's tokens begin. Raise it after a restore
from a backup, or after a move of the locks to another ensemble, before clients come back.
`

// generation runs lockrun generation, and returns the exit code.
func generation(args []string) (int, error) {
	o := &options{session: 20 * time.Second, forever: true}
	flags := newFlags(o)
	raise := flags.Bool("raise", false, "raise the generation first, and so all later tokens")
	err := parseFlags(flags, generationUsage, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0, nil
	case err != nil:
		return exitUsage, err
	case o.servers == "":
		return exitUsage, errNoServers
	case flags.NArg() > 0:
		return exitUsage, fmt.Errorf("generation %s: no arguments are accepted beside the flags", flags.Arg(0))
	}
	signals := catch()
	locks, code, err := open(o, time.Now(), signals)
	if err != nil {
		return code, err
	}
	defer closeWithin(closeLimit(locks), locks)
	return printGeneration(o, locks, *raise, signals)
}

func printGeneration(o *options, locks *actors.Locks, raise bool, signals <-chan os.Signal) (int, error) {
	notified, stop := signal.NotifyContext(context.Background(), forwarded()...)
	defer stop()
	ctx, cancel := context.WithTimeout(notified, o.outageLimit())
	defer cancel()
	ask := locks.Generation
	if raise {
		ask = locks.RaiseGeneration
	}
	g, err := ask(ctx)
	switch {
	case err == nil:
		fmt.Println(g)
		return 0, nil
	case notified.Err() != nil:
		return exitSignal + number(<-signals), err
	}
	return exitUnavailable, err
}
