package locktest

import (
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/actorlock/actorlock/actors"
)

// Log keeps the lines of a log.
type Log struct {
	mu    sync.Mutex
	lines []string
}

// DefaultLog returns the log of slog.Default until the test ends.
func DefaultLog(t *testing.T) *Log {
	var log Log
	before := slog.Default()
	slog.SetDefault(log.Logger())
	t.Cleanup(func() { slog.SetDefault(before) })
	return &log
}

// Logger returns a logger that writes into the log.
func (l *Log) Logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// Config has Locks write their log here.
func (l *Log) Config(cfg *actors.Config) { cfg.Logger = l.Logger() }

// Write keeps a line.
func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, string(b))
	return len(b), nil
}

// With returns the lines that contain all of the words.
func (l *Log) With(words ...string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		has := true
		for _, word := range words {
			has = has && strings.Contains(line, word)
		}
		if has {
			found = append(found, line)
		}
	}
	return found
}

// Take returns all lines, and removes them.
func (l *Log) Take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.lines
	l.lines = nil
	return lines
}

// Expect takes the lines, and checks that there is one, with all of the words.
func (l *Log) Expect(t testing.TB, words ...string) {
	t.Helper()
	lines := l.Take()
	if len(lines) != 1 {
		t.Errorf("%d lines: %q", len(lines), lines)
		return
	}
	ExpectParts(t, lines[0], words...)
}

// HasEnded is a part of the log lines about an owner that is an actor and has ended.
const HasEnded = "actor has ended"
