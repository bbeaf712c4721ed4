package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/actorlock/actorlock/actors/internal/lease"
	"github.com/actorlock/actorlock/messages"
)

// clientStream is a stream to a server, behind its Welcome.
type clientStream struct {
	transport clientTransport
	frames    *frames[*messages.ClientFrame]
	cancel    context.CancelFunc
	renewals  int  // sent since the last answer
	draining  bool // the server answers no renewals from some time on
}

// redial opens a stream, unless there is one.
func (s *session) redial() {
	if s.stream != nil || s.dialing || s.closing {
		return
	}
	s.dialing = true
	received := s.messages.delivered
	hello := &messages.Hello{Version: protocolVersion, Client: s.name, Lease: s.id.lease, Incarnation: s.id.incarnation}
	server := s.servers[s.server]
	switch {
	case s.id.lease != 0:
		server = s.id.server
	case s.letGo.lease != 0 && s.letGo.server == server && s.letGoAt <= s.clock.Now():
		hello.LetGo, hello.Incarnation = s.letGo.lease, s.letGo.incarnation
	}
	if hello.Lease == 0 {
		received = 0
	}
	limit := handshakeLimit << s.rounds()
	go func() {
		if hello.LetGo != 0 {
			s.settle()
		}
		s.self.Tell(s.connect(server, &messages.ClientFrame{Hello: hello, Received: received}, limit))
	}()
}

// handshakeLimit bounds the first attempt to reach a server.
const handshakeLimit = 5 * time.Second

// rounds returns how often the client has failed with all servers, up to 3. It waits for longer
// after each round: a server that has too much to do would otherwise work for clients that have
// left by then, and never be done. While the client believes in a lease it asks one server only, and
// must be free for the others when the lease is over.
func (s *session) rounds() int {
	if s.believing != nil {
		return 0
	}
	return min(s.attempts/len(s.servers), 3)
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
	switch {
	case s.closing || c.err == nil && c.hello.Lease != s.id.lease: // the lease has lapsed meanwhile
		s.drop(c.stream)
		s.redial()
		return
	case c.err != nil:
		s.onConnectError(c)
		return
	}
	if c.hello.LetGo != 0 && c.hello.LetGo == s.letGo.lease {
		s.letGo = heldLease{}
	}
	welcome := c.first.Welcome
	if s.id.lease != 0 && !welcome.Resumed {
		s.lose("the lock server does not know the lease any more: it was started anew")
	}
	if s.id.lease == 0 && !slices.Contains(s.servers, c.server) { // they have changed
		s.drop(c.stream)
		s.redial()
		return
	}
	s.stream = c.stream
	s.suspended = ""
	go s.read(c.stream)
	if welcome.Resumed {
		s.messages.restart()
	} else {
		s.id = heldLease{welcome.Lease, welcome.Incarnation, c.server}
		s.server = max(slices.Index(s.servers, c.server), 0)
		s.lease, s.messages, s.believing = lease.ClientEnd{}, numbered[*messages.ClientMessage]{}, nil
		s.goingAway.Store(false)
	}
	s.onServerState(welcome.State)
	s.renew()
	s.onFrame(c.stream, c.first) // its Received says what a former stream has brought to the server
}

func (s *session) onConnectError(c connected) {
	if s.ctx.Err() == nil {
		s.lastError.Store(&connectError{c.err, time.Now()})
	}
	if _, is := errors.AsType[*messages.Refused](c.err); is && s.id.lease != 0 {
		s.lose("the lock server does not resume the lease: " + c.err.Error())
	}
	if s.id.lease == 0 && c.server == s.servers[s.server] { // the end of the lease may have been the next server's turn
		s.nextServer()
	}
	s.redialLater()
}

// redialLater dials again after a pause that grows with the attempts.
func (s *session) redialLater() {
	s.attempts++
	time.AfterFunc(s.pause(s.attempts-1), func() { s.self.Tell(redialDue{}) })
}

// pause returns how long to wait after a failed attempt.
func (s *session) pause(attempts int) time.Duration {
	d := min(50*time.Millisecond<<min(attempts, 10), 3*time.Second)
	return d/2 + time.Duration(s.random.Int64N(int64(d)))
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
	if s.stream != stream {
		return
	}
	s.dropStream()
	if s.id.lease == 0 { // ownersKnow follows
		return
	}
	err = fmt.Errorf("%s: %w", s.id.server, err)
	s.lastError.Store(&connectError{err, time.Now()})
	s.suspend("the stream has ended: " + err.Error())
	if s.believing == nil { // there is nothing to resume, and this server may not come back
		s.giveUpLease()
		s.nextServer()
	}
	s.redialLater()
}

func (s *session) suspend(why string) {
	if s.state.Load().State == messages.SessionState_CONNECTED {
		s.set(messages.SessionState_SUSPENDED, nil, why)
	}
}

func (s *session) setServers(servers []string) {
	s.servers, s.server = servers, max(slices.Index(servers, s.id.server), 0)
	if s.id.lease != 0 && !slices.Contains(servers, s.id.server) {
		s.goingAway.Store(true)
		s.leaveIfIdle()
	}
}

func (s *session) onFrame(stream *clientStream, frame *messages.ServerFrame) {
	if s.stream != stream {
		return
	}
	seen, err := s.messages.accept(frame.Received, frame.First, len(frame.Messages))
	if err != nil {
		s.onStreamEnded(stream, err)
		return
	}
	if s.id.lease == 0 { // Ended has come, and Bye follows
		return
	}
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
		stream.draining = true
		s.goingAway.Store(true)
	}
	if frame.Ended != nil {
		if frame.Ended.Reason == messages.Reason_CLOSED {
			s.nextServer()
		}
		s.leave("the lock server has ended the lease: " + refusalOf(frame.Ended).Error())
		return
	}
	s.leaveIfIdle()
}

func (s *session) nextServer() { s.server = (s.server + 1) % len(s.servers) }

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

// resume is called when the server may be connected, and the lease believed in, again.
func (s *session) resume() {
	now := s.state.Load()
	switch {
	case s.suspended != "" || s.believing == nil || s.stream == nil:
	case now.State == messages.SessionState_SUSPENDED:
		s.set(messages.SessionState_CONNECTED, nil, "the stream to the lock server is back")
	case now.State == messages.SessionState_LOST:
		s.set(messages.SessionState_CONNECTED, func(n *snapshot) {
			n.Epoch++
			n.ID, n.lease, n.Timeout = s.zooKeeper, s.believing, time.Duration(s.believing.until.Load())-s.clock.Now()
		}, "the lock server "+s.id.server+" has granted a lease")
	}
}
