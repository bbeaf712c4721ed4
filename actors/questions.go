package actors

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/actorlock/actorlock/actors/internal/check"
	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/actors/internal/recipes"
	"github.com/actorlock/actorlock/messages"
)

// What calls ask ZooKeeper: one question for each kind of call. A process with ZooKeeper answers
// its own by the function here. The locks of a lock server send the question there, where the same
// function answers it.
var (
	askInspect       = question("inspect", 0, (*handle).inspect)
	askFind          = question("find", ofTree, (*handle).find)
	askObserve       = stream("observe", 0, (*handle).observe)
	askParticipants  = question("participants", ofLock, (*handle).participants)
	askRemaining     = question("remaining", ofLock, (*handle).remaining)
	askVerify        = question("verify", ofLock, (*handle).verify)
	askVerifyToken   = question("verify-token", ofNode, (*handle).verifyToken)
	askRevoke        = question("revoke", ofNode|changing, (*handle).revoke)
	askRevokeHolders = question("revoke-holders", ofLock|changing, (*handle).revokeHolders)
	askCount         = question("count", ofCount, (*handle).count)
	askSetCount      = question("set-count", ofCount|changing, (*handle).setCount)
	askTrySetCount   = question("try-set-count", ofCount|changing, (*handle).trySetCount)
	askGeneration    = question("generation", ofEnsemble, (*handle).generation)
	askHealth        = question("health", ofEnsemble, (*handle).health)
)

// trait is what distinguishes questions for a lock server. Without any the path is that of a lock.
type trait int

const (
	ofLock     trait = 1 << iota // the recipe counts, not only the path
	ofNode                       // the path is that of a contender's node
	ofCount                      // the path is that of a count
	ofTree                       // the path is that of a directory above locks
	ofEnsemble                   // there is no path
	changing                     // the question has something changed
)

// asking is one kind of question. A is what it needs beside the path and the recipe, V the value of
// an answer: none if there is nothing. Both travel as JSON.
type asking[A, V any] struct {
	kind   string
	traits trait
	answer func(h *handle, ctx context.Context, args A, next func(V, error) (more bool))
}

type none struct{}

// answering is the part of a kind of question that does not depend on its types.
type answering struct {
	traits trait
	answer func(ctx context.Context, h *handle, args []byte, next func(value []byte) (more bool)) error
}

// answerings holds each kind of question.
var answerings = map[string]answering{}

// question defines a kind of question with one answer.
func question[A, V any](kind string, traits trait, answer func(h *handle, ctx context.Context, args A) (V, error)) *asking[A, V] {
	return stream(kind, traits, func(h *handle, ctx context.Context, args A, next func(V, error) bool) {
		next(answer(h, ctx, args))
	})
}

// stream defines a kind of question with answers until next returns false or ctx ends.
func stream[A, V any](kind string, traits trait, answer func(h *handle, ctx context.Context, args A, next func(V, error) bool)) *asking[A, V] {
	q := &asking[A, V]{kind, traits, answer}
	answerings[kind] = answering{traits, q.answerJSON}
	return q
}

// ---- asking

// one asks the question of a handle and returns the first answer.
func (q *asking[A, V]) one(ctx context.Context, h *handle, args A) (value V, err error) {
	switch {
	case h.problem != nil:
		return value, h.problem
	case h.manager.Remote == nil:
		q.answer(h, ctx, args, func(v V, failed error) bool {
			value, err = v, failed
			return false
		})
		return value, err
	case ctx == nil:
		return value, check.ErrNilContext
	}
	within, cancel := h.whileConnected(ctx, q.traits&changing != 0)
	defer cancel(nil)
	failed := context.Cause(within)
	sent, answered := failed == nil, false
	if sent {
		failed = q.each(within, h, args, func(v V, failed error) bool {
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
		failed = h.manager.Session.Explain(context.Cause(ctx))
	case within.Err() != nil:
		failed = context.Cause(within)
	}
	if sent && q.traits&changing != 0 && (ctx.Err() != nil || answerIsLost(failed)) {
		failed = fmt.Errorf("%w: %w", messages.Reason_OUTCOME_UNKNOWN, failed)
	}
	return value, fmt.Errorf("%s: %w", strings.TrimSpace(q.kind+" "+h.path), failed)
}

// answerIsLost reports whether a question failed without an answer of the lock server, which may
// have done what was asked for.
func answerIsLost(err error) bool {
	return errors.Is(err, messages.Reason_SESSION_LOST) || errors.Is(err, messages.Reason_CLOSED) || errors.Is(err, messages.Reason_DISCONNECTED)
}

// each asks the lock server, and calls next for each answer.
func (q *asking[A, V]) each(ctx context.Context, h *handle, args A, next func(V, error) (more bool)) error {
	asked := &messages.Question{Kind: q.kind, Path: h.path}
	var err error
	if asked.Arguments, err = json.Marshal(args); err != nil {
		return check.Invalid(err.Error())
	}
	if q.traits&ofLock != 0 {
		if asked.Lock, err = recipes.SpecOf(h.recipe); err != nil {
			return err
		}
	}
	var unreadable error
	err = h.manager.Remote.Ask(ctx, asked, func(value []byte) bool {
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
func (h *handle) whileConnected(ctx context.Context, once bool) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	session := h.manager.Session
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

// needsZooKeeper returns the error of a call that a lock server does not answer; nil in a process
// with ZooKeeper.
func (h *handle) needsZooKeeper(call, instead string) error {
	if h.manager.Remote == nil {
		return nil
	}
	return check.Invalid(fmt.Sprintf("%s needs a process with a ZooKeeper session of its own: %s", call, instead))
}

// at returns what a question about a path needs.
func (l *Locks) at(path string) *handle { return &handle{manager: l.manager, path: path} }
