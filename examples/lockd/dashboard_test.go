package main

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/remote"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// The dashboard's queries name metrics that lockd serves, and all of those that are its own.
func TestDashboard(t *testing.T) {
	t.Parallel()
	locks, err := actors.Connect(t.Context(), zktest.Embedded(t).Addr(), actors.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer locks.Close()
	server, err := remote.NewServer(locks, remote.ServerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	var out strings.Builder
	(&metrics{locks: locks, server: server, audit: &audit{}, requests: &monitor{}}).write(&out)
	var served []string
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (\w+) `).FindAllStringSubmatch(out.String(), -1) {
		served = append(served, m[1])
	}

	text, err := os.ReadFile("dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	var asked []string
	for _, p := range dashboard.Panels {
		if p.Title == "" || len(p.Targets) == 0 {
			t.Errorf("a panel has no title or no query: %+v", p)
		}
		for _, q := range p.Targets {
			names := regexp.MustCompile(`actorlock_\w+`).FindAllString(q.Expr, -1)
			if len(names) == 0 {
				t.Errorf("%s: %q asks for no metric", p.Title, q.Expr)
			}
			asked = append(asked, names...)
		}
	}
	for _, name := range asked {
		if !slices.Contains(served, name) {
			t.Errorf("lockd has no metric %s", name)
		}
	}
	for _, name := range served {
		own := strings.HasPrefix(name, "actorlock_server_") || strings.HasPrefix(name, "actorlock_certificate_") || strings.HasPrefix(name, "actorlock_audit_")
		if own && !slices.Contains(asked, name) {
			t.Errorf("the dashboard leaves %s out", name)
		}
	}
}
