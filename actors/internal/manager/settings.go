package manager

import (
	"context"
	"log/slog"
	"time"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/messages"
)

// Settings is what the actors of one Manager have in common.
type Settings struct {
	// IdleTimeout is how long an actor without use goes on. 0 means 10 s.
	IdleTimeout time.Duration
	// StopOnSuspended has the contexts of grants end when the connection is lost.
	StopOnSuspended bool
	Limits          Limits
	// OmitHolder leaves the data of nodes empty unless a request has data of its own.
	OmitHolder bool
	// RecordStacks has Acquisitions record where they were made.
	RecordStacks bool
	// Monitor hears of the requests; nil for none.
	Monitor Monitor
	// Log hears of misuse and of failures.
	Log *slog.Logger
}

// Monitor is called for each request of an owner that a lock has accepted. ctx is the context of an
// Acquisition; other senders have context.Background. It must not block, and may return nil.
type Monitor func(ctx context.Context, e *Entry, kind, owner string) RequestMonitor

// RequestMonitor hears of one request. One goroutine at a time calls its methods, which must not block.
type RequestMonitor interface {
	// Granted is called before the owner hears of its grant.
	Granted(waited time.Duration, token requests.Token)
	// Refused is called at the end of a request that was not granted.
	Refused(waited time.Duration, reason messages.Reason)
	// Ended is called at the end of a grant. A reason of 0 is a release.
	Ended(held time.Duration, reason messages.Reason)
}
