package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// writeReport writes results.json, REPORT.md and the plots.
func writeReport(dir string, r *results, progress io.Writer) error {
	all := r.summarize()
	r.Bars = measureBars(all)
	files := map[string]string{"REPORT.md": render(r, all)}
	for _, s := range scenarios {
		if len(all[s.name]) > 0 {
			files[s.name+".svg"] = plotScenario(s.name, all.peersIn(s.name))
		}
	}
	if len(all["scale"]) > 0 {
		files["scale-waiters.svg"] = plotScale(all.peersIn("scale"))
	}
	return writeFiles(dir, r, files, "REPORT.md", progress)
}

// writeFiles writes results.json and the files, of which one is for people to begin with.
func writeFiles(dir string, r *results, files map[string]string, first string, progress io.Writer) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	files["results.json"] = string(text) + "\n"
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	where, err := filepath.Abs(filepath.Join(dir, first)) // with go -C the folder of the caller is another one
	if err != nil {
		return err
	}
	fmt.Fprintf(progress, "results are in %s\n", where)
	return nil
}

// render returns REPORT.md.
func render(r *results, all summaries) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Benchmarks\n\n%s. Each figure is the median of %d rounds of %v s%s; in each round the peers were measured one "+
		"after the other, in changing order, each in processes of its own. A ratio is the median of the rounds' ratios; in parentheses are limits that have the true median with a probability of %.0f %%, or, of fewer than six rounds, the least and the greatest of their ratios. "+
		"The trend is the median of the second half of the rounds divided by that of the first. Warm-up does not count, and in one process lasts until every client had its turn. Ratios hold for this machine "+
		"and this run; %d core(s) are shared by clients and servers.\n", r.Machine.Date, r.Rounds, r.Seconds, r.otherRounds(all), 100*reportSureness, r.Machine.Cores)
	renderBars(&b, r.Bars, all["hot64"])
	renderWinners(&b, all)
	renderProcessors(&b, all)
	for _, s := range scenarios {
		if len(all[s.name]) > 0 {
			renderScenario(&b, s, all)
		}
	}
	renderMachine(&b, r)
	return b.String()
}

