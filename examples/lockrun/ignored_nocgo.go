//go:build unix && !cgo

package main

import (
	"os/signal"
	"syscall"
)

const knowsIgnored = false

// ignoredSignals returns what Go's runtime knows: whether INT and HUP are ignored. A shell ignores INT
// and QUIT together, for a job in the background of a script.
func ignoredSignals() (set uint64) {
	if signal.Ignored(syscall.SIGHUP) {
		set |= 1 << syscall.SIGHUP
	}
	if signal.Ignored(syscall.SIGINT) {
		set |= 1<<syscall.SIGINT | 1<<syscall.SIGQUIT
	}
	return set
}
