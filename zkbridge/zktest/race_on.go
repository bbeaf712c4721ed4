//go:build race

package zktest

// RaceDetector reports whether the race detector is on, with which tests in virtual time are up to fifty
// times as slow.
const RaceDetector = true
