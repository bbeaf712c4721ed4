package main

import (
	"cmp"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what is rendered to the golden file")

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// sample is a run of three rounds, which differ by factors.
func sample() *results {
	r := &results{
		Rounds: 3, Seconds: 2,
		Machine: machine{CPU: "CPU", Cores: 2, Memory: "1 kB", Kernel: "6.1", Go: "go1.26", Java: "openjdk 17", Load: "0.1", Date: "today",
			Data: "a folder", Servers: map[string]string{"zookeeper": "3.8.0 (standalone)"},
			Peers: map[string]string{"actorlock": "this tree", "raw": "zk v1", "curator": "curator-recipes-5.4.0"}},
		Missing:  []string{"kazoo is left out: not installed"},
		Failures: []string{"hot64 etcd, round 2: no answer"},
	}
	add := func(scenario, peer string, ops, p50, p99 float64, violations int, extra map[string]float64) {
		for round, factor := range []float64{1, 0.5, 2} {
			r.Runs = append(r.Runs, run{scenario, peer, round + 1, ops * factor, p50 * factor, p99 * factor, violations, extra})
		}
	}
	add("uncontended", "actorlock", 3000, 310, 500, 0, nil)
	add("uncontended", "raw", 3300, 300, 400, 0, nil)
	add("uncontended", "redsync", 12_000, 70.5, 123, 0, nil)
	add("hot64", "actorlock", 52_000, 1000, 2000, 0, map[string]float64{clientTimeKey: 12, serverTimeKey: 15, clientCoresKey: 0.62, serverCoresKey: 0.78,
		busiestKey: 0.5, idleCoresKey: 0.3})
	add("hot64", "limit", 60_000, 3000, 4000, 0, map[string]float64{clientTimeKey: 1.5, serverTimeKey: 12, clientCoresKey: 0.09, serverCoresKey: 0.72,
		busiestKey: 0.6, idleCoresKey: 1.1})
	add("hot64", "raw", 6500, 9000, 9999, 0, nil)
	add("hot64", "zklock", 820, 80_000, 90_000, 1, nil)
	add("hot64", "curator", 100, 640_000, 700_000, 0, map[string]float64{ownObjectsKey: 700})
	add("fleet", "actorlock", 2000, 500, 900, 0, map[string]float64{
		handoffKey(2): 400, handoffKey(8): 600, packetsOf(2): 8, packetsOf(8): 8.1})
	add("scale", "actorlock", 50_000, 2000, 3000, 0, map[string]float64{
		queueKey(10): 14_000, queueKey(100): 50_000, queueKey(1000): 51_000, queueKey(10_000): 48_000, "bytes_per_waiter": 1500})
	add("scale", "zklock", 0, 0, 0, 0, map[string]float64{queueKey(10): 1500, queueKey(100): 0})
	return r
}

func TestReport(t *testing.T) {
	const golden = "testdata/REPORT.md.golden"
	dir := t.TempDir()
	if err := writeReport(dir, sample(), io.Discard); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "REPORT.md"))
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		write(t, golden, string(got))
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%s differs (-update accepts it); rendered:\n%s", golden, got)
	}
	for _, file := range images(string(got)) {
		checkSVG(t, filepath.Join(dir, file))
	}
}

// A round in which a peer did nothing is named, and is in no median.
func TestIdleRounds(t *testing.T) {
	r := &results{Rounds: 4, Seconds: 1}
	for i, ops := range []float64{200, 0, 100, 0} {
		r.Runs = append(r.Runs, run{Scenario: "hot64", Peer: "kazoo", Round: i + 1, OpsPerSec: ops, P50: ops * 10, P99: ops * 20})
	}
	r.Runs[2].Extra = map[string]float64{clientTimeKey: 7}
	all := r.summarize()
	if s := all["hot64"]["kazoo"]; s.ops != 150 || s.p50 != 1500 || s.p99 != 3000 || s.low != 100 || s.high != 200 || s.extra[clientTimeKey] != 7 {
		t.Errorf("%+v", s)
	}
	if text, want := render(r, all), "kazoo did nothing in 2 of 4 rounds (2 4), which are in no median."; !strings.Contains(text, want) {
		t.Errorf("%q is not in %s", want, text)
	}
}

// Two bars of the same figures would say twice what one says.
func TestEachFigureHasOneBar(t *testing.T) {
	seen := map[[2]figure]bool{}
	for _, g := range goals {
		if figures := [2]figure{g.over, g.under}; seen[figures] {
			t.Errorf("%v is there twice", g)
		} else {
			seen[figures] = true
		}
	}
}

