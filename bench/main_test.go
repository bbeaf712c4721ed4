package main

import (
	"os"
	"testing"

	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// TestMain lets the test binary be what it starts: a worker, and the whole program.
func TestMain(m *testing.M) {
	workIfAsked()
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	zktest.Main(m)
}

const asProgram = "BENCH_TEST_AS_PROGRAM"
