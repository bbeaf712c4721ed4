package zkbridge

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/actorlock/actorlock/messages"
)

func TestSessionText(t *testing.T) {
	t.Parallel()
	s := Session{State: messages.SessionState_CONNECTED, Epoch: 2, ID: -1, Timeout: 20 * time.Second}
	if got, want := s.String(), "CONNECTED, session 0xffffffffffffffff of epoch 2"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := (Session{State: messages.SessionState_LOST}).String(), "LOST, no session yet"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	var line strings.Builder
	slog.New(slog.NewTextHandler(&line, nil)).Info("now", "is", s)
	if want := "is.state=CONNECTED is.session=0xffffffffffffffff is.epoch=2 is.timeout=20s"; !strings.Contains(line.String(), want) {
		t.Errorf("%s, want %s", line.String(), want)
	}
}
