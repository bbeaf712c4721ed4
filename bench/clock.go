package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// Instants are CLOCK_MONOTONIC in nanoseconds, which all processes of a machine share, Java's System.nanoTime and
// Python's time.monotonic_ns included. Go hides its reading of that clock, so one is taken here and kept.
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

// sleepUntil is for an instant that other processes begin at, too: the clock is all that they share.
func sleepUntil(instant int64) { time.Sleep(time.Duration(instant - now())) }
