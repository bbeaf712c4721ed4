package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/actorlock/actorlock/messages"
)

// redial opens a stream, unless there is one.
func (s *session) redial() {
	if s.stream != nil || s.dialing || s.closing {
		return
	}
	s.dialing = true
	now := s.clock.Now()
	server, hello := s.lease.hello(now)
	hello.Client = s.name
	first := &messages.ClientFrame{Hello: hello}
	if hello.Lease != 0 {
		first.Received = s.messages.delivered
	}
	limit := s.lease.handshakeTime(now)
	go func() {
		if hello.LetGo != 0 {
			s.settle()
		}
		s.self.Tell(s.connect(server, first, limit))
	}()
}

// connect opens a stream to a server, and blocks until the server has answered the Hello.
func (s *session) connect(server string, first *messages.ClientFrame, limit time.Duration) (c connected) {
	hello := first.Hello
	c.server, c.hello = server, hello
	ctx, cancel := context.WithCancel(s.ctx)
	timer := time.AfterFunc(limit, cancel)
	transport, err := s.dial.connect(ctx, server)
	var frame *messages.ServerFrame
	if err == nil {
		err = transport.Send(first)
	}
	if err == nil || errors.Is(err, io.EOF) { // of Send; Recv says why
		frame, err = transport.Recv()
	}
	switch {
	case !timer.Stop() && err != nil:
		c.timedOut = true
		err = fmt.Errorf("%s has not answered within %v: %w", server, limit, err)
	case err != nil:
		err = fmt.Errorf("%s: %w", server, err)
	case frame.GetEnded() != nil:
		err = fmt.Errorf("%s: %w", server, refusalOf(frame.Ended))
	case frame.GetWelcome().GetLease() == 0:
		err = fmt.Errorf("%s: its first answer is no Welcome: it is no lock server", server)
	case frame.Welcome.Resumed && frame.Welcome.Lease != hello.Lease:
		err = fmt.Errorf("%s: it resumes lease %d, and %d was asked for (0: a new one)", server, frame.Welcome.Lease, hello.Lease)
	}
	if err != nil {
		cancel()
		c.err = err
		return c
	}
	stream := &clientStream{transport: transport, cancel: cancel}
	c.stream, c.first = stream, frame
	stream.frames = newFrames(transport.Send, func(err error) {
		if err == nil {
			transport.CloseSend()
		}
	})
	return c
}

func (s *session) read(stream *clientStream) {
	defer stream.cancel()
	for {
		frame, err := stream.transport.Recv()
		if err != nil {
			s.self.Tell(streamEnded{stream, err})
			return
		}
		s.self.RunInlineIfIdle(frameFrom{stream, frame})
	}
}

// redialLater dials again after a pause that grows with the attempts.
func (s *session) redialLater() {
	time.AfterFunc(s.lease.pause(s.clock.Now()), func() { s.self.Tell(redialDue{}) })
}

// onConnectError handles a failed attempt. The server of a lease ends it by SESSION_LOST; another one of
// the same name may refuse the client for other reasons.
func (s *session) onConnectError(c connected) {
	if s.ctx.Err() == nil {
		s.lastError.Store(&connectError{c.err, time.Now()})
	}
	refused, is := errors.AsType[*messages.Refused](c.err)
	if is && s.lease.id.lease != 0 && refused.Reason == messages.Reason_SESSION_LOST {
		s.lose("the lock server does not resume the lease: " + c.err.Error())
	}
	if c.timedOut || s.lease.id.lease != 0 {
		s.dial.abandon(c.server)
	}
	s.lease.failed(c.server)
	s.redialLater()
}

func (s *session) drop(stream *clientStream) {
	if stream != nil {
		stream.cancel()
		stream.frames.close()
	}
}

// dropStream ends the stream. What is under way is sent again on the next one.
func (s *session) dropStream() {
	s.drop(s.stream)
	s.stream = nil
}

// endStream gives up the stream. dead reports that its connection may be dead.
func (s *session) endStream(err error, dead bool) {
	s.dropStream()
	server := s.lease.id.server
	if s.lease.id.lease == 0 { // ownersKnow follows
		return
	}
	if dead {
		s.dial.abandon(server)
	}
	err = fmt.Errorf("%s: %w", server, err)
	s.lastError.Store(&connectError{err, time.Now()})
	s.suspend("the stream has ended: " + err.Error())
	s.lease.ended(s.clock.Now(), dead)
	if s.lease.id.lease == 0 {
		s.requests.clear()
	}
	s.redialLater()
}

// checkLapse lets go of a lease that is valid no more.
func (s *session) checkLapse() {
	if !s.lease.lapsed(s.clock.Now()) {
		return
	}
	why := "the lease is over: the lock server has not renewed it in time"
	if s.lease.draining {
		why = "the lease is over: the lock server drains, and has not renewed it"
	}
	if n := len(s.lease.strangers); n > 0 {
		why = fmt.Sprintf("the lease is over: its lock server was not reached by the name %s, by which others have answered %d times", s.lease.id.server, n)
	}
	s.dropStream()
	s.lease.nextServer()
	s.lease.attempts = 0 // those that have failed were for the server of the lease
	s.lose(why)
	s.redial()
}
