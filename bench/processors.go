package main

import (
	"fmt"
	"strings"
)

// renderProcessors writes who used the cores. Clients and servers share them: acquires per second say little about a machine with
// more cores. Three figures do not depend on the number of cores: the processor time for an acquire, its ratio to limit, and the
// time of the server's busiest thread, which more cores do not divide.
func renderProcessors(b *strings.Builder, all summaries) {
	var rows strings.Builder
	for _, s := range scenarios {
		for _, name := range []string{"actorlock", limit.name} {
			if p := all[s.name][name]; p != nil && p.extra[busiestKey] > 0 {
				renderCores(&rows, s.name, p, all)
			}
		}
	}
	if rows.Len() == 0 {
		return
	}
	b.WriteString("\n## Processors\n\nHow many cores were in use on average, by clients and server, and idle, warm-up included; other programs and this one had the rest. " +
		"Then the ratio of the processor time for an acquire to that of limit, of both and of the server alone. " +
		"Busiest is the server's thread that ran most: more cores do not divide its work. So however many there are, a server like this one makes at most the number behind it, " +
		"unless its transactions become larger.\n\n" +
		"| scenario | peer | client | server | idle | time × limit | server's × limit | busiest | at most per second |\n|---|---|--:|--:|--:|--:|--:|--:|--:|\n")
	b.WriteString(rows.String())
}

func renderCores(b *strings.Builder, scenario string, p *summary, all summaries) {
	fmt.Fprintf(b, "| %s | %s |", scenario, p.peer)
	for _, key := range []string{clientCoresKey, serverCoresKey, idleCoresKey} {
		fmt.Fprintf(b, " %.2f |", p.extra[key])
	}
	for _, key := range []string{processorsKey, serverTimeKey} {
		fmt.Fprintf(b, " %s |", all.ratio(extra(scenario, p.peer, key), extra(scenario, limit.name, key)))
	}
	fmt.Fprintf(b, " %.2f | %s |\n", p.extra[busiestKey], number(median(all.ratios(ops(scenario, p.peer), extra(scenario, p.peer, busiestKey)))))
}
