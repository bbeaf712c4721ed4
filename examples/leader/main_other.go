//go:build !unix

// Command leader elects a leader among processes, and shows how another one takes over. It needs
// the signals of Unix.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "leader: the program pauses a process by the signal SIGSTOP, which only Unix has")
	os.Exit(1)
}
