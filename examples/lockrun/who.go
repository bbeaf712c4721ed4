package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/actorlock/actorlock/actors"
)

var whoCommand = &command{
	name:      "who",
	arguments: "[flags] LOCK",
	about:     "Prints the holders and waiters of LOCK in queue order.\nIt shows the clients of any library.",
	examples: []string{
		"who -zk zk1:2181 /locks/backup",
		"who -zk zk1:2181 /locks/backup -json | jq -r '.[] | select(.holds) | .host'",
	},
	define:   defineJSON,
	check:    (*options).checkLock,
	run:      who,
	connects: true,
}

func defineJSON(o *options, f *flags) {
	f.BoolVar(&o.json, "json", false, "print JSON with stable field names")
}

func who(o *options) (int, error) {
	unreachable := o.findUnreachable()
	code, err := withLocksWithin(o, lookLimit, func(ctx context.Context, locks *actors.Locks) error {
		ctx, cancel := context.WithTimeout(ctx, lookLimit)
		defer cancel()
		q, err := inspect(ctx, locks, o.path)
		if err != nil && len(q.all) == 0 {
			return err
		}
		return errors.Join(o.show(q), err)
	})
	if down := <-unreachable; down != nil && err != nil {
		err = fmt.Errorf("%w\n%w", err, down)
	} else if down != nil {
		warn("%v", down)
	}
	return code, err
}

// lookLimit is how long lockrun who tries to connect, and then waits for the answer: it is for people in an
// incident. Tests raise it, for machines that have other work.
var lookLimit = 4 * time.Second

// findUnreachable returns a channel that receives which servers cannot be reached.
func (o *options) findUnreachable() <-chan error {
	found := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), lookLimit)
		defer cancel()
		found <- o.Unreachable(ctx)
	}()
	return found
}

// show prints a queue.
func (o *options) show(q lockQueue) error {
	if o.json {
		return printJSON(append([]contender{}, q.all...))
	}
	q.print(os.Stdout)
	return nil
}

var watchCommand = &command{
	name:      "watch",
	arguments: "[flags] LOCK",
	about:     "Prints the holders and waiters of LOCK, again at each change.\nIt ends when it is interrupted, and outlives the loss of connections.",
	examples: []string{
		"watch -zk zk1:2181 /locks/backup",
		"watch -zk zk1:2181 /locks/backup -json    # one array per line, as of who -json",
	},
	define:   defineJSON,
	check:    (*options).checkLock,
	run:      watch,
	connects: true,
}

func watch(o *options) (int, error) {
	return withLocks(o, func(ctx context.Context, locks *actors.Locks) error {
		first := true
		for q := range locks.Observe(ctx, o.path) {
			if errors.Is(q.Err, actors.ErrNoAuth) {
				return q.Err
			}
			if q.Err != nil {
				warn("%v; the queue may have changed since it was printed", plain(q.Err))
				continue
			}
			if !o.json {
				startScreen(first)
			}
			first = false
			if err := o.show(queueOf(q)); err != nil {
				return err
			}
		}
		return nil
	})
}

// startScreen begins the output of a change: on a cleared terminal, or after an empty line.
func startScreen(first bool) {
	const clear = "\x1b[H\x1b[2J"
	switch {
	case isTerminal(os.Stdout):
		fmt.Print(clear)
	case !first:
		fmt.Println()
	}
	fmt.Println(time.Now().Format(time.DateTime))
}

// isTerminal reports whether a file is a device of characters other than the null device.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}
