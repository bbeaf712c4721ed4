package main

import (
	"bytes"
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

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
	tokens := regexp.MustCompile(`worker \d holds the lock, token (\S+)`).FindAllStringSubmatch(out.String(), -1)
	if len(tokens) != 6 || !slices.IsSortedFunc(tokens, func(a, b []string) int { return strings.Compare(a[1], b[1]) }) {
		t.Errorf("the workers' tokens are %q", tokens)
	}
	if !strings.Contains(out.String(), "is refused") {
		t.Errorf("it has not reached the end:\n%s", &out)
	}
}

func TestUnreachable(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := run(ctx, "127.0.0.1:1", new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("the error is %v; it should name the server", err)
	}
}
