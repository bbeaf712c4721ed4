//go:build unix

package main

import (
	"slices"
	"syscall"
)

// neverIgnored are the signals without which Go's runtime or lockrun does not work.
var neverIgnored = []syscall.Signal{syscall.SIGCHLD, syscall.SIGURG, syscall.SIGPROF, syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGFPE,
	syscall.SIGILL, syscall.SIGTRAP, syscall.SIGABRT, syscall.SIGSYS, syscall.SIGCONT}

// ignoredAtStart returns the signals that lockrun was started to ignore. The set of ignoredSignals has
// the bit of each one's number.
func ignoredAtStart() (all []syscall.Signal) {
	set := ignoredSignals()
	for s := syscall.Signal(1); s < 32; s++ {
		if set&(1<<s) != 0 && !slices.Contains(neverIgnored, s) {
			all = append(all, s)
		}
	}
	return all
}
