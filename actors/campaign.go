package actors

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"time"

	"github.com/actorlock/actorlock/actors/internal/campaign"
	"github.com/actorlock/actorlock/actors/internal/check"
)

// Term is the time for which one participant leads.
type Term struct {
	grant  *Grant
	number int
	work   context.Context
	cancel context.CancelCauseFunc // of work
}

// Context returns the context for the work of the term: a child of Campaign's. It ends at the
// latest when the term does, as Grant.Context does; with ResignOnRevoke also when another client
// asks the leader to resign. Its cause says why.
func (t *Term) Context() context.Context { return t.work }

// Token returns the fencing token of the term, which is greater than those of all earlier terms
// of all participants.
func (t *Term) Token() Token { return t.grant.Token() }

// Number returns how many terms the campaign has had, this one included.
func (t *Term) Number() int { return t.number }

// Grant returns the grant of the lock, for its Guard, Verify, Err, Revoked and Node. Its Release
// resigns before the body of the loop is left: only for work that is done already.
func (t *Term) Grant() *Grant { return t.grant }

// Resign ends the context of the term, with ErrResigned as its cause, so that the body of the loop
// returns; the term is over then, and the campaign queues again, at the end. Any goroutine may call
// it, for example the handler of an operator's command. It does not block. A term whose context has
// ended stays as it is.
func (t *Term) Resign() { t.cancel(ErrResigned) }

// Campaign returns the terms of this participant, one after the other. The body of the loop is
// the work of a term:
//
//	for term, err := range election.Campaign(ctx) {
//		if err != nil {
//			return err // the campaign has ended
//		}
//		lead(term.Context(), term.Token()) // returns when the context ends
//	}
//
// The loop waits until this participant leads, and then runs the body. To leave the body, in
// whatever way, is to resign: the lock is released only then, after the work has returned. A panic
// in the body resigns, too, and goes on. Resigning blocks until ZooKeeper has acknowledged that the
// node is deleted, or until the session is lost, also after the end of ctx. Curator's
// LeaderSelector does the same when takeLeadership returns. Afterwards the loop queues again, at
// the end.
//
// The campaign outlives the loss of the session and of the connection, the deletion of its node,
// and the end of HoldAtMost: the context of a term ends, and after the body the loop waits for the
// next term. It also goes on after ErrLimit, ErrInternal and ErrSequenceExhausted, with pauses of
// up to 10 s that the log reports. All other errors are final: the loop runs the body once
// more, with the error and a nil Term, and ends. These are the cause of ctx, ErrClosed,
// ErrDraining, ErrInvalid, ErrNoAuth, ErrNoDirectory, ErrUnavailable, and what the options ask for: ErrTimedOut of
// WithTimeout, ErrNotAcquired and ErrSuspended of Try, ErrSessionLost of FailOnSessionLoss for a
// request that waits. After a break out of the loop there is no further call of the body.
// Locks.Drain ends a campaign that waits, but no term: end ctx for that.
//
// The options are those of each term's request. WithOwner and WithData are refused (ErrInvalid):
// each loop is an owner of its own, so that several campaigns in one process exclude each other.
// If a handle of this process uses the path with LocalQueue or LockDelay, the campaign ends with
// ErrInvalid. An actor must not call it: see Singleton.
func (e *Election) Campaign(ctx context.Context, options ...Option) iter.Seq2[*Term, error] {
	return func(yield func(*Term, error) bool) {
		if err := e.lock.problem; err != nil || ctx == nil {
			yield(nil, cmp.Or(err, check.ErrNilContext))
			return
		}
		var failOnLoss bool
		options := e.withID(options, &failOnLoss)
		for number := 1; ; number++ {
			grant, err := e.await(ctx, options, &failOnLoss)
			if err == nil {
				var more bool
				if more, err = e.lead(ctx, grant, number, yield); !more {
					return
				}
			}
			if err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// await blocks until this participant leads. Its error is final. failOnLoss is whether the last
// request had FailOnSessionLoss.
func (e *Election) await(ctx context.Context, options []Option, failOnLoss *bool) (*Grant, error) {
	for attempt := 0; ; attempt++ {
		grant, err := e.lock.Lock(ctx, options...)
		if !campaign.IsTemporary(err) || *failOnLoss && errors.Is(err, ErrSessionLost) {
			return grant, err
		}
		pause := campaign.Pause(attempt)
		e.lock.manager.Log.Warn(campaign.Retrying, "path", e.Path(), "error", err, "after", pause)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, e.lock.contextError(ctx)
		}
	}
}

// lead runs the body of the loop for one term, and resigns. It returns whether the loop goes on,
// and the final error of a release.
func (e *Election) lead(ctx context.Context, grant *Grant, number int, yield func(*Term, error) bool) (more bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	term := &Term{grant, number, grant.Context(ctx), cancel}
	defer func() { // also after a panic or runtime.Goexit
		_, err = grant.Release().Wait(context.Background())
		if errors.Is(err, ErrNotHeld) || errors.Is(err, ErrClosed) || campaign.IsTemporary(err) {
			err = nil
		}
	}()
	if e.resignOnRevoke {
		go func() {
			select {
			case <-grant.Revoked():
				cancel(ErrRevoked)
			case <-term.work.Done():
			}
		}()
	}
	return yield(term, nil), nil
}
