// Command bench measures actorlock and other locks side by side:
//
//	go -C bench run . -scenarios uncontended,hot64 -peers actorlock,zklock -seconds 3 -out /tmp/bench
//	go -C bench run . -compare main -scenarios uncontended,hot64
//
// It starts the servers that it needs on free ports of the loopback, and stops them in any case when it ends. For each
// scenario it runs -rounds rounds, and in each round one peer after the other. Each peer has processes of its own, in any language,
// which use the protocol of protocol.go.
//
// Files in reading order: scenario*.go has the scenarios, plan.go their order; environment.go and servers.go start what a run
// needs, network.go the networks, workers.go the worker processes; worker.go, load.go and exclusion.go are the worker's side; peer*.go are the peers;
// group*.go have the members of scenario partitions, and their terms;
// summary.go, bars.go and report.go make the report, plot.go and plots.go its images; commits.go and comparison.go compare two
// commits of this library.
//
// The exit code is 0, or one of these:
//
//	 1  a peer failed in some scenario, or actorlock let two holders in; the results of the others are written
//	64  the command line is not acceptable
//	69  a server cannot be started or reached
//	130  interrupted
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

const (
	exitFailed      = 1
	exitUsage       = 64
	exitUnavailable = 69
	exitInterrupted = 130
)

func main() {
	workIfAsked()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	ctx = endWithGoCommand(ctx)
	code, err := bench(ctx, os.Args[1:], os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
	stop()
	os.Exit(code)
}

// workIfAsked runs the process as a worker, a member or a network, and ends it, if it was started as one.
func workIfAsked() {
	if len(os.Args) == 4 && os.Args[1] == workerCommand {
		os.Exit(serveWorker(os.Args[2], os.Args[3], os.Stdin, os.Stdout))
	}
	if len(os.Args) == 4 && os.Args[1] == memberCommand {
		os.Exit(serveMember(os.Args[2], os.Args[3], os.Stdin, os.Stdout))
	}
	if len(os.Args) == 4 && os.Args[1] == delayCommand {
		os.Exit(serveDelay(os.Args[2], os.Args[3], os.Stdin, os.Stdout))
	}
}

func bench(ctx context.Context, args []string, progress io.Writer) (code int, err error) {
	o, err := parse(args, progress)
	if errors.Is(err, flag.ErrHelp) {
		return 0, nil
	}
	if err != nil {
		return exitUsage, err
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return exitUsage, fmt.Errorf("-out: %w", err)
	}
	env, err := openEnvironment(ctx, o, progress)
	if err != nil {
		return unavailable(ctx, err)
	}
	defer env.close()
	results, err := env.runAll(ctx, o)
	if ctx.Err() != nil {
		return exitInterrupted, errors.New("interrupted")
	}
	write := writeReport
	if o.compares {
		write = writeComparison
	}
	if reportErr := write(o.out, results, progress); reportErr != nil {
		return exitFailed, reportErr
	}
	if err != nil {
		return exitFailed, err
	}
	return 0, nil
}

// unavailable returns the exit code and error of an environment that could not be opened.
func unavailable(ctx context.Context, err error) (int, error) {
	if ctx.Err() != nil {
		return exitInterrupted, errors.New("interrupted")
	}
	return exitUnavailable, err
}
