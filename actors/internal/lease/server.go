package lease

import (
	"slices"
	"time"
)

// maxUnconfirmed is how many answers to renewals of one stream may be unconfirmed. A client renews
// about three times in a v.
const maxUnconfirmed = 4

// ServerEnd is the server's end of one lease. All its times are of the clock of the bridge.
type ServerEnd struct {
	count       time.Duration // no client believes later; 0: no renewal was answered
	unused      time.Duration // when the lease ends if no renewal is answered
	newest      uint64        // answered renewal
	unconfirmed []uint64      // renewals that were answered on this stream, in order
	draining    bool
	letGo       bool
	ended       bool
}

// NewServerEnd begins a lease. It ends after the limit if the client never renews it.
func NewServerEnd(now, limit time.Duration) *ServerEnd { return &ServerEnd{unused: now + limit} }

// Renew handles a renewal, and reports whether to answer it with v. The answer is counted by then.
// v is what the server may promise: the caller reads now and asks the bridge for v after the
// renewal has arrived. A renewal is not answered if
//   - the lease has ended, or the server drains;
//   - v is not positive, as without a session;
//   - the client has not confirmed the last answers of this stream; or
//   - the number is not above those that were answered.
func (s *ServerEnd) Renew(now time.Duration, number, got uint64, v time.Duration) bool {
	s.unconfirmed = slices.DeleteFunc(s.unconfirmed, func(n uint64) bool { return n <= got })
	if s.Ended(now) || s.draining || v <= 0 || number <= s.newest || len(s.unconfirmed) == maxUnconfirmed {
		return false
	}
	s.count = max(s.count, now+v+v/clockError)
	s.newest = number
	s.unconfirmed = append(s.unconfirmed, number)
	return true
}

// Resume begins a new stream of the client. The answers that were lost with earlier ones no longer
// count as unconfirmed.
func (s *ServerEnd) Resume() { s.unconfirmed = s.unconfirmed[:0] }

// Drain has no renewal answered any more.
func (s *ServerEnd) Drain() { s.draining = true }

// LetGo handles the client's word that it believes in the lease no more. The lease has ended.
func (s *ServerEnd) LetGo() { s.letGo, s.ended = true, true }

// Count returns the time after which no client believes in the lease, 0 if no renewal was answered.
func (s *ServerEnd) Count() time.Duration { return s.count }

// Believed reports whether a client may believe in the lease. The server must not close its session
// before that is false for all leases.
func (s *ServerEnd) Believed(now time.Duration) bool { return !s.letGo && now < s.count }

// Ended reports whether the server may give the grants of the lease to others. Once it has returned
// true it always does.
func (s *ServerEnd) Ended(now time.Duration) bool {
	s.ended = s.ended || now >= s.End()
	return s.ended
}

// End returns when the lease ends, unless a later renewal is answered or the client lets go before.
func (s *ServerEnd) End() time.Duration {
	if s.count == 0 {
		return s.unused
	}
	return s.count
}
