package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"

	"golang.org/x/sync/errgroup"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/examples/internal/console"
	"github.com/actorlock/actorlock/zkbridge/zkpath"
)

var lsCommand = &command{
	name:      "ls",
	arguments: "[flags] PATH",
	about:     "Lists the locks at and below PATH: recipe, holders, waiters.",
	examples: []string{
		"ls -zk zk1:2181 /locks",
		"ls -zk zk1:2181 / -json | jq '.[] | select(.waiters > 0) | .path'",
	},
	define:   defineJSON,
	check:    (*options).checkFolder,
	run:      ls,
	connects: true,
}

func (o *options) checkFolder() error {
	switch {
	case len(o.args) == 0:
		return errors.New("the path is missing: it must be a path on ZooKeeper, as in /locks, or / for all locks")
	case len(o.args) > 1:
		return fmt.Errorf("argument %q: one path is accepted, and %s came before", o.args[1], o.args[0])
	}
	o.path = o.args[0]
	if err := zkpath.Check(o.path); err != nil {
		return fmt.Errorf("path: %w", err)
	}
	return nil
}

// lockSummary is a lock as -json prints it.
type lockSummary struct {
	Path    string      `json:"path"`
	Recipe  string      `json:"recipe,omitempty"`
	Permits int         `json:"permits,omitempty"`
	Holders []contender `json:"holders"`
	Waiters int         `json:"waiters"`
}

func ls(o *options) (int, error) {
	return withLocks(o, func(ctx context.Context, locks *actors.Locks) error {
		ctx, cancel := o.requestContext(ctx)
		defer cancel()
		paths, err := locks.FindLocks(ctx, o.path)
		all, unread := list(ctx, locks, paths)
		err = errors.Join(err, unread)
		switch {
		case err != nil && len(all) == 0: // an empty list would look as if all was well
			return err
		case o.json:
			return errors.Join(printJSON(all), err)
		}
		printList(o.path, all)
		return err
	})
}

// inspections is the number of locks that ls reads at a time.
const inspections = 16

// list inspects the locks at the paths. It leaves out locks that have become free. The error names
// the locks that it cannot read.
func list(ctx context.Context, locks *actors.Locks, paths []string) ([]lockSummary, error) {
	queues, failures := make([]lockQueue, len(paths)), make([]error, len(paths))
	var g errgroup.Group
	g.SetLimit(inspections)
	for i, path := range paths {
		g.Go(func() error {
			queues[i], failures[i] = inspect(ctx, locks, path)
			return nil
		})
	}
	g.Wait()
	all, unread := []lockSummary{}, map[string]error{}
	for i, q := range queues {
		if holders := q.holders(); len(q.all) > 0 {
			all = append(all, lockSummary{q.path, q.recipe, q.permits, holders, len(q.all) - len(holders)})
		}
		if failures[i] != nil {
			unread[paths[i]] = failures[i]
		}
	}
	if len(unread) > 0 {
		return all, &actors.SkippedError{Reasons: unread}
	}
	return all, nil
}

func printList(path string, all []lockSummary) {
	if len(all) == 0 {
		say("%s: no lock at or below this path has a contender", path)
		return
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "LOCK\tRECIPE\tHOLDERS\tWAITERS\tHELD BY")
	for _, l := range all {
		by := ""
		if len(l.Holders) > 0 {
			by = l.Holders[0].name()
		}
		if len(l.Holders) > 1 {
			by += fmt.Sprintf(" and %d more", len(l.Holders)-1)
		}
		fmt.Fprintln(table, console.Row(l.Path, l.Recipe, len(l.Holders), l.Waiters, by))
	}
	table.Flush()
}
