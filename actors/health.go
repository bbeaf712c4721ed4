package actors

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/actorlock/actorlock/actors/internal/inspection"
	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/messages"
)

// Health returns nil if locks can be acquired: there is a session, ZooKeeper answers, and the
// generation of tokens can be read and is high enough, without which no lock is granted. Otherwise
// the error says what is wrong, and since when ZooKeeper has not answered: errors.Is finds
// ErrSuspended, ErrSessionLost, ErrNoAuth, ErrInvalid (of the generation's node), ErrClosed, or the
// cause of ctx. It asks ZooKeeper, by a write that changes nothing and a read, and blocks until
// ZooKeeper answers, ctx ends or the connection is lost: for a server that is silent, ctx needs a
// deadline. A lock that another client holds is no error, nor is Drain. Stats has the state of the
// session without asking.
func (l *Locks) Health(ctx context.Context) error {
	if _, err := askHealth.one(ctx, l.at(""), none{}); err != nil {
		return fmt.Errorf("locks are not available: %w", summarize(l.manager.Session, err))
	}
	return nil
}

func (h *handle) health(ctx context.Context, _ none) (none, error) {
	bridge := h.manager.Bridge
	_, err := inspection.ReadGeneration(ctx, bridge)
	if err = cmp.Or(err, bridge.NoTokens()); err != nil {
		err = summarize(bridge, err)
	}
	return none{}, err
}

// summarize is Explain with the text of the outage alone, which has the cause once.
func summarize(session manager.AnySession, err error) error {
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
