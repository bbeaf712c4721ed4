package telemetry

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"

	"github.com/actorlock/actorlock/actors"
)

// The dashboard's queries name metrics and labels that Prometheus gets, and all of the metrics.
func TestDashboard(t *testing.T) {
	registry := prometheus.NewRegistry()
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo())
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, exporter)
	mu := s.locks.Mutex("/m")
	g := s.lock(mu, actors.HoldAtMost(10*time.Millisecond))
	if _, err := mu.Lock(t.Context(), actors.Try()); err == nil {
		t.Error("a try is granted")
	}
	<-g.Done()
	emitted, labels := gather(t, registry)

	queries := dashboardQueries(t)
	name, label := regexp.MustCompile(`actorlock_[a-z_]+`), regexp.MustCompile(`by \(([a-z_, ]+)\)|\{\{([a-z_]+)\}\}`)
	used := map[string]bool{}
	for _, q := range queries {
		for _, n := range name.FindAllString(q, -1) {
			if !slices.Contains(emitted, n) {
				t.Errorf("%s: %s is not emitted; %v are", q, n, emitted)
			}
			used[base(n)] = true
		}
		for _, found := range label.FindAllStringSubmatch(q, -1) {
			for l := range strings.SplitSeq(found[1]+found[2], ",") {
				if l = strings.TrimSpace(l); l != "le" && l != "instance" && !slices.Contains(labels, l) {
					t.Errorf("%s: %s is no label; %v are", q, l, labels)
				}
			}
		}
	}
	for _, n := range emitted {
		if strings.HasPrefix(n, "actorlock_") && !used[base(n)] {
			t.Errorf("no query has %s", n)
		}
	}
	if len(queries) < 9 {
		t.Errorf("%d queries", len(queries))
	}
}

// base returns the name of a histogram for the name of one of its series.
func base(name string) string {
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		name = strings.TrimSuffix(name, suffix)
	}
	return name
}

// gather returns the names of all series and labels.
func gather(t *testing.T, registry *prometheus.Registry) (names, labels []string) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		names = append(names, f.GetName())
		for _, m := range f.GetMetric() {
			if m.GetHistogram() != nil {
				names = append(names, f.GetName()+"_bucket", f.GetName()+"_sum", f.GetName()+"_count")
			}
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName())
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), labels
}

// dashboardQueries returns each query with its legend.
func dashboardQueries(t *testing.T) (all []string) {
	t.Helper()
	text, err := os.ReadFile("dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr, LegendFormat string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	for _, p := range dashboard.Panels {
		if p.Title == "" || len(p.Targets) == 0 {
			t.Errorf("a panel has no title or no query: %+v", p)
		}
		for _, q := range p.Targets {
			all = append(all, q.Expr+" "+q.LegendFormat)
		}
	}
	return all
}
