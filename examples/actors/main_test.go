package main

import (
	"bytes"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// A message to the actor that has stopped is a dead letter, which protoactor counts in a
// goroutine for a second.
func TestMain(m *testing.M) {
	zktest.Main(m, goleak.IgnoreTopFunction("github.com/asynkron/protoactor-go/actor.NewDeadLetter.NewThrottle.func4.1"))
}

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
	for part, want := range map[string]int{
		"holds the lock": 8,
		"has finished":   3,
		"dan does not get the lock: request was cancel": 1,
		"fay stops without a release":                   1,
		"eve has lost the lock":                         1,
	} {
		if got := strings.Count(out.String(), part); got != want {
			t.Errorf("%q is printed %d times, want %d", part, got, want)
		}
	}
}
