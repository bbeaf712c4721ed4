package remote

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
)

// session is the client's end of a lease, one after the other. Its actor owns the stream to the lock
// server; the locks' actors send it what is for the server, and it sends them what comes back. What
// the lease allows is decided in clientLease, and how messages are numbered in numbered: the actor
// does the I/O and sets the timers.
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
	lease       clientLease
	messages    numbered[*messages.ClientMessage] // of the lease
	requests    sentRequests
	questions   openQuestions
	confirms    bool // the server waits for a frame that confirms an answer
	stream      *clientStream
	dialing     bool
	leaving     map[*clientStream]bool // streams of leases that the client has let go of, until they end
	suspended   string                 // what the server says of its session; "" if it is connected
	zooKeeper   int64                  // the id of that session
	renewing    *time.Timer            // until the next renewal
	lapsing     *time.Timer            // until the lapse
	subscribers subscribers
	closing     bool
	closeFailed error // why the server has not confirmed the end
}

// Messages to the actor.
type (
	connected struct {
		stream *clientStream
		server string
		hello  *messages.Hello
		first  *messages.ServerFrame // has a Welcome

		err      error // why there is no stream
		timedOut bool
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
	settled    struct{} // no end of a grant is under way to a lock's actor
	// ownersKnow: the owners have been told that the lease of the stream is over. Their work has the
	// margin to stop.
	ownersKnow struct {
		stream *clientStream
		margin time.Duration
	}
	closeNow    struct{}
	closeFailed struct{ why error }
)

// incoming is a message of the server to a lock's actor.
type incoming struct {
	epoch, number uint64
	message       any  // of service Owner
	endsGrant     bool // it counts in session.settling
}

func openSession(system *host.System, clock *zkbridge.Clock, log *slog.Logger, dial dialer, servers []string, name string, margin time.Duration) *session {
	s := &session{dial: dial, name: strings.ToValidUTF8(name, "?"), clock: clock, log: log, stopped: make(chan struct{}),
		lease:   clientLease{wanted: margin, servers: servers, random: rand.New(rand.NewPCG(randomID(), randomID()))},
		leaving: map[*clientStream]bool{}, requests: sentRequests{targets: map[uint64]*target{}}, questions: openQuestions{}, subscribers: subscribers{order: map[ask.Recipient]uint64{}}}
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
	case ownersKnow:
		s.leaveStream(msg.stream)
		time.AfterFunc(msg.margin, msg.stream.bye)
		s.redialLater()
	case closeNow:
		s.close()
	case closeFailed:
		s.closeFailed = msg.why
		s.self.Stop()
	case lapseDue, writable:
	default:
		messages.DispatchBridge(s, from, msg, from)
	}
}

// Subscribe implements messages.BridgeHandler.
func (s *session) Subscribe(from ask.Recipient, _ *messages.Subscribe) {
	s.subscribers.add(from)
	from.Tell(s.changed(s.state.Load(), ""))
}

// Unsubscribe implements messages.BridgeHandler.
func (s *session) Unsubscribe(from ask.Recipient, _ *messages.Unsubscribe) {
	delete(s.subscribers.order, from)
}

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
			if was.Epoch != 0 && s.suspended == "" { // the last answer came before the end of the stream
				now.outageSince = s.clock.TimeOf(s.lease.heard)
			}
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
	s.subscribers.tell(s.changed(&now, detail))
	s.log.Info("session with the lock server is "+state.String(), "epoch", now.Epoch, "server", s.lease.id.server, "why", detail)
}

// ---- the end

// close ends the lease, and blocks until the server has confirmed that, or cannot be reached.
func (s *session) Close() error {
	s.self.Tell(closeNow{})
	timer := time.NewTimer(handshakeLimit)
	defer timer.Stop()
	select {
	case <-s.stopped:
	case <-timer.C:
		s.self.Tell(closeFailed{fmt.Errorf("no answer within %v", handshakeLimit)})
	}
	<-s.stopped
	s.end()
	err := s.closeFailed
	if err != nil {
		err = fmt.Errorf("the lock server has not confirmed the end of the lease, and its locks stay until that is over: %w", err)
	}
	return errors.Join(err, s.dial.close())
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

// Stopped implements host.Actor.
func (s *session) Stopped(failure any) {
	if failure != nil && s.lease.valid != nil {
		s.lease.valid.passed.Store(true) // the locks' actors hear of the loss by the next state
		s.set(messages.SessionState_LOST, nil, "the client of the lock server has failed: see the log")
	}
	s.closing = true
	for _, t := range []*time.Timer{s.renewing, s.lapsing} {
		if t != nil {
			t.Stop()
		}
	}
	s.dropStream()
	for stream := range s.leaving {
		s.drop(stream)
	}
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
