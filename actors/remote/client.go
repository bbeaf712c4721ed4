package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/actorlock/actorlock/actors/internal/lease"
	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
)

// session is the client's end of a lease, one after the other. Its actor owns the stream to the lock
// server; the locks' actors send it what is for the server, and it sends them what comes back.
type session struct {
	messages.IgnoreBridge[ask.Recipient]

	dial    dialer
	name    string // of the program, for people
	clock   *zkbridge.Clock
	log     *slog.Logger
	self    *host.Ref
	ctx     context.Context // until close
	end     context.CancelFunc
	stopped chan struct{} // closed when the actor has ended

	state             atomic.Pointer[snapshot]
	lastError         atomic.Pointer[connectError]
	locks             atomic.Pointer[manager.Manager] // nil before the first lock
	lastNumber        atomic.Uint64                   // of requests and questions
	suspensions, lost atomic.Uint64
	goingAway         atomic.Bool  // the server is about to end
	settling          atomic.Int64 // ends of grants that the locks' actors have not handled yet

	// Only the actor uses these.
	servers   []string
	server    int // of servers: the one of the lease, or the next to try
	attempts  int // that have failed since the last Welcome
	stream    *clientStream
	dialing   bool
	lease     lease.ClientEnd
	id        heldLease
	letGo     heldLease // to be named by the next Hello
	believing *belief   // nil before the first answer of a lease
	out       outbox[*messages.ClientMessage]
	in        arrivals
	suspended string             // what the server says of its session; "" if it is connected
	zooKeeper int64              // the id of that session
	renewing  *time.Timer        // until the next renewal
	lapsing   *time.Timer        // until the lapse
	requests  map[uint64]*target // that the server has, by number
	held      int                // of requests, that are granted
	questions map[uint64]*question
	subs      map[ask.Recipient]uint64 // in the order of these numbers
	lastSub   uint64
	closing   bool
}

// heldLease names a lease.
type heldLease struct {
	lease, incarnation uint64
	server             string
}

// target is where the messages about a request go.
type target struct {
	lock    *host.Ref
	granted bool
}

// clientStream is a stream to a server, behind its Welcome.
type clientStream struct {
	transport clientTransport
	frames    *frames[*messages.ClientFrame]
	cancel    context.CancelFunc
	renewals  int // sent since the last answer
}

// Messages to the actor.
type (
	connected struct {
		stream  *clientStream
		server  string
		hello   *messages.Hello
		welcome *messages.Welcome
		err     error
	}
	frameFrom struct {
		stream *clientStream
		frame  *messages.ServerFrame
	}
	streamEnded struct {
		stream *clientStream
		err    error
	}
	// outgoing is a message of a lock's actor to the server. It is dropped if the epoch is over.
	outgoing struct {
		epoch, number uint64
		from          *host.Ref
		message       *messages.ClientMessage
	}
	newServers struct{ servers []string }
	renewalDue struct{}
	lapseDue   struct{}
	redialDue  struct{}
	writable   struct{}
	settled    struct{} // no end of a grant is under way to a lock's actor
	closeNow   struct{}
)

// incoming is a message of the server to a lock's actor.
type incoming struct {
	epoch, number uint64
	message       any  // of service Owner
	endsGrant     bool // it counts in session.settling
}

func openSession(system *host.System, log *slog.Logger, dial dialer, servers []string, name string) *session {
	s := &session{dial: dial, name: name, clock: zkbridge.NewClock(), log: log, stopped: make(chan struct{}), servers: servers,
		requests: map[uint64]*target{}, questions: map[uint64]*question{}, subs: map[ask.Recipient]uint64{}}
	s.ctx, s.end = context.WithCancel(context.Background())
	s.state.Store(&snapshot{Session: zkbridge.Session{State: messages.SessionState_LOST}, outageSince: time.Now(), outageWhy: "not connected yet"})
	s.self = system.Start("lock-server", func(self *host.Ref) host.Actor { s.self = self; return s })
	s.self.Tell(redialDue{})
	return s
}

