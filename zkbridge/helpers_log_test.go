package zkbridge

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
)

// secret must never be seen.
const secret = "pass-never-shown"

// bridgeLog is a log that keeps its text.
type bridgeLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *bridgeLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *bridgeLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// config has a bridge write to the log. When the test ends, the log must have a line, and no
// secret.
func (l *bridgeLog) config(t *testing.T, cfg Config) Config {
	cfg.Logger = slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
	t.Cleanup(func() {
		if text := l.String(); strings.Contains(text, secret) || text == "" {
			t.Errorf("the log shows a secret, or nothing: %s", text)
		}
	})
	return cfg
}

// errors returns the number of lines at level ERROR that contain text.
func (l *bridgeLog) errors(text string) (n int) {
	for line := range strings.Lines(l.String()) {
		if strings.Contains(line, "level=ERROR") && strings.Contains(line, text) {
			n++
		}
	}
	return n
}
