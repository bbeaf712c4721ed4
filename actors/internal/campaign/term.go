package campaign

import (
	"context"
	"errors"

	"github.com/actorlock/actorlock/messages"
)

// Causes of the end of a term beside the loss of the lock, which is a messages.Lost.
var (
	// ErrResigned: the participant was asked to resign, or its work is done.
	ErrResigned = errors.New("the leader resigns")
	// ErrRevoked: another client asked the leader to resign.
	ErrRevoked = errors.New("another client asked the leader to resign")
)

// Term is the time for which a participant leads, such as a singleton. Any goroutine may use it.
type Term struct {
	// Granted is the lock's answer.
	Granted *messages.Granted
	path    string
	lost    func(epoch uint64) bool // by the clock
	context context.Context
	end     context.CancelCauseFunc
}

// NewTerm returns the term of a grant of the lock at path, whose context ends with parent at the latest. lost
// reports whether the session of an epoch is lost, by the clock. End must be called once.
func NewTerm(parent context.Context, path string, lost func(epoch uint64) bool, granted *messages.Granted) *Term {
	t := &Term{Granted: granted, path: path, lost: lost}
	t.context, t.end = context.WithCancelCause(parent)
	return t
}

// End ends the context of the term. The first cause stays.
func (t *Term) End(why error) { t.end(why) }

// Err returns why the term is over, or nil. It looks at the clock.
func (t *Term) Err() error {
	if t.context.Err() == nil && t.lost(t.Granted.Epoch) {
		t.end(&messages.Lost{Reason: messages.Reason_SESSION_LOST, Detail: t.path})
	}
	return context.Cause(t.context)
}

// Context returns a context that ends with the term, with the Err of the term as its cause. Its own
// Err looks at the clock.
func (t *Term) Context() context.Context { return termContext{t.context, t} }

type termContext struct {
	context.Context
	term *Term
}

// Err implements context.Context.
func (c termContext) Err() error {
	c.term.Err()
	return c.Context.Err()
}
