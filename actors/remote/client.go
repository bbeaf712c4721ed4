package remote

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
)

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
	case questionWithdrawn:
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
