//go:build unix

package console

import (
	"os"
	"os/signal"
	"syscall"
)

// Survive lets the program outlive its output: a write to a pipe that is closed, or to a file that
// has reached the limit of its size, is an error and does not end the program. Its child processes
// have the usual behavior.
func Survive() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE, syscall.SIGXFSZ) }
