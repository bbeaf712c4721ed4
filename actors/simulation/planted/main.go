// Command planted applies each of the deliberate faults beside it to a copy of the tree, runs
// the simulation there, and prints which check found the fault, after how long, by which seed.
//
//	go run ./actors/simulation/planted [-for 5m] [-from 1] [-known] [name...]
//
// Run it in the root of the module. At the end it prints a table for the README of the
// simulation. It exits with 1 if a fault is not found. A finding counts only if the tree without
// the fault passes the same seed. With -known it runs the seed that the README names for a fault, and
// others only where that one does not find it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	folder = "actors/simulation/planted"
	readme = "actors/simulation/README.md"
)

func main() {
	limit := flag.Duration("for", 5*time.Minute, "how long the simulation looks for each fault, in processor time")
	from := flag.Uint64("from", 1, "first seed; 0 takes fresh ones")
	known := flag.Bool("known", false, "begin with the seed of the README's table")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *limit, *from, *known, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, limit time.Duration, from uint64, known bool, names []string) error {
	patches, err := choose(names)
	if err != nil {
		return err
	}
	seeds := map[string]string{}
	if known {
		if seeds, err = readSeeds(); err != nil {
			return err
		}
	}
	s, err := newSite(ctx)
	if s != nil {
		defer os.RemoveAll(s.tree)
	}
	if err != nil {
		return err
	}
	var rows []string
	missed := 0
	for _, patch := range patches {
		found, err := s.find(ctx, patch, limit, from, seeds[nameOf(patch)])
		if err != nil {
			return fmt.Errorf("%s: %w", nameOf(patch), err)
		}
		if found.text == "" {
			missed++
			found.text = "NOT FOUND"
		}
		fmt.Printf("%-28s %5.0f s  seed %s: %s\n", nameOf(patch), found.after.Seconds(), found.seed, found.text)
		rows = append(rows, fmt.Sprintf("| %s | %s | %s | %.0f s |", nameOf(patch), short(found.text), found.seed, found.after.Seconds()))
	}
	fmt.Printf("\n| fault | found by | seed | after |\n|---|---|---|---|\n%s\n", strings.Join(rows, "\n"))
	if missed > 0 {
		return fmt.Errorf("%d faults of %d are not found", missed, len(patches))
	}
	return nil
}

// row matches a row of the README's table.
var row = regexp.MustCompile(`(?m)^\| ([a-z-]+) \|[^|]*\| (\d+) \|`)

// readSeeds returns the seeds of the README's table, by fault.
func readSeeds() (map[string]string, error) {
	text, err := os.ReadFile(readme)
	seeds := map[string]string{}
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		seeds[m[1]] = m[2]
	}
	return seeds, err
}

func nameOf(patch string) string { return strings.TrimSuffix(filepath.Base(patch), ".patch") }

