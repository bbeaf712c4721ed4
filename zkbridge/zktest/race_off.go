//go:build !race

package zktest

const raceDetector = false
