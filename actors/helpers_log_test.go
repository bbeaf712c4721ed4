package actors_test

import (
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/actorlock/actorlock/actors"
)

// logs keeps the lines of a log.
type logs struct {
	mu    sync.Mutex
	lines []string
}

// defaultLog returns the log of slog.Default until the test ends.
func defaultLog(t *testing.T) *logs {
	var log logs
	before := slog.Default()
	slog.SetDefault(log.logger())
	t.Cleanup(func() { slog.SetDefault(before) })
	return &log
}

func (l *logs) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func (l *logs) config(cfg *actors.Config) { cfg.Logger = l.logger() }

func (l *logs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, string(b))
	return len(b), nil
}

// with returns the lines that contain all of the words.
func (l *logs) with(words ...string) (found []string) {
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

// take returns all lines, and removes them.
func (l *logs) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.lines
	l.lines = nil
	return lines
}

// expect takes the lines, and checks that there is one, with all of the words.
func (l *logs) expect(t testing.TB, words ...string) {
	t.Helper()
	lines := l.take()
	if len(lines) != 1 {
		t.Errorf("%d lines: %q", len(lines), lines)
		return
	}
	contains(t, lines[0], words...)
}
