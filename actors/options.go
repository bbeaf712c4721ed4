package actors

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/actorlock/actorlock/messages"
)

// Owner names who holds a lock. A request of the owner that holds the lock is
// granted at once (re-entry); other owners of the process wait like anybody else.
// Semaphores know no re-entry: see Semaphore.Acquire.
type Owner string

// Option sets something for one request.
type Option func(*messages.Acquire) error

// WithOwner makes the request one of the named owner. Without it each request is an
// owner of its own: a second one waits for the first, whoever made it.
//
// After the loss of a grant the owner's further requests fail with the reason of the
// loss until it has called Release on what it lost: a re-entry must not turn into a
// new grant behind the back of whoever thinks to hold the old one.
//
// A MultiLock is entered again only as far as one request for a multi-lock has taken its
// members. Otherwise its owner must not wait for a member, or hold it, by another request.
func WithOwner(owner Owner) Option {
	return func(m *messages.Acquire) error {
		if owner == "" {
			return invalid("owner is empty: it must be a name, or leave WithOwner out")
		}
		m.Owner = string(owner)
		return nil
	}
}

// WithTimeout ends the request with ErrTimedOut when it has waited for d, which
// must be positive. The end of the context ends it as well.
func WithTimeout(d time.Duration) Option {
	return func(m *messages.Acquire) error {
		if d <= 0 {
			return invalid(fmt.Sprintf("timeout %v: it must be positive; use Try for not waiting at all", d))
		}
		m.WaitNanos = int64(d)
		return nil
	}
}

// WithData is what the contender's node carries for others to read, at most 512 KiB.
// A re-entry has no node of its own, so its data goes nowhere.
func WithData(data []byte) Option {
	return func(m *messages.Acquire) error {
		m.Data = slices.Clone(data)
		return nil
	}
}

// Revocable lets the holder hear at once when it is asked to release (Grant.Revoked), and
// when its node is deleted. It costs a read for each grant. Without it that begins when
// the lock has been held for a second or two.
func Revocable() Option {
	return func(m *messages.Acquire) error {
		m.Revocable = true
		return nil
	}
}

// Try ends the request with ErrNotAcquired rather than let it wait for others, and with
// ErrSuspended rather than let it wait for a connection to ZooKeeper, be that lost before
// or while the request waits. It may still wait for ZooKeeper's answer, as the context
// allows.
func Try() Option {
	return func(m *messages.Acquire) error {
		m.Try = true
		return nil
	}
}

// Permits makes the request one for n permits of a semaphore, which must be 1 or more,
// and not more than it has: all of them are granted together, or none. Without it a
// request is for one.
func Permits(n int) Option {
	return func(m *messages.Acquire) error {
		if n < 1 || n > math.MaxInt32 {
			return invalid(fmt.Sprintf("permits %d: it must be from 1 to %d", n, math.MaxInt32))
		}
		m.Permits = uint32(n)
		return nil
	}
}