// Receive implements host.Actor.
func (s *session) Receive(from ask.Recipient, msg any) {
	s.checkLapse() // before all else: a message may have waited while the process was paused
	switch msg := msg.(type) {
	case outgoing:
		s.onOutgoing(msg)
	case frameFrom:
		s.onFrame(msg.stream, msg.frame)
	case connected:
		s.onConnected(msg)
	case streamEnded:
		s.onStreamEnded(msg.stream, msg.err)
	case renewalDue:
		s.renew()
	case redialDue:
		s.redial()
	case *question:
		s.ask(msg)
	case withdrawn:
		s.withdraw(msg)
	case newServers:
		s.setServers(msg.servers)
	case settled:
		s.leaveIfIdle()
	case closeNow:
		s.close()
	case lapseDue, writable:
	default:
		messages.DispatchBridge(s, from, msg, from)
	}
}

// Subscribe implements messages.BridgeHandler.
func (s *session) Subscribe(from ask.Recipient, _ *messages.Subscribe) {
	if s.subs[from] == 0 {
		s.lastSub++
		s.subs[from] = s.lastSub
	}
	from.Tell(s.changed(s.state.Load(), ""))
}

// Unsubscribe implements messages.BridgeHandler.
func (s *session) Unsubscribe(from ask.Recipient, _ *messages.Unsubscribe) { delete(s.subs, from) }

func (s *session) changed(now *snapshot, detail string) *messages.SessionChanged {
	return &messages.SessionChanged{State: now.State, Epoch: now.Epoch, SessionId: now.ID, Detail: detail}
}

// set stores a state for all goroutines, and then tells the subscribers.
func (s *session) set(state messages.SessionState, change func(*snapshot), detail string) {
	was := s.state.Load()
	now := *was
	now.State = state
	if change != nil {
		change(&now)
	}
	switch state {
	case messages.SessionState_SUSPENDED, messages.SessionState_LOST:
		now.outageWhy = detail
		if now.outageSince.IsZero() {
			now.outageSince = time.Now()
		}
	default:
		now.outageSince, now.outageWhy = time.Time{}, ""
	}
	s.state.Store(&now)
	switch {
	case state == messages.SessionState_SUSPENDED:
		s.suspensions.Add(1)
		s.failQuestions(messages.Reason_DISCONNECTED, s.OutageText())
	case state == messages.SessionState_LOST:
		s.lost.Add(1)
		s.failQuestions(messages.Reason_DISCONNECTED, s.OutageText())
	}
	told := s.changed(&now, detail)
	order := make([]ask.Recipient, 0, len(s.subs))
	for to := range s.subs {
		order = append(order, to)
	}
	slices.SortFunc(order, func(a, b ask.Recipient) int { return int(s.subs[a]) - int(s.subs[b]) })
	for _, to := range order {
		to.Tell(told)
	}
	s.log.Info("session with the lock server is "+state.String(), "epoch", now.Epoch, "server", s.id.server, "why", detail)
}

// ---- streams

// redial opens a stream, unless there is one.
func (s *session) redial() {
	if s.stream != nil || s.dialing || s.closing {
		return
	}
	s.dialing = true
	hello := &messages.Hello{Version: protocolVersion, Client: s.name, Lease: s.id.lease, Incarnation: s.id.incarnation}
	server := s.servers[s.server]
	switch {
	case s.id.lease != 0:
		server = s.id.server
	case s.letGo.lease != 0 && s.letGo.server == server:
		hello.LetGo, hello.Incarnation = s.letGo.lease, s.letGo.incarnation
	}
	go func() {
		if hello.LetGo != 0 {
			s.settle()
		}
		s.self.Tell(s.connect(server, hello))
	}()
}

// handshakeLimit bounds an attempt to reach a server.
const handshakeLimit = 5 * time.Second

// connect opens a stream to a server, and blocks until the server has answered the Hello.
func (s *session) connect(server string, hello *messages.Hello) (c connected) {
	c.server, c.hello = server, hello
	ctx, cancel := context.WithCancel(s.ctx)
	timer := time.AfterFunc(handshakeLimit, cancel)
	transport, err := s.dial.connect(ctx, server)
	var frame *messages.ServerFrame
	if err == nil {
		err = transport.Send(&messages.ClientFrame{Hello: hello})
	}
	if err == nil || errors.Is(err, io.EOF) { // of Send; Recv says why
		frame, err = transport.Recv()
	}
	switch {
	case !timer.Stop() && err != nil:
		err = fmt.Errorf("%s has not answered within %v: %w", server, handshakeLimit, err)
	case err != nil:
		err = fmt.Errorf("%s: %w", server, err)
	case frame.GetEnded() != nil:
		err = fmt.Errorf("%s: %w", server, &messages.Refused{Reason: frame.Ended.Reason, Detail: frame.Ended.Detail})
	case frame.GetWelcome().GetLease() == 0:
		err = fmt.Errorf("%s: its first answer is no Welcome: it is no lock server", server)
	}
	if err != nil {
		cancel()
		c.err = err
		return c
	}
	stream := &clientStream{transport: transport, cancel: cancel}
	c.stream, c.welcome = stream, frame.Welcome
	stream.frames = newFrames(transport.Send, func(err error) {
		if err == nil {
			transport.CloseSend()
		}
	})
	return c
}

