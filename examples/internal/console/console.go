// Package console writes the examples' lines for people. Texts of other clients do not control the
// terminal, and the program goes on if its output is broken or full.
package console

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/actorlock/actorlock/gen/host"
)

// Logger returns a logger that writes each record from least on as one line, without the time: the
// program's name, the message and the attributes. It does not block for longer than
// [host.BoundLogger] does.
func Logger(w io.Writer, program string, least slog.Leveler) *slog.Logger {
	return host.BoundLogger(slog.New(lineHandler{w: w, program: program, least: least}))
}

// lineHandler is the handler of Logger.
type lineHandler struct {
	w          io.Writer
	program    string
	least      slog.Leveler
	attributes string
}

// Enabled implements slog.Handler.
func (h lineHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= h.least.Level()
}

// Handle implements slog.Handler.
func (h lineHandler) Handle(_ context.Context, r slog.Record) error {
	line := h.program + ": " + r.Message + h.attributes
	r.Attrs(func(a slog.Attr) bool {
		line += format(a)
		return true
	})
	_, err := fmt.Fprintln(h.w, Lines(line))
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

// format returns an attribute as package slog's handler of texts does: a value that would not be read as
// one word is quoted.
func format(a slog.Attr) string {
	value := strings.TrimSpace(a.Value.Resolve().String())
	if value == "" || strings.ContainsFunc(value, func(r rune) bool { return r == ' ' || r == '=' || r == '"' || !unicode.IsPrint(r) }) || !utf8.ValidString(value) {
		value = strconv.Quote(value)
	}
	return " " + a.Key + "=" + value
}

// Lines returns a printable text that may have several lines. Each line but the first is indented,
// so that a text of another client cannot look like a line of the program.
func Lines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = Printable(line)
	}
	return strings.Join(lines, "\n  ")
}

// Row returns the printable cells of a row of a table, separated by tabs.
func Row(cells ...any) string {
	texts := make([]string, len(cells))
	for i, cell := range cells {
		texts[i] = Printable(fmt.Sprint(cell))
	}
	return strings.Join(texts, "\t")
}

// Printable returns a text with escapes as those of Go in place of what is invisible, or controls a
// terminal, such as \u202e, which reverses the text behind it.
func Printable(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		text = text[size:]
	}
	return b.String()
}
