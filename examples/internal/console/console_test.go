package console

import (
	"log/slog"
	"strings"
	"testing"
)

// hostile has what ZooKeeper accepts in a path and a terminal obeys, and harmless what a terminal
// has to show of it.
const (
	hostile  = "/a\u202eb\u2028c\u200bd\u009be\u007ff\u001fg\ufeffh"
	harmless = `/a\u202eb\u2028c\u200bd\u009be\x7ff\x1fg\ufeffh`
)

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "",
		"/locks/orders":          "/locks/orders",
		"Ünïcödé 日本 🔒 \"\\":      "Ünïcödé 日本 🔒 \"\\",
		hostile:                  harmless,
		"\x1b[2J\r\n\t\x00":      `\x1b[2J\r\n\t\x00`,
		"\xff\u00a0\U000e0001 x": `\xff\u00a0\U000e0001 x`,
	} {
		if got := Printable(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	if got, want := Row(1, hostile, "a\tb\n"), "1\t"+harmless+"\t"+`a\tb\n`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A line of the log has nothing that a terminal obeys, wherever it comes from.
func TestLogger(t *testing.T) {
	var out strings.Builder
	log := Logger(&out, "lockrun", slog.LevelWarn)
	log.Info("not shown")
	log.With("path", hostile).WithGroup("g").Warn("first", "node", hostile, "error", "one\nlockrun: two", "empty", "", "plain", "a/b:c")
	want := `lockrun: first path="` + harmless + `" node="` + harmless + `" error="one\nlockrun: two" empty="" plain=a/b:c` + "\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}