// onConnected begins the use of a stream.
func (s *session) onConnected(c connected) {
	s.dialing = false
	switch {
	case s.closing || c.err == nil && (c.hello.Lease != s.id.lease || !slices.Contains(s.servers, c.server)):
		// The lease has lapsed while the attempt was under way, or the servers have changed.
		if c.stream != nil {
			c.stream.cancel()
			c.stream.frames.close()
		}
		s.redial()
		return
	case c.err != nil:
		s.onConnectError(c.err)
		return
	}
	if c.hello.LetGo != 0 && c.hello.LetGo == s.letGo.lease {
		s.letGo = heldLease{}
	}
	if s.id.lease != 0 && !c.welcome.Resumed {
		s.lose("the lock server does not know the lease any more: it was started anew")
	}
	s.attempts = 0
	s.stream = c.stream
	s.suspended = ""
	go s.read(c.stream)
	if c.welcome.Resumed {
		s.out.restart()
	} else {
		s.id = heldLease{c.welcome.Lease, c.welcome.Incarnation, c.server}
		s.server = max(slices.Index(s.servers, c.server), 0)
		s.lease, s.out, s.in, s.believing = lease.ClientEnd{}, outbox[*messages.ClientMessage]{}, arrivals{}, nil
		s.goingAway.Store(false)
	}
	s.onServerState(c.welcome.State)
	s.renew()
}

func (s *session) onConnectError(err error) {
	if s.ctx.Err() == nil {
		s.lastError.Store(&connectError{err, time.Now()})
	}
	if s.id.lease == 0 {
		s.server = (s.server + 1) % len(s.servers)
	}
	s.attempts++
	s.redialAfter(pause(s.attempts - 1))
}

func (s *session) redialAfter(d time.Duration) {
	time.AfterFunc(d, func() { s.self.Tell(redialDue{}) })
}

// pause returns how long to wait after a failed attempt.
func pause(attempts int) time.Duration {
	d := min(50*time.Millisecond<<min(attempts, 10), 3*time.Second)
	return d/2 + rand.N(d)
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
	if s.stream != nil {
		s.stream.cancel()
		s.stream.frames.close()
		s.stream = nil
	}
}

