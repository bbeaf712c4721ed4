package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// sureness is the probability with which a comparison's interval has the true median of the rounds' ratios.
const sureness = 0.99

// minComparedRounds is the least number of rounds that have an interval of that probability.
const minComparedRounds = 8

// equalWithin is the difference from 1 up to which a ratio counts as equal.
const equalWithin = 0.03

// compared is one figure of a scenario at the two commits.
type compared struct {
	Scenario string  `json:"scenario"`
	Figure   string  `json:"figure"`
	Old      float64 `json:"old"` // median
	New      float64 `json:"new"`
	Ratio    float64 `json:"ratio"` // median of new / old of each round
	Low      float64 `json:"low"`   // of its interval
	High     float64 `json:"high"`
	Verdict  string  `json:"verdict"`
	Trend    float64 `json:"trend"`     // of the ratio over the rounds: median of the second half / median of the first
	OldTrend float64 `json:"old_trend"` // the same of the old commit alone, which shows whether the machine changed its speed
}

// writeComparison writes results.json and COMPARISON.md.
func writeComparison(dir string, r *results, progress io.Writer) error {
	r.Compared = r.summarize().compare()
	text := renderComparison(r)
	fmt.Fprintf(progress, "\n%s\n", text)
	return writeFiles(dir, r, map[string]string{"COMPARISON.md": text}, "COMPARISON.md", progress)
}

// compare returns the figures that both commits have, in the order of the report.
func (all summaries) compare() (list []compared) {
	for _, s := range scenarios {
		old, new := all[s.name][oldPeer], all[s.name][newPeer]
		if old == nil || new == nil {
			continue
		}
		for _, key := range append([]string{"ops", "p50"}, old.extraKeys()...) {
			before, after := extra(s.name, oldPeer, key), extra(s.name, newPeer, key)
			if ratios := all.ratios(after, before); len(ratios) > 0 {
				olds := all.ratios(before, figure{})
				low, high := interval(ratios, sureness)
				list = append(list, compared{s.name, key, median(olds), median(all.ratios(after, figure{})), median(ratios), low, high,
					verdictOn(key, low, high), trend(ratios), trend(olds)})
			}
		}
	}
	return list
}

// verdictOn returns what the interval of a ratio new / old says about a figure.
func verdictOn(key string, low, high float64) string {
	greater, less := "more", "less" // packets, bytes
	switch {
	case key == "ops" || strings.HasPrefix(key, "ops_per_sec"):
		greater, less = "faster", "slower"
	case slices.Contains(strings.Split(key, "_"), "us") || key == "p50":
		greater, less = "slower", "faster"
	}
	switch {
	case low >= 1-equalWithin && high <= 1+equalWithin:
		return "equal"
	case low > 1:
		return greater
	case high < 1:
		return less
	}
	return "not sure"
}

// renderComparison returns COMPARISON.md.
func renderComparison(r *results) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Comparison\n\n%s. Old is %s; new is %s. Each figure is the median of %d rounds of %v s, in each of which both were measured "+
		"by new processes, one after the other, and in the next round in the other order. The ratio is the median of the rounds' ratios, and between the limits with a probability of "+
		"%.0f %%: new is faster or slower if both are on one side of 1, and equal if both are within %.0f %% of 1. The trend is the median of the second half of the rounds "+
		"divided by that of the first: of the ratio, and of old alone.\n\n", r.Machine.Date, r.Machine.Peers[oldPeer], r.Machine.Peers[newPeer],
		r.Rounds, r.Seconds, 100*sureness, 100*equalWithin)
	renderServers(&b, r.Machine)
	b.WriteString("\n")
	b.WriteString("| scenario | figure | old | new | new / old | limits | new is | trend | trend of old |\n|---|---|--:|--:|--:|---|---|--:|--:|\n")
	for _, c := range r.Compared {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %.3f | %.3f to %.3f | %s | %.2f | %.2f |\n",
			c.Scenario, c.Figure, number(c.Old), number(c.New), c.Ratio, c.Low, c.High, c.Verdict, c.Trend, c.OldTrend)
	}
	renderBeside(&b, r.summarize())
	return b.String()
}

// renderBeside writes the ratios of both commits to the peers that were measured beside them.
func renderBeside(b *strings.Builder, all summaries) {
	var rows strings.Builder
	for _, s := range scenarios {
		for _, p := range all.peersIn(s.name) {
			for _, key := range []string{"ops", "p50", processorsKey, clientTimeKey, serverTimeKey} {
				base := extra(s.name, p.peer, key)
				old, new := all.ratio(extra(s.name, oldPeer, key), base), all.ratio(extra(s.name, newPeer, key), base)
				if old != "" && new != "" {
					fmt.Fprintf(&rows, "| %s | %s | %s | %s | %s |\n", s.name, key, p.peer, old, new)
				}
			}
		}
	}
	if rows.Len() > 0 {
		fmt.Fprintf(b, "\nThe ratios to others that were measured in the same rounds, with limits of %.0f %%:\n\n"+
			"| scenario | figure | of | old | new |\n|---|---|---|--:|--:|\n%s", 100*reportSureness, rows.String())
	}
}
