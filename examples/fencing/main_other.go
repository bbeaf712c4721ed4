//go:build !unix

// Command fencing shows how the late write of a lock's paused holder is refused. It needs the
// signals of Unix.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "fencing: the program pauses a process by the signal SIGSTOP, which only Unix has")
	os.Exit(1)
}
