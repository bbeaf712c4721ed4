//go:build !unix

// Command shards has consumers that come and go share the shards of a queue. It needs the signals of
// Unix.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "shards: the program pauses a process by the signal SIGSTOP, which only Unix has")
	os.Exit(1)
}
