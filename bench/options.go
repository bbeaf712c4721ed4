package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

type options struct {
	scenarios []scenario
	peers     []peer
	rounds    int
	length    time.Duration // of a peer in a round
	out       string
	zk        string
	// partitions is their number in scenario partitions.
	partitions int
	compares   bool // two commits of this library, which are the peers
}

const usage = `usage: go -C bench run . [flags]
Measures locks side by side and writes results.json, REPORT.md and plots,
or with -compare two commits of this library, and writes results.json and COMPARISON.md.
`

// comparedDefaults are the values of flags that a comparison has unless they are given. Its rounds suffice for an interval of
// a few percent.
var comparedDefaults = map[string]string{"peers": "actorlock", "rounds": "40", "seconds": "0.5"}

// Fewer rounds have no useful median, and more are a mistake.
const minRounds, maxRounds = 3, 1000

// In a shorter round not even fast peers do something, and a longer one is a mistake.
const minSeconds, maxSeconds = 0.01, 3600

// maxPartitions leaves a member room for all terms of a round.
const maxPartitions = maxTerms / 8

func parse(args []string, out io.Writer) (*options, error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	scenarioList := flags.String("scenarios", "all", "what to measure, a `list` of: "+accepted(scenarios))
	peerList := flags.String("peers", "all", "which peers to measure, a `list` of: "+accepted(peers))
	seconds := flags.Float64("seconds", 3, "how many `seconds` each round of a peer in a scenario measures")
	o := &options{}
	flags.IntVar(&o.rounds, "rounds", minRounds, "how many `rounds` there are; many short ones are better than a few long ones if the machine changes its speed")
	flags.StringVar(&o.out, "out", "bench-results", "the `folder` to write to, seen from bench with go -C bench; it is made if need be")
	commits := flags.String("compare", "", "`OLD..NEW`, two commits to measure in alternation, or OLD alone, to compare it with this tree; the defaults are then "+
		"-peers actorlock (or actorlock-local, and others beside it), -rounds 40 and -seconds 0.5, alike in all scenarios")
	flags.StringVar(&o.zk, "zk", "", "the ZooKeeper `servers` to use, as in zk1:2181,zk2:2181 (default: start one)")
	flags.IntVar(&o.partitions, "partitions", 256, "how many `partitions` scenario partitions has")
	flags.SetOutput(io.Discard) // main prints the error
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		flags.SetOutput(out)
		fmt.Fprint(out, usage)
		flags.PrintDefaults()
	}
	if err != nil {
		return nil, err
	}
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	o.compares = given["compare"]
	for name, value := range comparedDefaults {
		if o.compares && !given[name] {
			_ = flags.Set(name, value) // it is acceptable
		}
	}
	o.length = time.Duration(*seconds * float64(time.Second))
	if o.scenarios, err = choose("-scenarios", *scenarioList, scenarios); err != nil {
		return nil, err
	}
	if o.peers, err = choose("-peers", *peerList, peers); err != nil {
		return nil, err
	}
	if o.compares {
		if err := o.compare(*commits); err != nil {
			return nil, err
		}
	}
	switch {
	case flags.NArg() > 0:
		return nil, fmt.Errorf("argument %q: only flags are accepted", flags.Arg(0))
	case !(*seconds >= minSeconds && *seconds <= maxSeconds): // also false for NaN
		return nil, fmt.Errorf("-seconds %v: it must be from %v to %v", *seconds, minSeconds, maxSeconds)
	case o.rounds < minRounds || o.rounds > maxRounds:
		return nil, fmt.Errorf("-rounds %d: it must be from %d to %d", o.rounds, minRounds, maxRounds)
	case o.partitions < 1 || o.partitions > maxPartitions:
		return nil, fmt.Errorf("-partitions %d: it must be from 1 to %d", o.partitions, maxPartitions)
	case len(plan(o.scenarios, o.peers, o.rounds, o.length)) == 0:
		return nil, fmt.Errorf("-peers %s: none of them can be used in -scenarios %s", *peerList, *scenarioList)
	case o.out == "":
		return nil, errors.New("-out is empty: it must be a folder")
	}
	return o, nil
}

// compare replaces this library by itself at two commits. Other peers stay beside it.
func (o *options) compare(commits string) error {
	old, new, err := commitsIn(commits)
	if err != nil {
		return err
	}
	var of, beside []peer
	for _, p := range o.peers {
		if p.isActorlock() {
			of = append(of, p)
		} else {
			beside = append(beside, p)
		}
	}
	if len(of) != 1 {
		return fmt.Errorf("-peers %s: with -compare it must be one of %s, and may have others beside it", accepted(o.peers),
			strings.Join(slices.Sorted(maps.Keys(actorlockModes)), ", "))
	}
	if o.rounds < minComparedRounds {
		return fmt.Errorf("-rounds %d: with -compare it must be at least %d", o.rounds, minComparedRounds)
	}
	o.peers = append([]peer{of[0].at(old, oldPeer), of[0].at(new, newPeer)}, beside...)
	o.scenarios = slices.Clone(o.scenarios)
	for i := range o.scenarios {
		o.scenarios[i].costly, o.scenarios[i].brief = false, false // each round has new workers
	}
	return nil
}

// named is an item that a list on the command line can name.
type named interface{ label() string }

// choose returns the items that the list names, in the order of all, so that runs are alike.
func choose[T named](flag, list string, all []T) ([]T, error) {
	if list == "all" {
		return all, nil
	}
	names := strings.Split(list, ",")
	for i, name := range names {
		names[i] = strings.TrimSpace(name)
		if !slices.ContainsFunc(all, func(t T) bool { return t.label() == names[i] }) {
			return nil, fmt.Errorf("%s: unknown name %q: accepted are all, or a list of %s", flag, names[i], accepted(all))
		}
	}
	var chosen []T
	for _, t := range all {
		if slices.Contains(names, t.label()) {
			chosen = append(chosen, t)
		}
	}
	return chosen, nil
}

func accepted[T named](all []T) string {
	var names []string
	for _, t := range all {
		names = append(names, t.label())
	}
	return strings.Join(names, ", ")
}
