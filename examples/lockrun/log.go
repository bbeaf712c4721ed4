package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/actorlock/actorlock/examples/internal/console"
)

// stderr writes lockrun's messages and those of the library from leastLevel on. None of them delays
// lockrun for long.
var stderr = console.Logger(flagWriter{os.Stderr}, "lockrun", &leastLevel)

var leastLevel slog.LevelVar

// warn prints a line to standard error.
func warn(format string, args ...any) { stderr.Error(fmt.Sprintf(format, args...)) }

// flagWriter writes texts of the library with flags in place of Go's names.
type flagWriter struct{ w io.Writer }

// Write implements io.Writer.
func (f flagWriter) Write(text []byte) (int, error) {
	_, err := flagNames.WriteString(f.w, string(text))
	return len(text), err
}
