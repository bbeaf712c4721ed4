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
	taken       []takenGrant // that the client has not confirmed, in the order of their counts
}

// takenGrant is a grant that ends before its lease.
type takenGrant struct {
	grant uint64
	count time.Duration // of the lease when the client was told
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
// count as unconfirmed. Before the first answer on the new stream the caller tells the client of
// all taken grants that it has not confirmed.
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
	s.ended = s.ended || now >= s.end()
	return s.ended
}

// end returns when the lease ends.
func (s *ServerEnd) end() time.Duration {
	if s.count == 0 {
		return s.unused
	}
	return s.count
}

// Take notes that the server takes a grant. The caller tells the client before it sends any later
// answer, so no later answer extends the client's belief in this grant. A second Take of a grant
// does nothing.
func (s *ServerEnd) Take(grant uint64) {
	if s.indexOfTaken(grant) < 0 {
		s.taken = append(s.taken, takenGrant{grant, s.count})
	}
}

// Confirmed handles the client's word that it believes in a grant no more. It does nothing if the
// grant was not taken.
func (s *ServerEnd) Confirmed(grant uint64) {
	if i := s.indexOfTaken(grant); i >= 0 {
		s.taken = slices.Delete(s.taken, i, i+1)
	}
}

func (s *ServerEnd) indexOfTaken(grant uint64) int {
	return slices.IndexFunc(s.taken, func(t takenGrant) bool { return t.grant == grant })
}

// Due returns the taken grants that may be given to others, and forgets them: no client
// believes in them any more.
func (s *ServerEnd) Due(now time.Duration) (grants []uint64) {
	for len(s.taken) > len(grants) && now >= s.taken[len(grants)].count {
		grants = append(grants, s.taken[len(grants)].grant)
	}
	s.taken = slices.Delete(s.taken, 0, len(grants))
	return grants
}

// Next returns when the caller has to call Due and Ended, unless the machine is called before: the
// time at which one of them may first return something else.
func (s *ServerEnd) Next() time.Duration {
	if len(s.taken) > 0 {
		return s.taken[0].count
	}
	return s.end()
}
