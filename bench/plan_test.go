package main

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPlan(t *testing.T) {
	const rounds = 5
	steps := plan(scenarios, peers, rounds, time.Second)
	first := map[string][]string{} // first peer of each round of a scenario
	type key struct {
		scenario, peer string
		round          int
	}
	seen := map[key]bool{}
	last := key{}
	for _, s := range steps {
		k := key{s.scenario.name, s.peer.name, s.round}
		if seen[k] {
			t.Errorf("%v is in the plan twice", k)
		}
		seen[k] = true
		if k.scenario != last.scenario || k.round != last.round {
			first[k.scenario] = append(first[k.scenario], k.peer)
		}
		last = k
	}
	for k := range seen {
		n := rounds
		switch k.scenario {
		case "scale", "futures", "processes", "growth", "partitions":
			n = 3
		case "uncontended":
			n = briefFactor * rounds
		}
		for round := 1; round <= briefFactor*rounds; round++ {
			if seen[key{k.scenario, k.peer, round}] != (round <= n) {
				t.Errorf("%s %s: round %d is in the plan: %v", k.scenario, k.peer, round, seen[key{k.scenario, k.peer, round}])
			}
		}
	}
	if got := first["hot64"]; len(got) != rounds || len(slices.Compact(slices.Sorted(slices.Values(got)))) != rounds {
		t.Errorf("the rounds of hot64 begin with %v", got)
	}
	for _, s := range steps {
		if s.peer.unlocked && (s.scenario.name == "handoff" || s.scenario.name == "fleet") {
			t.Errorf("%s is no lock, and in %s", s.peer.name, s.scenario.name)
		}
	}
}

// A costly scenario has fewer rounds, and a brief one more, in the same time.
func TestRounds(t *testing.T) {
	for _, s := range scenarios {
		n, length := s.rounds(12, time.Second)
		if time.Duration(n)*length != 12*time.Second || n != 12 && !s.costly && !s.brief {
			t.Errorf("%s has %d rounds of %v", s.name, n, length)
		}
	}
	if n, length := scale.rounds(12, time.Second); n != minRounds || length != 4*time.Second {
		t.Errorf("scale has %d rounds of %v", n, length)
	}
	if n, length := uncontended.rounds(12, time.Second); n != 60 || length != 200*time.Millisecond {
		t.Errorf("uncontended has %d rounds of %v", n, length)
	}
	if n, length := uncontended.rounds(12, 50*time.Millisecond); n != 12 || length != 50*time.Millisecond {
		t.Errorf("uncontended has %d rounds of %v, too short to be split", n, length)
	}
	all := summaries{"scale": {"actorlock": nil}, "uncontended": {"raw": nil}, "hot64": {"raw": nil}}
	for rounds, want := range map[int]string{
		20:        " (uncontended: 100 of 0.1 s, scale: 3 of 3.33 s)",
		minRounds: " (uncontended: 15 of 0.1 s)",
	} {
		if got := (&results{Rounds: rounds, Seconds: 0.5}).otherRounds(all); got != want {
			t.Errorf("of %d rounds the report says %q, want %q", rounds, got, want)
		}
	}
}

func TestVerdict(t *testing.T) {
	steps := plan(scenarios[:1], peers, minRounds, time.Second)
	for name, c := range map[string]struct {
		r     results
		steps []step
		want  string
	}{
		"good":         {results{Runs: []run{{Peer: "actorlock"}}}, steps, ""},
		"empty":        {results{}, nil, "nothing was measured"},
		"failed":       {results{Failures: []string{"hot64 etcd: gone"}}, steps, "hot64 etcd: gone"},
		"ours overlap": {results{Runs: []run{{Scenario: "hot64", Peer: "actorlock", Violations: 2}}}, steps, "2 violations in hot64"},
		"peer's do":    {results{Runs: []run{{Scenario: "hot64", Peer: "redsync", Violations: 2}}}, steps, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.r.verdict(c.steps)
			if err == nil {
				err = errors.New("")
			}
			if got := err.Error(); !strings.Contains(got, c.want) || c.want == "" && got != "" {
				t.Errorf("the verdict is %q, want %q", got, c.want)
			}
		})
	}
}

func TestPackets(t *testing.T) {
	if n, err := packetsIn("zk_version\t3.8.0\nzk_packets_received\t12\nzk_packets_sent\t30\n"); n != 42 || err != nil {
		t.Errorf("got %v, %v", n, err)
	}
	if _, err := packetsIn("mntr is not executed because it is not in the whitelist.\n"); err == nil || !strings.Contains(err.Error(), "whitelist") {
		t.Errorf("the error is %v", err)
	}
}
