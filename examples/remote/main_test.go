package main

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/actorlock/actorlock/zkbridge/zktest"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "-client" { // started by run
		main()
		os.Exit(0)
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0") // for the processes that run starts
	zktest.Main(m)
}

func TestRun(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatalf("%v after\n%s", err, &out)
	}
	t.Logf("\n%s", &out)
	var tokens []string
	for _, m := range regexp.MustCompile(`token (\S+)\.`).FindAllStringSubmatch(out.String(), -1) {
		tokens = append(tokens, m[1])
	}
	if len(tokens) != 6 || !slices.IsSorted(tokens) || len(slices.Compact(slices.Clone(tokens))) != 6 {
		t.Errorf("the tokens are %q", tokens)
	}
	killed := regexp.MustCompile(`Client (.) is killed while it holds.*\nClient (.) holds the lock`).FindStringSubmatch(out.String())
	if len(killed) != 3 || killed[1] == killed[2] {
		t.Errorf("no other client has the lock after the kill: %q", killed)
	}
}
