package main

import (
	"bytes"
	"regexp"
	"testing"

	"go.uber.org/goleak"

	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// A message to an actor that has stopped is a dead letter, which protoactor counts in a goroutine
// for a second.
func TestMain(m *testing.M) {
	zktest.Main(m, goleak.IgnoreTopFunction("github.com/asynkron/protoactor-go/actor.NewDeadLetter.NewThrottle.func4.1"))
}

func TestRun(t *testing.T) {
	t.Run("alone", func(t *testing.T) { check(t, "") })
	zktest.Each(t, func(t *testing.T, s *zktest.Server) { check(t, s.Addr()) })
}

func check(t *testing.T, servers string) {
	var out bytes.Buffer
	if err := run(t.Context(), servers, 40, &out); err != nil {
		t.Fatalf("%v after\n%s", err, &out)
	}
	want := regexp.MustCompile(`^each of 40 accounts has its actor after \S+: ann 20, bob 20
ann has left, and bob has all 40 after \S+
an account takes -?\d+ KB of his memory
no account had two actors at one time, and each new actor's token was greater
$`)
	if !want.Match(out.Bytes()) {
		t.Errorf("printed\n%s", &out)
	}
}
