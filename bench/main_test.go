package main

import (
	"os"
	"testing"

	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// TestMain runs the test binary as a worker, or as the program, if a test has started it so.
func TestMain(m *testing.M) {
	workIfAsked()
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	zktest.Main(m)
}

const asProgram = "BENCH_TEST_AS_PROGRAM"
