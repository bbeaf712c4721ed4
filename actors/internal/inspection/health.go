package inspection

import (
	"cmp"
	"context"
	"errors"

	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/messages"
)

func (t *Target) health(ctx context.Context, _ struct{}) (struct{}, error) {
	bridge := t.Manager.Bridge
	_, err := ReadGeneration(ctx, bridge)
	if err = cmp.Or(err, bridge.NoTokens()); err != nil {
		err = Summarize(bridge, err)
	}
	return struct{}{}, err
}

// Summarize is Explain with the text of the outage alone, which has the cause once.
func Summarize(session manager.AnySession, err error) error {
	err = session.Explain(err)
	switch outage := session.OutageText(); {
	case outage == "":
		return err
	case errors.Is(err, messages.Reason_SESSION_LOST):
		return &summary{err, messages.Reason_SESSION_LOST.Error() + ": " + outage}
	default:
		return &summary{err, outage}
	}
}

// summary is an error with another text.
type summary struct {
	error
	text string
}

func (s *summary) Error() string { return s.text }

func (s *summary) Unwrap() error { return s.error }
