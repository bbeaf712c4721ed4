package remote

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
	awaitsNodes       atomic.Bool  // the server answers a Cancel with await_node
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

// clientStream is a stream to a server, behind its Welcome.
type clientStream struct {
	transport clientTransport
	frames    *frames[*messages.ClientFrame]
	cancel    context.CancelFunc
}

// bye says Bye by the stream, once, behind what waits.
func (c *clientStream) bye() {
	c.frames.put(&messages.ClientFrame{Bye: true})
	c.frames.close()
}

// connectError is the error of an attempt to reach a server, and when it happened.
type connectError struct {
	err error
	at  time.Time
}

// snapshot is what other goroutines may read of the state of a session.
type snapshot struct {
	zkbridge.Session
	lease       *validity // of the epoch; nil before the first
	outageSince time.Time // zero without an outage
	outageWhy   string
}

// Ref implements manager.AnySession.
func (s *session) Ref() messages.BridgeRef { return messages.BridgeRef{To: s.self} }

// Session implements manager.AnySession.
func (s *session) Session() zkbridge.Session {
	now := s.state.Load()
	present := now.Session
	if now.lease != nil && present.State != messages.SessionState_ENDED {
		present.Deadline = s.clock.TimeOf(time.Duration(now.lease.until.Load()))
		if present.State != messages.SessionState_LOST && now.lease.over(s.clock.Now()) {
			present.State = messages.SessionState_LOST
		}
	}
	return present
}

// Sessions implements manager.AnySession.
func (s *session) Sessions(ctx context.Context) <-chan zkbridge.Session {
	return zkbridge.SessionStream(ctx, s)
}

// Now implements manager.AnySession.
func (s *session) Now() time.Duration { return s.clock.Now() }

// TimeOf implements manager.AnySession.
func (s *session) TimeOf(at time.Duration) time.Time { return s.clock.TimeOf(at) }

// Lost implements manager.AnySession.
func (s *session) Lost(epoch uint64) bool { return s.LostAt(epoch, s.clock.Now()) }

// LostAt implements manager.AnySession.
func (s *session) LostAt(epoch uint64, at time.Duration) bool {
	now := s.state.Load()
	switch {
	case now.Epoch != epoch:
		return epoch < now.Epoch
	case now.State == messages.SessionState_LOST:
		return true
	case now.State == messages.SessionState_ENDED:
		return false
	}
	return now.lease.over(at)
}

// OutageText implements manager.AnySession.
func (s *session) OutageText() string {
	now := s.state.Load()
	if now.outageWhy == "" {
		return ""
	}
	why := errors.New(now.outageWhy)
	if last := s.lastError.Load(); last != nil && !last.at.Before(now.outageSince) {
		why = fmt.Errorf("%w; the last attempt failed: %w", why, last.err)
	}
	return zkbridge.DescribeOutage("the lock server", now.outageSince, why)
}

// Explain implements manager.AnySession.
func (s *session) Explain(err error) error { return zkbridge.ExplainBy(s.OutageText(), err) }

// Stats implements manager.AnySession.
func (s *session) Stats() zkbridge.Stats {
	return zkbridge.Stats{Suspensions: s.suspensions.Load(), SessionsLost: s.lost.Load()}
}

// OnBatch implements manager.AnySession. A client makes no transactions.
func (s *session) OnBatch(func(int)) {}

// SetServers implements manager.AnySession.
func (s *session) SetServers(list string) error {
	servers, err := parseServers(list)
	if err == nil {
		s.self.Tell(newServers{servers})
	}
	return err
}
