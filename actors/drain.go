package actors

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/actorlock/actorlock/actors/internal/check"
	"github.com/actorlock/actorlock/messages"
)

// Drain prepares for Close: it blocks until this process holds no lock and ZooKeeper has confirmed
// all releases, or ctx ends. Then Close ends no grant that is in use. The error of an ended ctx
// names the locks that are still held.
//
// From the call on, new requests end with ErrDraining, and so do those that wait: a waiter would
// begin its work only after other holders have ended theirs, here or in other processes, for which
// there is no limit. Holders go on, and may enter again, as named owners, the lock that they hold.
// Nothing ends the draining but Close. If that ends grants which are held, Drain returns ErrClosed.
// Drain may be called again, with another ctx. An actor must not call it.
func (l *Locks) Drain(ctx context.Context) error {
	if ctx == nil {
		return check.ErrNilContext
	}
	quiet := l.manager.RefuseNew()
	select {
	case <-quiet:
	default:
		select {
		case <-quiet:
		case <-ctx.Done():
			return fmt.Errorf("drain: %s: %w", l.heldText(), context.Cause(ctx))
		}
	}
	if l.manager.Counters().Lost[messages.Reason_CLOSED] > 0 {
		return fmt.Errorf("drain: Close has ended grants that were held: %w", ErrClosed)
	}
	return nil
}

// heldText returns the requests that are not released, with owner, state and time, for people.
func (l *Locks) heldText() string {
	const most = 10
	var texts []string
	n := 0
	for _, r := range l.OpenRequests() {
		if r.State == RequestLost {
			continue
		}
		if n++; n > most {
			continue
		}
		text := fmt.Sprintf("%s (%s", r.Path, r.State)
		if r.Owner != "" {
			text += fmt.Sprintf(" by %q", r.Owner)
		}
		texts = append(texts, text+" since "+r.Since.Format(time.TimeOnly)+")")
	}
	if n > most {
		texts = append(texts, fmt.Sprintf("and %d more", n-most))
	}
	return fmt.Sprintf("%d requests are not released: %s", n, strings.Join(texts, ", "))
}