func renderBars(b *strings.Builder, bars []bar, hot map[string]*summary) {
	b.WriteString("\n## Bars\n\n| bar | measured | reached |\n|---|---|---|\n")
	for _, bar := range bars {
		measured, reached := "", "not measured"
		if bar.Reached != nil {
			measured, reached = within(bar.Value, bar.Low, bar.High), "no"
			if *bar.Reached {
				reached = "yes"
			}
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", bar.Text, measured, reached)
	}
	for _, p := range peers {
		if s := hot[p.name]; s != nil && s.extra[ownObjectsKey] > 0 {
			fmt.Fprintf(b, "\nIn hot64 the threads of %s share its lock object. With one each it does %s/s, %s times as much.\n",
				p.name, number(s.extra[ownObjectsKey]), number(s.extra[ownObjectsKey]/s.ops))
		}
	}
}

// otherRounds lists the scenarios with fewer or more rounds.
func (r *results) otherRounds(all summaries) string {
	var others []string
	for _, s := range scenarios {
		n, length := s.rounds(r.Rounds, time.Duration(r.Seconds*float64(time.Second)))
		if n != r.Rounds && len(all[s.name]) > 0 {
			others = append(others, fmt.Sprintf("%s: %d of %.3g s", s.name, n, length.Seconds()))
		}
	}
	if len(others) == 0 {
		return ""
	}
	return " (" + strings.Join(others, ", ") + ")"
}

// renderWinners lists the scenarios in which a peer is faster than this library.
func renderWinners(b *strings.Builder, all summaries) {
	b.WriteString("\n## Where others are faster\n\n")
	faster := false
	for _, s := range scenarios {
		ours := all[s.name]["actorlock"]
		if ours == nil {
			continue
		}
		for _, p := range all.peersIn(s.name) {
			if p.peer == ours.peer || p.ops <= ours.ops && (p.p50 == 0 || p.p50 >= ours.p50) {
				continue
			}
			faster = true
			fmt.Fprintf(b, "- %s: %s does %s/s with a p50 of %s us; actorlock does %s/s with %s us.\n",
				s.name, p.peer, number(p.ops), number(p.p50), number(ours.ops), number(ours.p50))
		}
	}
	if !faster {
		b.WriteString("In no scenario of this run.\n")
	}
}

func renderScenario(b *strings.Builder, s scenario, all summaries) {
	list := all.peersIn(s.name)
	fmt.Fprintf(b, "\n## %s\n\n%s\n\n![%s](%s.svg)\n\n", s.name, s.about, s.name, s.name)
	b.WriteString("| peer | per second | p50 us | p99 us | spread | trend | × raw | × limit | × zklock | × curator | violations |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, p := range list {
		fmt.Fprintf(b, "| %s | %s | %s | %s | %.0f %% | %.2f |", p.peer, number(p.ops), number(p.p50), number(p.p99), 100*p.spread,
			trend(all.ratios(ops(s.name, p.peer), figure{})))
		for _, base := range []string{"raw", "limit", "zklock", "curator"} {
			fmt.Fprintf(b, " %s |", all.ratio(ops(s.name, p.peer), ops(s.name, base)))
		}
		fmt.Fprintf(b, " %s |\n", violations(p))
	}
	renderIdle(b, list)
	renderExtra(b, list)
	if s.name == "scale" {
		b.WriteString("\n![acquires per second over waiters](scale-waiters.svg)\n")
	}
}

// renderIdle names the rounds in which a peer did nothing.
func renderIdle(b *strings.Builder, list []*summary) {
	for _, p := range list {
		if n := len(p.idle); n > 0 {
			fmt.Fprintf(b, "\n%s did nothing in %d of %d rounds (%s), which are in no median.\n", p.peer, n, len(p.rounds), strings.Trim(fmt.Sprint(p.idle), "[]"))
		}
	}
}

// renderExtra writes the table of the fields that only some peers have.
func renderExtra(b *strings.Builder, list []*summary) {
	var keys []string
	var header, line strings.Builder
	for _, p := range list {
		if len(p.extra) > 0 {
			fmt.Fprintf(&header, " %s |", p.peer)
			line.WriteString("--:|")
			keys = append(keys, p.extraKeys()...)
		}
	}
	if len(keys) == 0 {
		return
	}
	fmt.Fprintf(b, "\n| also measured |%s\n|---|%s\n", header.String(), line.String())
	slices.SortFunc(keys, byNumbers)
	for _, key := range slices.Compact(keys) {
		fmt.Fprintf(b, "| %s |", key)
		for _, p := range list {
			if value, ok := p.extra[key]; ok {
				fmt.Fprintf(b, " %s |", number(value))
			} else if len(p.extra) > 0 {
				b.WriteString(" |")
			}
		}
		b.WriteString("\n")
	}
}

// ratio returns the ratio of two figures, as in a bar, or "" if it was not measured.
func (all summaries) ratio(over, under figure) string {
	ratios := all.ratios(over, under)
	if len(ratios) == 0 {
		return ""
	}
	low, high := interval(ratios, reportSureness)
	return within(median(ratios), low, high)
}

// within formats a ratio with its limits.
func within(ratio, low, high float64) string {
	if low == high {
		return number(ratio)
	}
	return fmt.Sprintf("%s (%s to %s)", number(ratio), number(low), number(high))
}

func violations(s *summary) string {
	if p, _ := findPeer(s.peer); p.unlocked {
		return "no lock: not checked"
	}
	return fmt.Sprint(s.violations)
}

func renderServers(b *strings.Builder, m machine) {
	for _, s := range servers {
		if version, ok := m.Servers[s.name]; ok {
			fmt.Fprintf(b, "- Server %s: %s\n", s.name, version)
		}
	}
}

func renderMachine(b *strings.Builder, r *results) {
	m := r.Machine
	fmt.Fprintf(b, "\n## Machine\n\n- %s, %d cores, %s of memory, Linux %s; load before the run: %s\n- %s", m.CPU, m.Cores, m.Memory, m.Kernel, m.Load, m.Go)
	if m.Java != "" {
		fmt.Fprintf(b, "; %s", m.Java)
	}
	fmt.Fprintf(b, "\n- The servers keep their data in %s, so that no disk is measured.\n", m.Data)
	renderServers(b, m)
	for _, roundTrip := range slices.Sorted(maps.Keys(m.Networks)) {
		fmt.Fprintf(b, "- Over the network of %s a bare round trip took %.2f ms\n", roundTrip, m.Networks[roundTrip]/1000)
	}
	b.WriteString("- The session timeout, lease or expiry of every peer is 20 s, and 4 s in scenario partitions.\n\n| peer | what | version |\n|---|---|---|\n")
	for _, p := range peers {
		if version, ok := m.Peers[p.name]; ok {
			fmt.Fprintf(b, "| %s | %s | %s |\n", p.name, p.about, version)
		}
	}
	for _, line := range append(slices.Clone(r.Missing), r.Failures...) {
		fmt.Fprintf(b, "\n%s\n", line)
	}
}
