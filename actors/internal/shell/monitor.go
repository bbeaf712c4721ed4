package shell

import (
	"context"
	"time"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/messages"
)

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

func (s *Shell) beginMonitor(r *Request) {
	if s.Manager.Monitor == nil || r.FromLockActor {
		return
	}
	ctx := context.Background()
	if a := r.Acquisition(); a != nil {
		ctx = a.Context()
	}
	if m := s.Manager.Monitor(ctx, s.Entry, s.Recipe.KindName(r.Kind), r.OwnerName()); m != nil {
		r.needExtras().monitor = m
	}
}

func (r *Request) monitor() RequestMonitor {
	if r.extras == nil {
		return nil
	}
	return r.extras.monitor
}