// choose returns the paths of the named patches, or of all.
func choose(names []string) ([]string, error) {
	patches, err := filepath.Glob(folder + "/*.patch")
	if err != nil || len(patches) == 0 {
		return nil, fmt.Errorf("no patches in %s: run it in the root of the module", folder)
	}
	if len(names) == 0 {
		return patches, nil
	}
	var chosen []string
	for _, name := range names {
		i := slices.IndexFunc(patches, func(patch string) bool { return nameOf(patch) == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no %s/%s.patch", folder, name)
		}
		chosen = append(chosen, patches[i])
	}
	return chosen, nil
}

// site is a copy of the tree.
type site struct {
	here, tree string
}

// newSite copies the tree and compiles the simulation without a fault.
func newSite(ctx context.Context) (*site, error) {
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	tree, err := os.MkdirTemp("", "planted")
	if err != nil {
		return nil, err
	}
	s := &site{here, tree}
	for _, part := range []string{"go.mod", "go.sum", "actors", "gen", "messages", "zkbridge"} {
		if err := command(ctx, here, "cp", "-r", part, tree); err != nil {
			return s, err
		}
	}
	return s, s.build(ctx, "sound")
}

func (s *site) build(ctx context.Context, name string) error {
	return command(ctx, s.tree, "go", "test", "-c", "-o", filepath.Join(s.tree, name+".test"), "./actors/simulation")
}

// finding is the outcome for one fault. Its text is empty if the fault was not found.
type finding struct {
	text  string
	seed  string
	after time.Duration // processor time of the simulation, without compiling
}

// find runs the simulation with the patch until a seed fails that passes without the patch. It begins
// with the known seed, if there is one.
func (s *site) find(ctx context.Context, patch string, limit time.Duration, from uint64, known string) (f finding, err error) {
	path := filepath.Join(s.here, patch)
	if err := command(ctx, s.tree, "git", "apply", "--whitespace=nowarn", path); err != nil {
		return f, err
	}
	err = s.build(ctx, "faulty")
	if err := errors.Join(err, command(ctx, s.tree, "git", "apply", "-R", "--whitespace=nowarn", path)); err != nil {
		return f, err
	}
	if known != "" {
		out, took, failed := s.simulate(ctx, "faulty", "-sim.seed", known)
		if failed {
			_, _, failed = s.simulate(ctx, "sound", "-sim.seed", known)
			if !failed {
				f.text, _ = what(out)
				f.seed, f.after = known, took
				return f, ctx.Err()
			}
		}
	}
	for f.after < limit {
		out, took, failed := s.simulate(ctx, "faulty", "-sim.from", strconv.FormatUint(from, 10), "-sim.for", (limit - f.after).String())
		f.after += took
		if err := ctx.Err(); err != nil {
			return f, err
		}
		if !failed { // on a busy machine it has had less of a processor than of time
			m := passed.FindStringSubmatch(out)
			if m == nil {
				return f, fmt.Errorf("the output does not say how many seeds passed: %s", out)
			}
			if n, _ := strconv.ParseUint(m[1], 10, 64); from != 0 {
				from += n
			}
			continue
		}
		text, seed := what(out)
		if seed == "" {
			return f, fmt.Errorf("the output names no seed: %s", out)
		}
		out, _, failed = s.simulate(ctx, "sound", "-sim.seed", seed)
		if !failed {
			f.text, f.seed = text, seed
			return f, ctx.Err()
		}
		text, _ = what(out)
		fmt.Printf("seed %s fails without a fault, too: %s\n", seed, text)
		if from != 0 {
			from, err = strconv.ParseUint(seed, 10, 64)
			if err != nil {
				return f, err
			}
			from++
		}
	}
	return f, nil
}

// simulate runs one of the compiled simulations.
func (s *site) simulate(ctx context.Context, name string, args ...string) (out string, took time.Duration, failed bool) {
	test := exec.CommandContext(ctx, filepath.Join(s.tree, name+".test"), append(args, "-test.run", "^TestSimulation$", "-test.v", "-test.timeout", "20m")...)
	test.Dir = filepath.Join(s.tree, "actors", "simulation")
	text, err := test.CombinedOutput()
	if test.ProcessState != nil {
		took = test.ProcessState.UserTime() + test.ProcessState.SystemTime()
	}
	return string(text), took, err != nil
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
	seed      = regexp.MustCompile(`(?:-sim\.)?seed (\d+)`)
	passed    = regexp.MustCompile(`(\d+) seeds:`)
	numbers   = regexp.MustCompile(`^at [^ ]+: `)
)

// what returns what a failed run has found, and the last seed that it names.
func what(out string) (text, last string) {
	text = "the run fails"
	for _, r := range []*regexp.Regexp{violation, failure} {
		if m := r.FindStringSubmatch(out); m != nil {
			text = m[1]
			break
		}
	}
	if all := seed.FindAllStringSubmatch(out, -1); all != nil {
		last = all[len(all)-1][1]
	}
	return text, last
}

// short leaves out the time of a violation, and bars, which would end a cell.
func short(text string) string {
	return strings.ReplaceAll(numbers.ReplaceAllString(text, ""), "|", "/")
}
