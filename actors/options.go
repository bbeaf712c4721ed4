package actors

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/actorlock/actorlock/actors/internal/check"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
)

// Owner names the owner of a request. A further request of the owner that holds a re-entrant lock
// is granted at once (re-entry); other owners of the process wait as contenders of other processes
// do. Semaphores have no re-entry: see Semaphore. A name has 1,024 bytes at most, or is ErrInvalid.
type Owner string

// Option sets something for one request.
type Option interface {
	setRequest(*messages.Acquire) error
}

type requestOption func(*messages.Acquire) error

func (set requestOption) setRequest(m *messages.Acquire) error { return set(m) }

// WithOwner makes the request one of the named owner. Without it each request has an owner of
// its own: a second request that conflicts with the first waits for it, even in the same goroutine.
// After some seconds the log then has a hint, and so has the error of WithTimeout.
//
// After the loss of a grant the owner's further requests fail with the reason of the loss until
// the owner has called Release on the lost grant: otherwise a re-entry could turn into a new
// grant unnoticed by the part of the program that relies on the old one. (Not those of a semaphore:
// it has no re-entry.)
//
// An owner that waits for a MultiLock or holds it enters only that one again: see MultiLock.
func WithOwner(owner Owner) Option {
	return requestOption(func(m *messages.Acquire) error {
		if owner == "" {
			return check.Invalid("owner is empty: it must be a name, or leave WithOwner out")
		}
		m.Owner = string(owner)
		return nil
	})
}

// WithTimeout ends the request with ErrTimedOut when it has waited for d, which must be
// positive. The end of the context ends it as well.
func WithTimeout(d time.Duration) Option {
	return requestOption(func(m *messages.Acquire) error {
		if d <= 0 {
			return check.Invalid(fmt.Sprintf("timeout %v: it must be positive; use Try for not waiting at all", d))
		}
		m.WaitNanos = int64(d)
		return nil
	})
}

// WithData sets the data of the contender's node, which others can read: 512 KiB at most. They are
// in place of the record that a node has otherwise, see Config.OmitHolder; empty data are as none.
// A re-entry has no node of its own, so its data is dropped.
func WithData(data []byte) Option {
	return requestOption(func(m *messages.Acquire) error {
		m.Data = slices.Clone(data)
		return nil
	})
}

// Revocable notifies the holder at once when another client asks it to release (Grant.Revoked),
// and when its node is deleted. It costs a read for each grant. Without it, and with a LocalQueue,
// the holder is notified once it has held the lock for a second or two.
func Revocable() Option {
	return requestOption(func(m *messages.Acquire) error {
		m.Revocable = true
		return nil
	})
}

// Try ends the request with ErrNotAcquired rather than let it wait for other contenders, and
// with ErrSuspended rather than let it wait for a connection to ZooKeeper, whether the connection
// is lost before or during the request. The request may still wait for ZooKeeper's answer, until
// the context ends.
func Try() Option {
	return requestOption(func(m *messages.Acquire) error {
		m.Try = true
		return nil
	})
}

// HoldAtMost ends the grant with ErrHoldExpired when the lock has been held for d, which must be
// positive, whatever the holder does. Grant.Revoked is closed when three quarters of d are over, so
// that the holder can finish its work and release. At the end Err, Done and the contexts of the
// grant change first, and then the node is deleted, unless it serves other grants. As after any
// loss, only a resource that checks tokens keeps a holder that goes on from doing harm. A re-entry
// is a grant of its own, by which the owner goes on to hold the lock. After the end a named owner
// is refused the lock until it calls Release, as WithOwner says of a loss.
func HoldAtMost(d time.Duration) Option {
	return requestOption(func(m *messages.Acquire) error {
		if d <= 0 {
			return check.Invalid(fmt.Sprintf("HoldAtMost %v: it must be positive; leave the option out to hold without limit", d))
		}
		m.HoldNanos = int64(d)
		return nil
	})
}

// FailOnSessionLoss ends the request with ErrSessionLost when the ZooKeeper session is lost while
// the request waits, as Curator's acquire fails then. Without it the request queues again in the
// next session, behind all others.
func FailOnSessionLoss() Option {
	return requestOption(func(m *messages.Acquire) error {
		m.FailOnSessionLoss = true
		return nil
	})
}

// Permits asks for n permits of a semaphore: from 1 to the number that the semaphore has. All n
// permits are granted together, or none. Without Permits a request asks for one. With SharedPermits
// n may be greater than the present number: the request then waits until the number has grown.
func Permits(n int) Option {
	return requestOption(func(m *messages.Acquire) error {
		if n < 1 || n > math.MaxInt32 {
			return check.Invalid(fmt.Sprintf("permits %d: it must be from 1 to %d", n, math.MaxInt32))
		}
		m.Permits = uint32(n)
		return nil
	})
}

func newAcquisition(h *handle) (*acquisition, *ask.Promise[*Grant]) {
	a := &acquisition{handle: h, unarmed: true}
	return a, ask.NewPromise[*Grant](a)
}

// plainAcquires are the requests without options, by kind. All such requests share these
// messages, which are a good part of the memory of a waiter.
var plainAcquires = func() (all [queue.MaxKinds]*messages.Acquire) {
	for kind := range all {
		all[kind] = &messages.Acquire{Kind: uint32(kind)}
	}
	return all
}()

// prepare makes the request ready to be sent. Otherwise it completes the promise with the error
// and returns false.
func (a *acquisition) prepare(ctx context.Context, p *ask.Promise[*Grant], options []Option) bool {
	if err := a.fill(ctx, options); err != nil {
		p.Complete(nil, err)
		return false
	}
	a.promise.Store(p)
	return true
}

func (a *acquisition) fill(ctx context.Context, options []Option) error {
	if ctx == nil {
		return check.ErrNilContext
	}
	a.msg = plainAcquires[a.handle.kind]
	if len(options) > 0 {
		a.msg = &messages.Acquire{Kind: a.msg.Kind}
	}
	for i, option := range options {
		if option == nil {
			return check.Invalid(fmt.Sprintf("option %d of %d is nil: leave it out", i+1, len(options)))
		}
		if err := option.setRequest(a.msg); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return a.handle.contextError(ctx)
	}
	if a.handle.manager.RecordStacks {
		a.notificationsLocked().acquired = callers()
	}
	if a.handle.manager.Monitor != nil { // which needs the contexts of Acquisitions
		a.notificationsLocked().ctx = ctx
	}
	return nil
}
