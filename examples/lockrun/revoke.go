package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/examples/internal/console"
	"github.com/actorlock/actorlock/examples/internal/lockflags"
)

var revokeCommand = &command{
	name:      "revoke",
	arguments: "[flags] LOCK|NODE",
	about: "Asks the holders of LOCK, or the owner of NODE, to release. They decide.\n" +
		"NODE is a node that who -json prints. lockrun -on-revoke, Grant.Revoked and Curator's makeRevocable\n" +
		"receive the request.",
	examples: []string{
		"revoke -zk zk1:2181 /locks/backup",
		"revoke -zk zk1:2181 -wait 1m /locks/backup    # exit code 75 if it is still held after a minute",
	},
	define: func(o *options, f *flags) {
		defineJSON(o, f)
		lockflags.DurationVar(f.FlagSet, &o.wait, "wait", 0, "wait for the release for this `duration`; exit code 75 if it does not come")
	},
	check:    (*options).checkRevoke,
	run:      revoke,
	connects: true,
}

var breakCommand = &command{
	name:      "break",
	arguments: "[flags] LOCK|NODE",
	about: "Takes LOCK from its holders, or deletes NODE. A waiter whose node is deleted queues again.\n" +
		"It asks them to release as revoke does, and deletes their nodes after -grace. Their processes may\n" +
		"go on for two seconds until they notice: only a resource that checks tokens is safe from them.",
	examples: []string{
		"break -zk zk1:2181 /locks/backup",
		"break -zk zk1:2181 -grace 0 -yes /locks/backup    # at once, without a question",
	},
	define: func(o *options, f *flags) {
		defineJSON(o, f)
		f.BoolVar(&o.yes, "yes", false, "do not ask for a confirmation")
		lockflags.DurationVar(f.FlagSet, &o.grace, "grace", 10*time.Second, "the `duration` that the holders have to release by themselves")
	},
	check:    (*options).checkBreak,
	run:      breakLock,
	connects: true,
}

func (o *options) checkRevoke() error {
	if o.wait < 0 {
		return fmt.Errorf("-wait %v: it must not be negative", o.wait)
	}
	return o.checkLock()
}

func (o *options) checkBreak() error {
	switch {
	case o.grace < 0:
		return fmt.Errorf("-grace %v: it must not be negative", o.grace)
	case !o.yes && !isTerminal(os.Stdin):
		return errors.New("-yes is missing: break asks for a confirmation, and standard input is no terminal")
	}
	return o.checkLock()
}

// outcome is the outcome for a contender, as -json prints it.
type outcome struct {
	Node    string `json:"node"`
	Outcome string `json:"outcome"`
}

// targets returns the contenders of revoke and break: the holders, or the contender whose node was
// given.
func (o *options) targets(ctx context.Context, locks *actors.Locks) ([]contender, error) {
	ctx, cancel := o.requestContext(ctx)
	defer cancel()
	q, err := inspect(ctx, locks, o.path)
	if err != nil || o.node == "" {
		return q.holders(), err
	}
	for _, c := range q.all {
		if c.Node == o.node {
			return []contender{c}, nil
		}
	}
	return nil, nil
}

func revoke(o *options) (int, error) {
	return withLocks(o, func(ctx context.Context, locks *actors.Locks) error {
		targets, err := o.targets(ctx, locks)
		if err != nil {
			return err
		}
		results, err := each(targets, func(c contender) (string, error) {
			limited, cancel := o.requestContext(ctx)
			defer cancel()
			_, err := locks.Revoke(limited, c.Node, 0)
			return "asked", err
		})
		if err == nil && o.wait > 0 {
			err = o.awaitRelease(ctx, locks, results)
		}
		return errors.Join(o.report(targets, results), err)
	})
}

// awaitRelease blocks until the nodes are deleted or -wait is over, and sets their outcomes.
func (o *options) awaitRelease(ctx context.Context, locks *actors.Locks, results []outcome) error {
	ctx, cancel := context.WithTimeout(ctx, o.wait)
	defer cancel()
	for q := range locks.Observe(ctx, o.path) {
		if q.Err != nil {
			continue // it may be readable again
		}
		present := map[string]bool{}
		for _, c := range q.Participants {
			present[c.Node] = true
		}
		remaining := 0
		for i := range results {
			if !present[results[i].Node] {
				results[i].Outcome = "released"
			} else {
				remaining++
			}
		}
		if remaining == 0 {
			return nil
		}
	}
	return fmt.Errorf("%w: %s is not released after %v; lockrun break takes it from its holders", errNotDone, o.path, o.wait)
}

func breakLock(o *options) (int, error) {
	return withLocks(o, func(ctx context.Context, locks *actors.Locks) error {
		targets, err := o.targets(ctx, locks)
		if err != nil {
			return err
		}
		if len(targets) > 0 && !o.yes {
			if err := o.confirm(ctx, targets); err != nil {
				return err
			}
		}
		results, err := each(targets, func(c contender) (string, error) {
			limited, cancel := context.WithTimeout(ctx, o.grace+o.outageLimit())
			defer cancel()
			broken, err := locks.Revoke(limited, c.Node, max(o.grace, 1)) // 0 would only ask
			if broken {
				return "broken", err
			}
			return "released", err
		})
		return errors.Join(o.report(targets, results), err)
	})
}

// confirm asks on the terminal.
func (o *options) confirm(ctx context.Context, targets []contender) error {
	fmt.Fprintf(os.Stderr, "This takes %s from:\n", console.Printable(o.path))
	for _, c := range targets {
		fmt.Fprintln(os.Stderr, console.Printable(fmt.Sprintf("  %s, in the queue since %s", c.name(), c.when())))
	}
	fmt.Fprintf(os.Stderr, "They have %v to release, and their work may go on for two seconds after that. Type yes to go on: ", o.grace)
	answers := make(chan string, 1)
	go func() {
		answer, _ := bufio.NewReader(os.Stdin).ReadString('\n')
		answers <- strings.ToLower(strings.TrimSpace(answer))
	}()
	select {
	case answer := <-answers:
		if answer == "yes" || answer == "y" {
			return nil
		}
		return fmt.Errorf("%w: the answer was not yes", errNotDone)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// each calls f for all targets at once, and returns the outcomes in their order.
func each(targets []contender, f func(contender) (string, error)) ([]outcome, error) {
	results, failures := make([]outcome, len(targets)), make([]error, len(targets))
	var all sync.WaitGroup
	for i, c := range targets {
		all.Go(func() {
			var what string
			if what, failures[i] = f(c); failures[i] != nil {
				what = "failed"
			}
			results[i] = outcome{c.Node, what}
		})
	}
	all.Wait()
	return results, errors.Join(failures...)
}

// report prints the outcomes.
func (o *options) report(targets []contender, results []outcome) error {
	if o.json {
		return printJSON(results)
	}
	if len(targets) == 0 {
		what := o.path + " has no holder"
		if o.node != "" {
			what = o.node + " does not exist"
		}
		say("%s: nothing to do", what)
	}
	for i, c := range targets {
		say("%s: %s, %s", results[i].Outcome, c.name(), c.Node)
	}
	return nil
}