// The path of the results is that from everywhere.
func TestWhereTheResultsAre(t *testing.T) {
	t.Chdir(t.TempDir())
	var out strings.Builder
	if err := writeFiles(".", &results{}, map[string]string{}, "REPORT.md", &out); err != nil {
		t.Fatal(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if want := "results are in " + filepath.Join(here, "REPORT.md") + "\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// images returns the image files of a report.
func images(report string) (files []string) {
	for _, part := range strings.Split(report, "![")[1:] {
		_, file, _ := strings.Cut(part, "](")
		file, _, _ = strings.Cut(file, ")")
		files = append(files, file)
	}
	return files
}

func checkSVG(t *testing.T, file string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	elements := map[string]int{}
	for d := xml.NewDecoder(f); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if start, ok := token.(xml.StartElement); ok {
			elements[start.Name.Local]++
			for _, a := range start.Attr {
				if strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") {
					t.Errorf("%s: %s=%s", file, a.Name.Local, a.Value)
				}
			}
		}
	}
	if elements["svg"] != 1 || elements["text"] < 5 || elements["line"] < 3 {
		t.Errorf("%s shows %v", file, elements)
	}
}

func TestBars(t *testing.T) {
	want := map[string]string{ // for the peers and scenarios of the sample
		"uncontended: p50 of actorlock at most 1.08":            "yes",
		"hot64: actorlock per second at least 40 × zklock":      "yes",
		"hot64: actorlock per second at least 5 × raw":          "yes",
		"hot64: actorlock per second at least 200 × curator":    "yes",
		"fleet: handoff_us_8":                                   "no",
		"fleet: packets_per_handoff_8 of actorlock at most 1.2": "yes",
		"scale: ops_per_sec_10000_waiters":                      "yes",
	}
	for _, b := range measureBars(sample().summarize()) {
		got := ""
		if b.Reached != nil {
			got = map[bool]string{true: "yes", false: "no"}[*b.Reached]
		}
		expected := ""
		for text, reached := range want {
			if strings.HasPrefix(b.Text, text) {
				expected = reached
			}
		}
		if got != expected {
			t.Errorf("%s (%v): reached is %q, want %q", b.Text, b.Value, got, expected)
		}
	}
}

// A bar may be relative to the time of a bare round trip, to another scenario, and to another value and more.
func TestBarsOfOtherKinds(t *testing.T) {
	r := &results{}
	for round := range 3 {
		for _, is := range []run{
			{Scenario: "rtt2-handoff", Extra: map[string]float64{waitingKey: 2100, bareKey: 2000}},
			{Scenario: "rtt2-hot64", OpsPerSec: 25_000, Extra: map[string]float64{bareKey: 2000}},
			{Scenario: "cold256", OpsPerSec: 4000},
			{Scenario: "many256", OpsPerSec: 10_000},
			{Scenario: "fleet", Extra: map[string]float64{packetsOf(2): 8.4}},
			{Scenario: "fleet", Peer: "zklock", Extra: map[string]float64{packetsOf(2): 8}},
			{Scenario: "remote", P50: 500},
			{Scenario: "remote", Peer: "grpc", P50: 200},
			{Scenario: "remote", Peer: "actorlock-remote", P50: 900},
			{Scenario: "remote-hot64", Peer: "actorlock-remote", OpsPerSec: 3000},
		} {
			is.Peer, is.Round = cmp.Or(is.Peer, "actorlock"), round+1
			r.Runs = append(r.Runs, is)
		}
	}
	measured := map[string]string{}
	for _, b := range measureBars(r.summarize()) {
		if b.Reached != nil {
			measured[b.Text] = fmt.Sprintf("%.3f %v", b.Value, *b.Reached)
		}
	}
	want := map[string]string{
		"rtt2-handoff: p50_us_waiting of actorlock at most 1.1 × bare_round_trip_us":                    "1.050 true",
		"rtt2-hot64: actorlock per second at least 44.8 × round trips per second":                       "50.000 true",
		"cold256: actorlock per second at least 0.3 × many256: actorlock per second":                    "0.400 true",
		"fleet: packets_per_handoff_2 of actorlock at most 1 × (packets_per_handoff_2 of zklock + 0.5)": "0.988 true",
		"remote: p50 of actorlock-remote at most 1 × (p50 of actorlock + 2.5 × p50 of grpc)":            "0.900 true",
		"remote-hot64: actorlock-remote per second at least 0.7 × remote: grpc in turn per second":      "0.600 false",
	}
	if !maps.Equal(measured, want) {
		t.Errorf("measured are %v", measured)
	}
}

// A ratio is the median of the ratios of each round, because the machine changes its speed between rounds.
func TestRatiosOfRounds(t *testing.T) {
	r := &results{}
	for i, pace := range []float64{1, 4, 2, 8, 1} {
		for peer, perSecond := range map[string]float64{"actorlock": 30, "zklock": 1} {
			if peer == "zklock" && i == 4 {
				perSecond = 0 // a figure of 0 is not measured
			}
			if peer == "zklock" && i == 1 {
				perSecond = 10
			}
			r.Runs = append(r.Runs, run{Scenario: "hot64", Peer: peer, Round: i + 1, OpsPerSec: pace * perSecond})
		}
	}
	all := r.summarize()
	if got := all.ratio(ops("hot64", "actorlock"), ops("hot64", "zklock")); got != "30.0 (3.00 to 30.0)" {
		t.Errorf("the ratio is %s", got)
	}
	for _, b := range measureBars(all) {
		if is := strings.HasPrefix(b.Text, "hot64: actorlock per second at least 40 × zklock"); is && b.Value != 30 || !is && b.Reached != nil {
			t.Errorf("%+v", b)
		}
	}
}

func TestAxis(t *testing.T) {
	x := axisOver(100, 400, 20, 0, 3000)
	for value, want := range map[float64]float64{10: 100, 100: 200, 10_000: 400, 0: 100, -1: 100, 1e9: 400} {
		if got := x.at(value); got != want {
			t.Errorf("%v is at %v, want %v", value, got, want)
		}
	}
	if got := len(axisOver(0, 1).ticks()); got != 2 {
		t.Errorf("the axis of nothing has %d ticks", got)
	}
}

func TestNumbers(t *testing.T) {
	for f, want := range map[float64]string{0: "0.00", 1.234: "1.23", 12.34: "12.3", 123.4: "123", 1234.5: "1,234", 1234567: "1,234,567"} {
		if got := number(f); got != want {
			t.Errorf("%v is written %s, want %s", f, got, want)
		}
	}
}
