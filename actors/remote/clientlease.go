package remote

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/actorlock/actorlock/messages"
)

// renewalsInTime is how many renewals a client makes in the time for which one was answered.
const renewalsInTime = 3

// maxUnanswered is how many renewals of a stream may have no answer when the next is due, so that there
// is time for another stream; maxUnansweredFirst is that number before the first answer by a lease.
const (
	maxUnanswered      = 2
	maxUnansweredFirst = 4
)

// firstRenewals is the first pause between renewals before the first answer. Each one is twice as
// long as the one before it, up to longestFirst: a server that has ZooKeeper again answers the next
// renewal only.
const (
	firstRenewals = 250 * time.Millisecond
	longestFirst  = 4 * time.Second
)

func (s *session) renew() {
	if s.stream == nil || s.id.lease == 0 || s.closing {
		return
	}
	unanswered := maxUnanswered
	if s.believing == nil {
		unanswered = maxUnansweredFirst + s.rounds()
	}
	if s.stream.renewals >= unanswered && !s.stream.draining { // the stream is of no use: another one may be
		s.onStreamEnded(s.stream, fmt.Errorf("%d renewals have no answer", s.stream.renewals))
		return
	}
	now := s.clock.Now()
	number, got := s.lease.Renew(now)
	if number == 0 {
		return // it has lapsed
	}
	pause := min(firstRenewals<<s.stream.renewals, longestFirst)
	if s.believing != nil {
		pause = max((s.lease.Until()-s.believing.margin-now)/renewalsInTime, time.Millisecond)
	}
	s.stream.renewals++
	s.stream.frames.put(&messages.ClientFrame{Renew: &messages.Renew{Number: number, Got: got}, Received: s.messages.delivered})
	s.renewAfter(pause)
}

func (s *session) renewAfter(d time.Duration) {
	if s.renewing != nil {
		s.renewing.Stop()
	}
	s.renewing = time.AfterFunc(d, func() { s.self.Tell(renewalDue{}) })
}

func (s *session) onRenewed(r *messages.Renewed) {
	now := s.clock.Now()
	if !s.lease.Renewed(now, r.Number, time.Duration(r.ForNanos)) {
		return
	}
	s.stream.renewals = 0
	if !s.lease.Believes(now) {
		return
	}
	if s.believing == nil {
		s.believing = &belief{margin: min(s.margin, (s.lease.Until()-now)/5)}
	}
	s.attempts = 0
	until := s.lease.Until() - s.believing.margin
	s.believing.until.Store(int64(until))
	if s.lapsing != nil {
		s.lapsing.Stop()
	}
	s.lapsing = time.AfterFunc(until-now, func() { s.self.Tell(lapseDue{}) })
	s.renewAfter(max((until-now)/renewalsInTime, time.Millisecond))
	s.resume()
}

// checkLapse lets go of a lease whose time is over.
func (s *session) checkLapse() {
	if s.believing == nil || !s.believing.over(s.clock.Now()) {
		return
	}
	s.dropStream()
	s.nextServer()
	s.attempts = 0 // those that have failed were for the server of the lease
	s.lose("the lease is over: the lock server has not renewed it in time")
	s.redial()
}

// lose lets go of the lease. The locks' actors queue again what waits.
func (s *session) lose(why string) {
	believed := s.believing != nil
	if believed {
		s.believing.passed.Store(true)
	}
	s.giveUpLease()
	if believed {
		s.set(messages.SessionState_LOST, nil, why)
	}
}

// settle blocks until the owners of all grants that are lost have been told. It comes before the
// server is told that the client has let go.
func (s *session) settle() {
	if m := s.locks.Load(); m != nil {
		m.Open() // each lock's actor answers behind the loss
	}
}

func (s *session) giveUpLease() {
	if s.lapsing != nil {
		s.lapsing.Stop()
	}
	s.letGo, s.letGoAt = s.id, 0
	if s.held > 0 && s.believing != nil && s.believing.margin > 0 {
		s.letGoAt = min(s.clock.Now()+s.believing.margin, s.lease.Until())
	}
	s.id, s.believing = heldLease{}, nil
	clear(s.requests)
	s.held = 0
}

// leaveIfIdle leaves a server that is about to end, once it has nothing of this client.
func (s *session) leaveIfIdle() {
	if !s.goingAway.Load() || s.stream == nil || s.held > 0 || s.settling.Load() > 0 || s.id.lease == 0 {
		return
	}
	s.nextServer()
	s.leave("the lock server is about to end")
}

// leave lets go of the lease. Bye says so to the server, behind what the owners have released and
// cancelled before they learned of the loss: a lock-delay would begin otherwise.
func (s *session) leave(why string) {
	for _, number := range slices.Sorted(maps.Keys(s.requests)) { // in one order, so that a simulation repeats
		if !s.requests[number].granted { // by what has arrived
			s.messages.add(cancel(number))
		}
	}
	s.leaving[s.stream] = true
	s.lose(why)
	know := ownersKnow{s.stream, s.letGoAt - s.clock.Now()}
	s.letGo = heldLease{} // no Hello may say so ahead of that
	go func() {
		s.settle()
		s.self.Tell(know)
	}()
}

// leaveStream has only Bye follow by a stream.
func (s *session) leaveStream(stream *clientStream) {
	if s.stream == stream {
		s.flushMessages()
		s.stream = nil
	}
}
