package zktest

import "testing"

// Beside is t.Parallel without the race detector, and nothing with it: Go 1.26's race detector crashed
// (SIGSEGV in the runtime) where a bubble of testing/synctest ran beside tests in real time.
func Beside(t *testing.T) {
	if !raceDetector {
		t.Parallel()
	}
}