func (s *session) onStreamEnded(stream *clientStream, err error) {
	if s.stream != stream {
		return
	}
	if s.closing {
		s.self.Stop()
		return
	}
	s.dropStream()
	err = fmt.Errorf("%s: %w", s.id.server, err)
	s.lastError.Store(&connectError{err, time.Now()})
	s.suspend("the stream has ended: " + err.Error())
	s.redialAfter(pause(0))
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

// ---- frames

func (s *session) onFrame(stream *clientStream, frame *messages.ServerFrame) {
	if s.stream != stream {
		return
	}
	seen, err := s.in.accept(frame.First, len(frame.Messages))
	if err == nil {
		err = s.out.confirm(frame.Received)
	}
	if err != nil {
		s.onStreamEnded(stream, err)
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
		s.goingAway.Store(true)
	}
	if frame.Ended != nil && s.id.lease != 0 {
		detail := (&messages.Refused{Reason: frame.Ended.Reason, Detail: frame.Ended.Detail}).Error()
		if frame.Ended.Reason == messages.Reason_CLOSED {
			s.nextServer()
		}
		stream := s.stream
		s.stream = nil
		s.lose("the lock server has ended the lease: " + detail)
		s.letGo = heldLease{}
		go func() { // the server may wait for it
			s.settle()
			stream.frames.put(&messages.ClientFrame{Bye: true})
			stream.frames.close()
			s.self.Tell(redialDue{})
		}()
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

// ---- the lease

// renewalsInTime is how many renewals a client makes in the time for which one was answered.
const renewalsInTime = 3

// maxUnanswered is how many renewals of a stream may have no answer when the next is due, so that there
// is time for another stream; maxUnansweredFirst is that number before the first answer by a lease.
const (
	maxUnanswered      = 2
	maxUnansweredFirst = 6
)

// firstRenewals is the pause between renewals before the first answer.
const firstRenewals = 500 * time.Millisecond

func (s *session) renew() {
	if s.stream == nil || s.id.lease == 0 || s.closing {
		return
	}
	unanswered := maxUnanswered
	if s.believing == nil {
		unanswered = maxUnansweredFirst
	}
	if s.stream.renewals >= unanswered { // the stream is of no use: another one may be
		if s.believing == nil {
			s.giveUpLease()
			s.nextServer()
		}
		s.onStreamEnded(s.stream, fmt.Errorf("%d renewals have no answer", s.stream.renewals))
		return
	}
	now := s.clock.Now()
	number, got := s.lease.Renew(now)
	if number == 0 {
		return // it has lapsed
	}
	s.stream.renewals++
	s.stream.frames.put(&messages.ClientFrame{Renew: &messages.Renew{Number: number, Got: got}, Received: s.in.received})
	pause := firstRenewals
	if s.believing != nil {
		pause = max((s.lease.Until()-now)/renewalsInTime, time.Millisecond)
	}
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
	s.lease.Renewed(now, r.Number, time.Duration(r.ForNanos))
	s.stream.renewals = 0
	if !s.lease.Believes(now) {
		return
	}
	if s.believing == nil {
		s.believing = &belief{}
	}
	until := s.lease.Until()
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
	s.letGo, s.id, s.believing = s.id, heldLease{}, nil
	clear(s.requests)
	s.held = 0
}

// leaveIfIdle leaves a server that is about to end, once it has nothing of this client.
func (s *session) leaveIfIdle() {
	if !s.goingAway.Load() || s.stream == nil || s.held > 0 || s.settling.Load() > 0 || s.id.lease == 0 {
		return
	}
	s.stream.frames.put(&messages.ClientFrame{Bye: true, Received: s.in.received})
	s.stream.frames.close()
	s.stream = nil
	s.nextServer()
	s.lose("the lock server is about to end")
	s.letGo = heldLease{} // Bye has said so
	s.redial()
}

// ---- the end

// close ends the lease, and blocks until the server has confirmed that, or cannot be reached.
func (s *session) Close() error {
	s.self.Tell(closeNow{})
	timer := time.NewTimer(handshakeLimit)
	defer timer.Stop()
	var err error
	select {
	case <-s.stopped:
	case <-timer.C:
		err = fmt.Errorf("lock server %s has not confirmed the end of the lease: its locks stay until the lease is over", s.state.Load().Session)
	}
	s.end()
	s.self.Stop()
	<-s.stopped
	return errors.Join(err, s.dial.close())
}

func (s *session) close() {
	s.closing = true
	if s.stream == nil || s.id.lease == 0 {
		s.self.Stop()
		return
	}
	s.flushMessages()
	s.stream.frames.put(&messages.ClientFrame{Bye: true, Received: s.in.received})
	s.stream.frames.close()
}

// Stopped implements host.Actor.
func (s *session) Stopped(failure any) {
	if failure != nil && s.believing != nil {
		s.believing.passed.Store(true) // the locks' actors hear of the loss below
		s.set(messages.SessionState_LOST, nil, "the client of the lock server has failed: see the log")
	}
	s.closing = true
	for _, t := range []*time.Timer{s.renewing, s.lapsing} {
		if t != nil {
			t.Stop()
		}
	}
	s.dropStream()
	s.end()
	s.failQuestions(messages.Reason_CLOSED, "")
	s.set(messages.SessionState_ENDED, nil, "closed")
	close(s.stopped)
}

// Refuse implements host.Actor.
func (s *session) Refuse(_ ask.Recipient, msg any) {
	switch msg := msg.(type) {
	case *question:
		msg.answered(&messages.Answer{Reason: messages.Reason_CLOSED})
	case connected:
		if msg.stream != nil {
			msg.stream.cancel()
			msg.stream.frames.close()
		}
	}
}
