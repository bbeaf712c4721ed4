package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// Instants are CLOCK_MONOTONIC in nanoseconds, which all processes of a machine share, also as Java's System.nanoTime and
// Python's time.monotonic_ns. Go does not export its reading of that clock, so that clockOffset relates the two.
var (
	clockStart  = time.Now()
	clockOffset = func() int64 {
		var t unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
			panic(err) // Linux always has it
		}
		return t.Nano() - int64(time.Since(clockStart))
	}()
)

func now() int64 { return clockOffset + int64(time.Since(clockStart)) }
