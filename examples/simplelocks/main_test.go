package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/actorlock/actorlock/zkbridge/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

func TestRun(t *testing.T) {
	t.Run("alone", func(t *testing.T) { check(t, "") })
	zktest.Each(t, func(t *testing.T, s *zktest.Server) { check(t, s.Addr()) })
}

func check(t *testing.T, servers string) {
	var out bytes.Buffer
	if err := run(t.Context(), servers, &out); err != nil {
		t.Fatalf("%v after\n%s", err, &out)
	}
	t.Logf("\n%s", &out)
	for part, want := range map[string]int{"EXCLUSIVE": 6, "READ": 6, "WRITE": 6} {
		if got := strings.Count(out.String(), "("+part+")"); got != want {
			t.Errorf("%d lines of %s, want %d", got, part, want)
		}
	}
}
