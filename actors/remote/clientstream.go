package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/actorlock/actorlock/messages"
)

// clientStream is a stream to a server, behind its Welcome.
type clientStream struct {
	transport clientTransport
	frames    *frames[*messages.ClientFrame]
	cancel    context.CancelFunc
}

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

// refusalOf returns the end of a lease, or the answer to a Hello, as an error.
func refusalOf(e *messages.Ended) error { return &messages.Refused{Reason: e.Reason, Detail: e.Detail} }

// bye says Bye by the stream, once, behind what waits.
func (c *clientStream) bye() {
	c.frames.put(&messages.ClientFrame{Bye: true})
	c.frames.close()
}

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

// redialLater dials again after a pause that grows with the attempts.
func (s *session) redialLater() {
	time.AfterFunc(s.lease.pause(s.clock.Now()), func() { s.self.Tell(redialDue{}) })
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

// dropStream ends the stream. What is under way is sent again on the next one.
func (s *session) dropStream() {
	s.drop(s.stream)
	s.stream = nil
}

func (s *session) drop(stream *clientStream) {
	if stream != nil {
		stream.cancel()
		stream.frames.close()
	}
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

func (s *session) suspend(why string) {
	if s.state.Load().State == messages.SessionState_CONNECTED {
		s.set(messages.SessionState_SUSPENDED, nil, why)
	}
}

func (s *session) setServers(servers []string) {
	if !s.lease.setServers(servers) {
		s.goingAway.Store(true)
		s.leaveIfIdle()
	}
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

// onServerState takes in what the server says of its ZooKeeper session.
func (s *session) onServerState(now *messages.State) {
	s.suspended, s.zooKeeper = "", now.GetSessionId()
	if !now.GetConnected() {
		s.suspended = "the lock server has no connection to ZooKeeper: " + now.GetDetail()
		s.suspend(s.suspended)
		return
	}
	s.resume()
}

// resume is called when the server may be connected, and the lease valid, again.
func (s *session) resume() {
	now := s.state.Load()
	switch {
	case s.suspended != "" || s.lease.valid == nil || s.stream == nil:
	case now.State == messages.SessionState_SUSPENDED:
		s.set(messages.SessionState_CONNECTED, nil, "the stream to the lock server is back")
	case now.State == messages.SessionState_LOST:
		s.set(messages.SessionState_CONNECTED, func(n *snapshot) {
			n.Epoch++
			n.ID, n.lease, n.Timeout = s.zooKeeper, s.lease.valid, s.lease.validUntil()-s.clock.Now()
		}, "the lock server "+s.lease.id.server+" has granted a lease")
	}
}
