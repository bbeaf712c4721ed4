//go:build !unix

// Command fencing shows what becomes of a lock's holder that is paused. It needs the
// signals of Unix.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "fencing: it pauses a process by the signal SIGSTOP, which only Unix has")
	os.Exit(1)
}
