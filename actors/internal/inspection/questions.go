package inspection

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/actorlock/actorlock/actors/internal/check"
	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/actors/internal/recipes"
	"github.com/actorlock/actorlock/messages"
)

// What calls ask ZooKeeper: one question for each kind of call. A process with ZooKeeper answers
// its own by the function here. The locks of a lock server send the question there, where the same
// function answers it.
var (
	Inspect       = question("inspect", 0, (*Target).inspect)
	Find          = question("find", ofTree, (*Target).find)
	observed      = stream("observe", 0, (*Target).observe)
	Participants  = question("participants", ofLock, (*Target).participants)
	Remaining     = question("remaining", ofLock, (*Target).remaining)
	Verify        = question("verify", ofLock, (*Target).verify)
	VerifyToken   = question("verify-token", ofNode, (*Target).verifyToken)
	ReadData      = question("data", ofNode, (*Target).readData)
	Revoke        = question("revoke", ofNode|changing, (*Target).revoke)
	RevokeHolders = question("revoke-holders", ofLock|changing, (*Target).revokeHolders)
	GetCount      = question("count", ofCount, (*Target).count)
	SetCount      = question("set-count", ofCount|changing, (*Target).setCount)
	TrySetCount   = question("try-set-count", ofCount|changing, (*Target).trySetCount)
	GetGeneration = question("generation", ofEnsemble, (*Target).generation)
	CheckHealth   = question("health", ofEnsemble, (*Target).health)
)

// Target is what a question is about: a lock, or the path of something else, which has no recipe.
type Target struct {
	Manager *manager.Manager
	Path    string
	Recipe  *manager.Recipe
	// Problem is what is wrong with the options of the lock, or nil. It is the answer to all questions.
	Problem error
	// Pause is the least time between two reads of Observe, 0 for 100 ms. A value in Again, which has
	// room for one, has Observe read again, and Observe itself puts one in when contenders come or go; nil
	// is a channel of its own. A lock server that observes ignores both.
	Pause time.Duration
	Again chan struct{}

	asker *Asker // whose question it is; nil for the program's own
}

// trait is what distinguishes questions for a lock server. Without any the path is a lock's.
type trait int

const (
	ofLock     trait = 1 << iota // the recipe counts, not only the path
	ofNode                       // the path is a contender's node
	ofCount                      // the path is a count's
	ofTree                       // the path is a directory above locks
	ofEnsemble                   // there is no path
	changing                     // the answer to the question changes something
)

// asking is one kind of question. A is what it needs beside the path and the recipe, V the value of
// an answer: none if there is nothing. Both travel as JSON.
type asking[A, V any] struct {
	kind   string
	traits trait
	answer func(t *Target, ctx context.Context, args A, next func(V, error) (more bool))
}

// answering is the part of a kind of question that does not depend on its types.
type answering struct {
	traits trait
	answer func(ctx context.Context, t *Target, args []byte, next func(value []byte) (more bool)) error
}

// answerings holds each kind of question.
var answerings = map[string]answering{}

// Kinds returns the names of all kinds of questions, in order.
func Kinds() []string { return slices.Sorted(maps.Keys(answerings)) }

// question defines a kind of question with one answer.
func question[A, V any](kind string, traits trait, answer func(t *Target, ctx context.Context, args A) (V, error)) *asking[A, V] {
	return stream(kind, traits, func(t *Target, ctx context.Context, args A, next func(V, error) bool) {
		next(answer(t, ctx, args))
	})
}

// stream defines a kind of question with answers until next returns false or ctx ends.
func stream[A, V any](kind string, traits trait, answer func(t *Target, ctx context.Context, args A, next func(V, error) bool)) *asking[A, V] {
	q := &asking[A, V]{kind, traits, answer}
	answerings[kind] = answering{traits, q.answerJSON}
	return q
}

// ---- asking

// One asks the question about a target and returns the first answer.
func (q *asking[A, V]) One(ctx context.Context, t *Target, args A) (value V, err error) {
	switch {
	case t.Problem != nil:
		return value, t.Problem
	case t.Manager.Remote == nil:
		q.answer(t, ctx, args, func(v V, failed error) bool {
			value, err = v, failed
			return false
		})
		return value, err
	case ctx == nil:
		return value, check.ErrNilContext
	}
	within, cancel := t.whileConnected(ctx, q.traits&changing != 0)
	defer cancel(nil)
	failed := context.Cause(within)
	sent, answered := failed == nil, false
	if sent {
		failed = q.each(within, t, args, func(v V, failed error) bool {
			value, err, answered = v, failed, true
			return false
		})
	}
	switch {
	case answered:
		return value, err
	case failed == nil:
		failed = errors.New("the lock server gives no answer")
	case ctx.Err() != nil:
		failed = t.Manager.Session.Explain(context.Cause(ctx))
	case within.Err() != nil:
		failed = context.Cause(within)
	}
	if sent && q.traits&changing != 0 && (ctx.Err() != nil || answerIsLost(failed)) {
		failed = fmt.Errorf("%w: %w", messages.Reason_OUTCOME_UNKNOWN, failed)
	}
	return value, fmt.Errorf("%s: %w", strings.TrimSpace(q.kind+" "+t.Path), failed)
}

// answerIsLost reports whether a question failed without an answer of the lock server, which may
// have done what was asked for.
func answerIsLost(err error) bool {
	return errors.Is(err, messages.Reason_SESSION_LOST) || errors.Is(err, messages.Reason_CLOSED) || errors.Is(err, messages.Reason_DISCONNECTED)
}

// each asks the lock server, and calls next for each answer.
func (q *asking[A, V]) each(ctx context.Context, t *Target, args A, next func(V, error) (more bool)) error {
	asked := &messages.Question{Kind: q.kind, Path: t.Path}
	var err error
	if asked.Arguments, err = json.Marshal(args); err != nil {
		return check.Invalid(err.Error())
	}
	if q.traits&ofLock != 0 {
		if asked.Lock, err = recipes.SpecOf(t.Recipe); err != nil {
			return err
		}
	}
	var unreadable error
	err = t.Manager.Remote.Ask(ctx, asked, func(value []byte) bool {
		var a answerJSON[V]
		if unreadable = json.Unmarshal(value, &a); unreadable != nil {
			return false
		}
		return next(a.Value, a.Error.asError())
	})
	if unreadable != nil {
		return fmt.Errorf("the lock server's answer to %q cannot be read: %w", q.kind, unreadable)
	}
	return err
}

// whileConnected returns a context that ends when the lock server cannot be asked: at once while
// there is no connection, and also later unless the question is sent only once, since its answer
// may come after the outage.
func (t *Target) whileConnected(ctx context.Context, once bool) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	session := t.Manager.Session
	if err := unreachable(session, session.Session().State); err != nil {
		cancel(err)
	} else if !once {
		go func() {
			for s := range session.Sessions(ctx) {
				if err := unreachable(session, s.State); err != nil {
					cancel(err)
				}
			}
		}()
	}
	return ctx, cancel
}

// unreachable returns why nothing can be asked in a state of the session; nil if it can.
func unreachable(session manager.AnySession, state messages.SessionState) error {
	switch state {
	case messages.SessionState_CONNECTED:
		return nil
	case messages.SessionState_SUSPENDED:
		return &messages.Failed{Reason: messages.Reason_DISCONNECTED, Detail: session.OutageText()}
	case messages.SessionState_ENDED:
		return &messages.Failed{Reason: messages.Reason_CLOSED}
	}
	return session.Explain(&messages.Failed{Reason: messages.Reason_SESSION_LOST})
}
