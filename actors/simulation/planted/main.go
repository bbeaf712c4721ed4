// Command planted checks that the simulation finds the planted faults. It applies each patch beside
// it to a copy of the module, runs the simulation there, and prints the check that found the fault,
// the seed, and the processor time.
//
//	go run ./actors/simulation/planted [-for 5m] [-from 1] [-known] [name...]
//
// Run it in the root of the module. At the end it prints a table for the README of the simulation.
// It exits with 1 if a fault is not found. A seed counts only if it passes without the fault. With
// -known the command first runs the seed of the README's table, and others only if that seed does
// not find the fault. A patch with the line "Found by: go test ..." is of a fault that the
// simulation does not find, or hardly ever: the command runs that test in place of the simulation.
// A fault whose name begins with stream is looked for with lock servers and their clients, and one whose
// name begins with partition in groups of partitions.
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
	limit := flag.Duration("for", 5*time.Minute, "how long to search for each fault, in processor time")
	from := flag.Uint64("from", 1, "first seed; 0: fresh seeds")
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
	patches, err := choosePatches(names)
	if err != nil {
		return err
	}
	seeds := map[string]string{}
	if known {
		if seeds, err = readSeeds(); err != nil {
			return err
		}
	}
	c, err := newModuleCopy(ctx)
	if c != nil {
		defer os.RemoveAll(c.dir)
	}
	if err != nil {
		return err
	}
	var rows []string
	missed := 0
	for _, patch := range patches {
		found, err := c.find(ctx, patch, limit, from, seeds[nameOf(patch)])
		if err != nil {
			return fmt.Errorf("%s: %w", nameOf(patch), err)
		}
		if found.text == "" {
			missed++
			found.text = "NOT FOUND"
		}
		fmt.Printf("%-28s %5.0f s  seed %s: %s\n", nameOf(patch), found.after.Seconds(), found.seed, found.text)
		rows = append(rows, fmt.Sprintf("| %s | %s | %s | %.0f s |", nameOf(patch), tableCell(found.text), found.seed, found.after.Seconds()))
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

// choosePatches returns the paths of the named patches, or of all.
func choosePatches(names []string) ([]string, error) {
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

// moduleCopy is a copy of the module.
type moduleCopy struct {
	root string // of the module itself
	dir  string // of the copy
}

// newModuleCopy copies the module, and compiles the simulation without a fault.
func newModuleCopy(ctx context.Context) (*moduleCopy, error) {
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "planted")
	if err != nil {
		return nil, err
	}
	c := &moduleCopy{root, dir}
	for _, part := range []string{"go.mod", "go.sum", "actors", "gen", "messages", "zkbridge"} {
		if err := command(ctx, root, "cp", "-r", part, dir); err != nil {
			return c, err
		}
	}
	return c, c.build(ctx, "original")
}

func (c *moduleCopy) build(ctx context.Context, name string) error {
	return command(ctx, c.dir, "go", "test", "-c", "-o", filepath.Join(c.dir, name+".test"), "./actors/simulation")
}

// finding is the outcome for one fault. Its text is empty if the fault was not found.
type finding struct {
	text  string
	seed  string
	after time.Duration // processor time of the simulation, without compiling
}

// withPatch calls do while the copy has the patch.
func (c *moduleCopy) withPatch(ctx context.Context, path string, do func() error) error {
	if err := command(ctx, c.dir, "git", "apply", "--whitespace=nowarn", path); err != nil {
		return err
	}
	err := do()
	return errors.Join(err, command(ctx, c.dir, "git", "apply", "-R", "--whitespace=nowarn", path))
}

// findByTest runs the go test arguments with the patch, and without it.
func (c *moduleCopy) findByTest(ctx context.Context, path, args string) (f finding, err error) {
	test := func() error {
		return command(ctx, c.dir, "go", append([]string{"test", "-count=1"}, strings.Fields(args)...)...)
	}
	var failure error
	if err := c.withPatch(ctx, path, func() error { failure = test(); return nil }); err != nil {
		return f, err
	}
	if failure == nil || !strings.Contains(failure.Error(), "--- FAIL") { // not a compile error
		return f, failure
	}
	f.text, f.seed = "go test "+args, "none"
	return f, test()
}

// find runs the simulation with the patch until a seed fails that passes without the patch. It
// begins with the known seed, if there is one.
func (c *moduleCopy) find(ctx context.Context, patch string, limit time.Duration, from uint64, known string) (f finding, err error) {
	path := filepath.Join(c.root, patch)
	text, err := os.ReadFile(path)
	if err != nil {
		return f, err
	}
	if m := foundBy.FindSubmatch(text); m != nil {
		return c.findByTest(ctx, path, string(m[1]))
	}
	test := "TestSimulation"
	switch kind, _, _ := strings.Cut(nameOf(patch), "-"); kind {
	case "stream":
		test = "TestStreams"
	case "partition":
		test = "TestPartitions"
	}
	if err := c.withPatch(ctx, path, func() error { return c.build(ctx, "faulty") }); err != nil {
		return f, err
	}
	if known != "" {
		out, took, failed := c.simulate(ctx, "faulty", test, "-sim.seed", known)
		if failed {
			_, _, failed = c.simulate(ctx, "original", test, "-sim.seed", known)
			if !failed {
				f.text, _ = parseFinding(out)
				f.seed, f.after = known, took
				return f, ctx.Err()
			}
		}
	}
	for f.after < limit {
		out, took, failed := c.simulate(ctx, "faulty", test, "-sim.from", strconv.FormatUint(from, 10), "-sim.for", (limit - f.after).String())
		f.after += took
		if err := ctx.Err(); err != nil {
			return f, err
		}
		if !failed { // on a busy machine the simulation gets less than a full processor, and ends before the limit
			m := passed.FindStringSubmatch(out)
			if m == nil {
				return f, fmt.Errorf("the output has no number of seeds: %s", out)
			}
			if n, _ := strconv.ParseUint(m[1], 10, 64); from != 0 {
				from += n
			}
			continue
		}
		text, seed := parseFinding(out)
		if seed == "" {
			return f, fmt.Errorf("the output names no seed: %s", out)
		}
		out, _, failed = c.simulate(ctx, "original", test, "-sim.seed", seed)
		if !failed {
			f.text, f.seed = text, seed
			return f, ctx.Err()
		}
		text, _ = parseFinding(out)
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
func (c *moduleCopy) simulate(ctx context.Context, name, test string, args ...string) (out string, took time.Duration, failed bool) {
	cmd := exec.CommandContext(ctx, filepath.Join(c.dir, name+".test"), append(args, "-test.run", "^"+test+"$", "-test.v", "-test.timeout", "20m")...)
	cmd.Dir = filepath.Join(c.dir, "actors", "simulation")
	text, err := cmd.CombinedOutput()
	if cmd.ProcessState != nil {
		took = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	return string(text), took, err != nil
}

func command(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return nil
}

// foundBy matches the line of a patch that names the test of its fault.
var foundBy = regexp.MustCompile(`(?m)^Found by: go test (.+)$`)

var (
	violation  = regexp.MustCompile(`simulation_test\.go:\d+: (at .*)`)
	failure    = regexp.MustCompile(`(?m)^(panic: .*|fatal error: .*)`)
	seed       = regexp.MustCompile(`(?:-sim\.)?seed (\d+)`)
	passed     = regexp.MustCompile(`(\d+) seeds:`)
	timePrefix = regexp.MustCompile(`^at [^ ]+: `)
)

// parseFinding returns the violation of a failed run, and the last seed in its output.
func parseFinding(out string) (text, last string) {
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

// tableCell returns the text without the time of the violation, and without bars, which would end a
// cell.
func tableCell(text string) string {
	return strings.ReplaceAll(timePrefix.ReplaceAllString(text, ""), "|", "/")
}
