package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/actorlock/actorlock/examples/internal/contenders"
)

// lineHandler prints each record of the library's log as one line to standard error, without the time.
type lineHandler struct {
	least      slog.Level
	attributes string
}

// Enabled implements slog.Handler.
func (h lineHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= h.least
}

// Handle implements slog.Handler.
func (h lineHandler) Handle(_ context.Context, r slog.Record) error {
	line := "lockrun: " + r.Message + h.attributes
	r.Attrs(func(a slog.Attr) bool {
		line += format(a)
		return true
	})
	_, err := fmt.Fprintln(os.Stderr, line)
	return err
}

// WithAttrs implements slog.Handler.
func (h lineHandler) WithAttrs(attributes []slog.Attr) slog.Handler {
	for _, a := range attributes {
		h.attributes += format(a)
	}
	return h
}

// WithGroup implements slog.Handler. It leaves out the names of groups.
func (h lineHandler) WithGroup(string) slog.Handler { return h }

func format(a slog.Attr) string {
	return fmt.Sprintf(" %s=%s", a.Key, contenders.Printable(strings.TrimSpace(a.Value.Resolve().String())))
}
