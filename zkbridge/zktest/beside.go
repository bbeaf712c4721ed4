package zktest

import "testing"

// Beside is t.Parallel without the race detector, and nothing with it: under Go 1.26's race detector
// bubbles of testing/synctest run alone, since its runtime crashed (SIGSEGV) in some that ran beside others.
func Beside(t *testing.T) {
	if !raceDetector {
		t.Parallel()
	}
}
