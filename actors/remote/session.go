package remote

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
)

// validity is until when a lease is valid, for any goroutine to read.
type validity struct {
	margin time.Duration // between until and the end of the lease
	until  atomic.Int64  // by the clock of the session
	passed atomic.Bool   // it was seen to be over: a later answer does not bring it back
}

func (v *validity) over(at time.Duration) bool {
	if v.passed.Load() {
		return true
	}
	if int64(at) < v.until.Load() {
		return false
	}
	v.passed.Store(true)
	return true
}

// snapshot is what other goroutines may read of the state of a session.
type snapshot struct {
	zkbridge.Session
	lease       *validity // of the epoch; nil before the first
	outageSince time.Time // zero without an outage
	outageWhy   string
}

// Ref implements manager.AnySession.
func (s *session) Ref() messages.BridgeRef { return messages.BridgeRef{To: s.self} }

// Session implements manager.AnySession.
func (s *session) Session() zkbridge.Session {
	now := s.state.Load()
	present := now.Session
	if now.lease != nil && present.State != messages.SessionState_ENDED {
		present.Deadline = s.clock.TimeOf(time.Duration(now.lease.until.Load()))
		if present.State != messages.SessionState_LOST && now.lease.over(s.clock.Now()) {
			present.State = messages.SessionState_LOST
		}
	}
	return present
}

// Sessions implements manager.AnySession.
func (s *session) Sessions(ctx context.Context) <-chan zkbridge.Session {
	return zkbridge.SessionStream(ctx, s)
}

// Now implements manager.AnySession.
func (s *session) Now() time.Duration { return s.clock.Now() }

// TimeOf implements manager.AnySession.
func (s *session) TimeOf(at time.Duration) time.Time { return s.clock.TimeOf(at) }

// Lost implements manager.AnySession.
func (s *session) Lost(epoch uint64) bool { return s.LostAt(epoch, s.clock.Now()) }

// LostAt implements manager.AnySession.
func (s *session) LostAt(epoch uint64, at time.Duration) bool {
	now := s.state.Load()
	switch {
	case now.Epoch != epoch:
		return epoch < now.Epoch
	case now.State == messages.SessionState_LOST:
		return true
	case now.State == messages.SessionState_ENDED:
		return false
	}
	return now.lease.over(at)
}

// OutageText implements manager.AnySession.
func (s *session) OutageText() string {
	now := s.state.Load()
	if now.outageWhy == "" {
		return ""
	}
	why := errors.New(now.outageWhy)
	if last := s.lastError.Load(); last != nil && !last.at.Before(now.outageSince) {
		why = fmt.Errorf("%w; the last attempt failed: %w", why, last.err)
	}
	return zkbridge.DescribeOutage("the lock server", now.outageSince, why)
}

// Explain implements manager.AnySession.
func (s *session) Explain(err error) error { return zkbridge.ExplainBy(s.OutageText(), err) }

// Stats implements manager.AnySession.
func (s *session) Stats() zkbridge.Stats {
	return zkbridge.Stats{Suspensions: s.suspensions.Load(), SessionsLost: s.lost.Load()}
}

// OnBatch implements manager.AnySession. A client makes no transactions.
func (s *session) OnBatch(func(int)) {}

// SetServers implements manager.AnySession.
func (s *session) SetServers(list string) error {
	servers, err := parseServers(list)
	if err == nil {
		s.self.Tell(newServers{servers})
	}
	return err
}

// connectError is the error of an attempt to reach a server, and when it happened.
type connectError struct {
	err error
	at  time.Time
}
