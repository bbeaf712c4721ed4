package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// results is the content of results.json.
type results struct {
	Runs     []run      `json:"runs"`
	Machine  machine    `json:"machine"`
	Missing  []string   `json:"missing,omitempty"` // peers that are not installed
	Bars     []bar      `json:"bars,omitempty"`
	Compared []compared `json:"compared,omitempty"` // of two commits
	Failures []string   `json:"failures,omitempty"` // peers that failed in a scenario
	Rounds   int        `json:"rounds"`
	Seconds  float64    `json:"seconds"`
}

// step is one run of the plan.
type step struct {
	scenario scenario
	peer     peer
	round    int
}

// plan returns the runs: in each round one peer after the other, in another order in each round, because the first peer has
// a server that has just started, or still cleans up.
func plan(scenarios []scenario, peers []peer, rounds int, length time.Duration) []step {
	var steps []step
	for _, s := range scenarios {
		var fit []peer
		for _, p := range peers {
			if s.fits(p) && (len(p.only) == 0 || slices.Contains(p.only, s.name)) {
				fit = append(fit, p)
			}
		}
		rounds, _ := s.rounds(rounds, length)
		for round := range rounds {
			for i := range fit {
				steps = append(steps, step{s, fit[(i+round)%len(fit)], round + 1})
			}
		}
	}
	return steps
}

// runAll runs the plan. It leaves out the further rounds of a peer in a scenario in which the peer has failed.
func (e *environment) runAll(ctx context.Context, o *options) (*results, error) {
	var installed []peer
	for _, p := range o.peers {
		if _, missing := e.missing[p.name]; !missing {
			installed = append(installed, p)
		}
	}
	r := &results{Rounds: o.rounds, Seconds: o.length.Seconds(), Missing: values(e.missing), Machine: e.describe(installed)}
	steps := plan(o.scenarios, installed, o.rounds, o.length)
	failed := map[string]bool{}
	for i, step := range steps {
		what := step.scenario.name + " " + step.peer.name
		if failed[what] {
			continue
		}
		started := time.Now()
		if o.compares {
			e.stopWorkers(step.peer) // chance that belongs to a process must not count as many rounds
		}
		_, length := step.scenario.rounds(o.rounds, e.length)
		result, err := e.measure(ctx, step, length)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			e.stopWorkers(step.peer)
			failed[what] = true
			r.Failures = append(r.Failures, fmt.Sprintf("%s, round %d: %v", what, step.round, err))
			fmt.Fprintf(e.progress, "%4d/%d %s round %d FAILED: %v\n", i+1, len(steps), what, step.round, err)
			continue
		}
		if step.peer.unlocked {
			result.Violations = 0 // it is no lock
		}
		result.Scenario, result.Peer, result.Round = step.scenario.name, step.peer.name, step.round
		r.Runs = append(r.Runs, result)
		fmt.Fprintf(e.progress, "%4d/%d %-18s %-16s round %d: %9.0f/s  p50 %9.1f us  p99 %10.1f us%s  (%.1f s)\n", i+1, len(steps),
			result.Scenario, result.Peer, result.Round, result.OpsPerSec, result.P50, result.P99, violationsText(result), time.Since(started).Seconds())
	}
	for roundTrip, took := range e.bareRoundTrips {
		r.Machine.Networks[roundTrip.String()] = median(took)
	}
	return r, r.verdict(steps)
}

// measure runs a step by the route of its scenario.
func (e *environment) measure(ctx context.Context, s step, length time.Duration) (run, error) {
	if err := e.use(ctx, s.scenario.route); err != nil {
		return run{}, err
	}
	r, err := s.scenario.run(ctx, &trial{e, s.peer, length})
	if err == nil && s.scenario.route.roundTrip > 0 {
		r.Extra[bareKey], err = e.bareRoundTrip(ctx)
	}
	return r, err
}

func violationsText(r run) string {
	if r.Violations == 0 {
		return ""
	}
	return fmt.Sprintf("  %d VIOLATIONS", r.Violations)
}

// verdict returns the error of a run that measured nothing, had failures, or let two holders of actorlock in.
func (r *results) verdict(steps []step) error {
	if len(steps) == 0 {
		return errors.New("nothing was measured: none of the installed peers can be used in these scenarios")
	}
	if len(r.Failures) > 0 {
		return errors.New(strings.Join(r.Failures, "\n"))
	}
	for _, run := range r.Runs {
		if strings.HasPrefix(run.Peer, "actorlock") && run.Violations > 0 {
			return fmt.Errorf("%s let several holders in at a time: %d violations in %s", run.Peer, run.Violations, run.Scenario)
		}
	}
	return nil
}
