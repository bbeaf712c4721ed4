package remote

import (
	"errors"
	"maps"
	"slices"

	"github.com/actorlock/actorlock/messages"
)

// lose lets go of the lease. The locks' actors queue again what waits.
func (s *session) lose(why string) {
	valid := s.lease.valid
	if valid != nil {
		valid.passed.Store(true)
	}
	s.giveUpLease()
	if valid != nil {
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
	s.lease.giveUp(s.clock.Now(), s.requests.granted > 0)
	s.requests.clear()
}

// leaveIfIdle leaves a server that is about to end, once it has nothing of this client.
func (s *session) leaveIfIdle() {
	if !s.goingAway.Load() || s.stream == nil || s.requests.granted > 0 || s.settling.Load() > 0 || s.lease.id.lease == 0 {
		return
	}
	s.lease.nextServer()
	s.leave("the lock server is about to end")
}

// leave lets go of the lease. Bye says so to the server, behind what the owners have released and
// cancelled before they learned of the loss: a lock-delay would begin otherwise.
func (s *session) leave(why string) {
	for _, number := range slices.Sorted(maps.Keys(s.requests.targets)) { // in one order, so that a simulation repeats
		if !s.requests.targets[number].granted { // by what has arrived
			s.messages.add(cancelMessage(number, false))
		}
	}
	s.leaving[s.stream] = true
	s.lose(why)
	know := ownersKnow{s.stream, s.lease.letGoAt - s.clock.Now()}
	s.lease.letGo = heldLease{} // no Hello may say so ahead of that
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

func (s *session) close() {
	s.closing = true
	if s.stream != nil {
		s.leaving[s.stream] = true
		s.leaveStream(s.stream)
	} else if s.lease.id.lease != 0 {
		s.closeFailed = errors.New("there is no stream")
	}
	for stream := range s.leaving {
		stream.bye() // no owner needs its margin any more
	}
	s.stopIfLeft()
}

// stopIfLeft ends a session that closes, once the servers have confirmed each Bye.
func (s *session) stopIfLeft() {
	if s.closing && len(s.leaving) == 0 {
		s.self.Stop()
	}
}
