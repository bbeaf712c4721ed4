// Command planted applies each of the deliberate faults beside it to a copy of the tree, runs
// the simulation there, and prints what found the fault, after how long, by which seed.
//
//	go run ./actors/simulation/planted [-for 5m] [name...]
//
// It is to be run in the root of the module. It exits with 1 if a fault is not found.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

const folder = "actors/simulation/planted"

func main() {
	limit := flag.Duration("for", 5*time.Minute, "how long the simulation looks for each fault")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *limit, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, limit time.Duration, names []string) error {
	patches, err := filepath.Glob(folder + "/*.patch")
	if err != nil || len(patches) == 0 {
		return fmt.Errorf("no patches in %s: run it in the root of the module", folder)
	}
	missed := 0
	for _, patch := range patches {
		name := strings.TrimSuffix(filepath.Base(patch), ".patch")
		if len(names) > 0 && !slices.Contains(names, name) {
			continue
		}
		start := time.Now()
		found, err := look(ctx, patch, limit)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", name, err)
		case found == "":
			missed++
			found = "NOT FOUND"
		}
		fmt.Printf("%-28s %7v  %s\n", name, time.Since(start).Round(time.Second), found)
	}
	if missed > 0 {
		return fmt.Errorf("%d faults are not found", missed)
	}
	return nil
}

// look runs the simulation on a copy of the tree with the patch.
func look(ctx context.Context, patch string, limit time.Duration) (found string, err error) {
	tree, err := os.MkdirTemp("", "planted")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tree)
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for _, part := range []string{"go.mod", "go.sum", "actors", "gen", "messages", "zkbridge"} {
		if err := command(ctx, here, "cp", "-r", part, tree); err != nil {
			return "", err
		}
	}
	if err := command(ctx, tree, "git", "apply", "--whitespace=nowarn", filepath.Join(here, patch)); err != nil {
		return "", err
	}
	if err := command(ctx, tree, "go", "vet", "./actors/simulation"); err != nil {
		return "", err
	}
	test := exec.CommandContext(ctx, "go", "test", "./actors/simulation", "-run", "^TestSimulation$", "-v", "-count=1",
		"-sim.from", "0", "-sim.for", limit.String(), "-timeout", (limit + 5*time.Minute).String())
	test.Dir = tree
	out, err := test.CombinedOutput()
	if err == nil {
		return "", nil
	}
	return what(string(out)), ctx.Err()
}

func command(ctx context.Context, dir, name string, args ...string) error {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return nil
}

var (
	violation = regexp.MustCompile(`simulation_test\.go:\d+: (at .*)`)
	failure   = regexp.MustCompile(`(?m)^(panic: .*|fatal error: .*)`)
	seed      = regexp.MustCompile(`seed (\d+):`)
)

// what says what a failed run has found.
func what(out string) string {
	text := "the run fails"
	for _, r := range []*regexp.Regexp{violation, failure} {
		if m := r.FindStringSubmatch(out); m != nil {
			text = m[1]
			break
		}
	}
	if m := seed.FindStringSubmatch(out); m != nil {
		text = "seed " + m[1] + ", " + text
	}
	return text
}
