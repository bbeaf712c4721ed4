package actors

import (
	"fmt"
	"slices"
	"time"

	"github.com/actorlock/actorlock/messages"
)

// Owner names who holds a lock. A request of the owner that holds the lock is
// granted at once (re-entry); other owners of the process wait like anybody else.
type Owner string

// Option sets something for one request.
type Option func(*messages.Acquire) error

// WithOwner makes the request one of the named owner. Without it each request is an
// owner of its own: a second one waits for the first, whoever made it.
//
// After the loss of a grant the owner's further requests fail with the reason of the
// loss until it has called Release on what it lost: a re-entry must not turn into a
// new grant behind the back of whoever thinks to hold the old one.
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

// Try ends the request with ErrNotAcquired rather than let it wait for others. It may
// still wait for ZooKeeper's answer, as the context allows.
func Try() Option {
	return func(m *messages.Acquire) error {
		m.Try = true
		return nil
	}
}
