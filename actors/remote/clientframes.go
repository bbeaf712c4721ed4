package remote

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/actorlock/actorlock/messages"
)

// onConnected begins the use of a stream.
func (s *session) onConnected(c connected) {
	s.dialing = false
	now := s.clock.Now()
	switch {
	case s.closing || c.err == nil && c.hello.Lease != s.lease.id.lease: // the lease has lapsed meanwhile
		s.drop(c.stream)
		s.redial()
		return
	case c.err != nil:
		s.onConnectError(c)
		return
	}
	if c.hello.LetGo != 0 && c.hello.LetGo == s.lease.letGo.lease {
		s.lease.letGo = heldLease{}
	}
	welcome := c.first.Welcome
	if s.lease.id.lease != 0 && !welcome.Resumed {
		if s.lease.isElsewhere(now, welcome) {
			s.drop(c.stream)
			s.dial.abandon(c.server)
			s.lastError.Store(&connectError{fmt.Errorf("%s: a lock server has answered that does not know the lease: does the name lead to several servers?", c.server), time.Now()})
			s.redialLater()
			return
		}
		s.lose("the lock server does not know the lease any more: it was started anew")
	}
	if s.lease.id.lease == 0 && !slices.Contains(s.lease.servers, c.server) { // they have changed
		s.drop(c.stream)
		s.redial()
		return
	}
	s.stream = c.stream
	s.suspended = ""
	s.awaitsNodes.Store(welcome.AwaitsNodes)
	go s.read(c.stream)
	if welcome.Resumed {
		s.lease.resumed(now)
		s.messages.restart()
	} else {
		s.lease.granted(now, heldLease{welcome.Lease, welcome.Incarnation, c.server})
		s.messages = numbered[*messages.ClientMessage]{}
		s.goingAway.Store(false)
	}
	s.onServerState(welcome.State)
	s.renew()
	s.onFrame(c.stream, c.first) // its Received says what a former stream has brought to the server
}

// onFrame handles a frame of the server.
func (s *session) onFrame(stream *clientStream, frame *messages.ServerFrame) {
	if s.stream != stream {
		return
	}
	seen, err := s.messages.accept(frame.Received, frame.First, len(frame.Messages))
	if err != nil {
		s.endStream(err, false)
		return
	}
	if s.lease.id.lease == 0 { // Ended has come, and Bye follows
		return
	}
	s.lease.heard = s.clock.Now()
	if frame.Renewed != nil {
		s.onRenewed(frame.Renewed)
	}
	if frame.State != nil {
		s.onServerState(frame.State)
	}
	for _, m := range frame.Messages[seen:] {
		s.deliver(m)
	}
	if frame.GoAway {
		s.lease.draining = true
		s.goingAway.Store(true)
	}
	if frame.Ended != nil {
		if frame.Ended.Reason == messages.Reason_CLOSED {
			s.lease.nextServer()
		}
		s.leave("the lock server has ended the lease: " + refusalOf(frame.Ended).Error())
		return
	}
	s.leaveIfIdle()
}

// renew sends a renewal. A stream is of no use if those before it have no answer.
func (s *session) renew() {
	if s.stream == nil || s.lease.id.lease == 0 || s.closing {
		return
	}
	renew, pause, err := s.lease.renewal(s.clock.Now())
	switch {
	case err != nil:
		s.endStream(err, s.lease.silent())
	case renew != nil:
		s.stream.frames.put(&messages.ClientFrame{Renew: renew, Received: s.messages.delivered})
		s.renewAfter(pause)
	}
}

func (s *session) renewAfter(d time.Duration) {
	if s.renewing != nil {
		s.renewing.Stop()
	}
	s.renewing = time.AfterFunc(d, func() { s.self.Tell(renewalDue{}) })
}

func (s *session) onRenewed(r *messages.Renewed) {
	now := s.clock.Now()
	if !s.lease.renewed(now, r) {
		return
	}
	if s.lapsing != nil {
		s.lapsing.Stop()
	}
	s.lapsing = time.AfterFunc(s.lease.validUntil()-now, func() { s.self.Tell(lapseDue{}) })
	s.renewAfter(s.lease.renewalPause(now))
	s.resume()
}

func (s *session) onStreamEnded(stream *clientStream, err error) {
	if s.leaving[stream] {
		delete(s.leaving, stream)
		if s.closing && !errors.Is(err, io.EOF) {
			s.closeFailed = err
		}
		s.stopIfLeft()
	}
	if s.stream == stream {
		s.endStream(err, false)
	}
}

func (s *session) setServers(servers []string) {
	if !s.lease.setServers(servers) {
		s.goingAway.Store(true)
		s.leaveIfIdle()
	}
}
