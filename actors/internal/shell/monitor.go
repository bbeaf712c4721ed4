package shell

import (
	"context"
	"time"

	"github.com/actorlock/actorlock/messages"
)

// Monitor hears of the requests of owners. The locks' actors call its methods, which must not block.
type Monitor interface {
	// Request is called for a request that a lock has accepted. ctx is the context of an Acquisition;
	// other senders have context.Background. It may return nil.
	Request(ctx context.Context, e *Entry, kind, owner string) RequestMonitor
}

// RequestMonitor hears of one request. One goroutine at a time calls its methods.
type RequestMonitor interface {
	// Granted is called before the owner hears of its grant.
	Granted(waited time.Duration, granted *messages.Granted, step uint32)
	// Ended is called at the end: of a wait, or of a grant after Granted. A reason of 0 is a release.
	Ended(after time.Duration, reason messages.Reason)
}

func (s *Shell) beginMonitor(r *Request) {
	if s.Manager.Monitor == nil || r.FromLockActor {
		return
	}
	ctx := context.Background()
	if a := r.Acquisition(); a != nil {
		ctx = a.Context()
	}
	if m := s.Manager.Monitor.Request(ctx, s.Entry, s.Recipe.KindName(r.Kind), r.OwnerName()); m != nil {
		r.needExtras().monitor = m
	}
}

func (r *Request) monitor() RequestMonitor {
	if r.extras == nil {
		return nil
	}
	return r.extras.monitor
}

func (s *Shell) endMonitor(r *Request, reason messages.Reason) {
	if m := r.monitor(); m != nil {
		m.Ended(s.Manager.now()-r.since, reason)
	}
}
