package shell

import (
	"sync/atomic"
	"time"

	"github.com/actorlock/actorlock/messages"
)

// Counters say what became of the requests of owners, of all locks of a manager. The requests of
// one lock's actor to another are not counted.
type Counters struct {
	// Requested is how many requests came to a lock, Acquired how many grants there were, and Released how
	// many of these their owners have given back.
	Requested, Acquired, Released uint64
	// Lost is how many grants ended otherwise, and Refused how many requests were never granted, by reason.
	Lost, Refused [ReasonCount]uint64
	// Held is how many grants hold, and Waiting how many requests wait.
	Held, Waiting int
	// LocalHandOffs is how often the departure of a contender of this process led to a grant.
	// RemoteHandOffs is how often the departure of another process's node led to one.
	LocalHandOffs, RemoteHandOffs uint64
}

// ReasonCount is above the numbers of all reasons.
const ReasonCount = 32

// tally counts for the Counters, of some of the locks.
type tally struct {
	requested, acquired, released, localHandOffs, remoteHandOffs atomic.Uint64
	lost, refused                                                [ReasonCount]atomic.Uint64

	_ [cacheLine]byte // between this tally and the next
}

const (
	// tallyCount is how many tallies the locks of a manager share. With one, to which all processors would write,
	// 256 local queues make a fifth less acquires on two processors.
	tallyCount = 16
	cacheLine  = 64
)

// Counters returns the present counts. A request that ends meanwhile may still count as held or waiting.
func (m *Manager) Counters() (c Counters) {
	var lost, refused uint64
	for i := range m.tallies {
		t := &m.tallies[i]
		for reason := range ReasonCount { // the end of a request is read before its beginning, so that no sum is less than its parts
			l, r := t.lost[reason].Load(), t.refused[reason].Load()
			c.Lost[reason] += l
			c.Refused[reason] += r
			lost, refused = lost+l, refused+r
		}
		c.Released += t.released.Load()
		c.Acquired += t.acquired.Load()
		c.Requested += t.requested.Load()
		c.LocalHandOffs += t.localHandOffs.Load()
		c.RemoteHandOffs += t.remoteHandOffs.Load()
	}
	c.Held, c.Waiting = int(c.Acquired-c.Released-lost), int(c.Requested-c.Acquired-refused)
	return c
}

// now returns when the message in hand was received, or outside Receive the Now of the Bridge. One
// reading of the clock for each message spares an acquire within the process 10 % of its time.
func (s *Shell) now() time.Duration {
	if s.handledAt == 0 {
		return s.Manager.Bridge.Now()
	}
	return s.handledAt
}

// countGrant counts a grant of the request. It must come before the owner hears of the grant.
func (s *Shell) countGrant(r *Request, granted *messages.Granted, step uint32) {
	now := s.now()
	if !r.FromLockActor {
		s.tally.acquired.Add(1)
		if m := r.monitor(); m != nil {
			m.Granted(now-r.since, TokenOf(granted, step))
		}
	}
	r.since = now
}

// countRelease counts the end of a grant that its owner has given back.
func (s *Shell) countRelease(r *Request) {
	if r.Holds() {
		s.countEnd(r, &s.tally.released, 0)
	}
}

// countRefusal counts the end of a request that was not granted; or of a grant, which its owner has
// withdrawn.
func (s *Shell) countRefusal(r *Request, reason messages.Reason) {
	if r.Granted != nil {
		s.countRelease(r)
	} else {
		s.countEnd(r, &s.tally.refused[reason], reason)
	}
}

// countLoss counts the loss of a grant, unless it has been released.
func (s *Shell) countLoss(r *Request, reason messages.Reason) {
	if r.Holds() {
		s.countEnd(r, &s.tally.lost[reason], reason)
	}
}

// countEnd adds to the number and notifies the monitor, at the end of a request or of its grant.
func (s *Shell) countEnd(r *Request, number *atomic.Uint64, reason messages.Reason) {
	if r.FromLockActor {
		return
	}
	number.Add(1)
	switch m := r.monitor(); {
	case m == nil:
	case r.Granted != nil:
		m.Ended(s.now()-r.since, reason)
	default:
		m.Refused(s.now()-r.since, reason)
	}
}

// CountHandOff counts a grant that followed the end of another contender.
func (s *Shell) CountHandOff(local bool) {
	if local {
		s.tally.localHandOffs.Add(1)
	} else {
		s.tally.remoteHandOffs.Add(1)
	}
}
