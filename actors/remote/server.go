package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"time"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/access"
	"github.com/actorlock/actorlock/actors/internal/lease"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
)

// NewServer returns a LockServer of the locks, which must be those of a process with ZooKeeper. It does
// not block. Its error is ErrInvalid. Close the server before the locks.
func NewServer(locks *actors.Locks, cfg ServerConfig) (*LockServer, error) {
	if locks == nil {
		return nil, fmt.Errorf("%w: a lock server needs Locks", actors.ErrInvalid)
	}
	if cfg.Lease != 0 && cfg.Lease < MinLease || cfg.MaxClients < 0 || cfg.MaxClientsPerPeer < 0 || cfg.MaxRequestsPerClient < 0 || cfg.MaxDataPerClient < 0 || cfg.MaxQuestionsPerClient < 0 {
		return nil, fmt.Errorf("%w: Lease %v, MaxClients %d, MaxClientsPerPeer %d, MaxRequestsPerClient %d, MaxDataPerClient %d, MaxQuestionsPerClient %d: each must be positive, or 0 for the default, and Lease %v at least",
			actors.ErrInvalid, cfg.Lease, cfg.MaxClients, cfg.MaxClientsPerPeer, cfg.MaxRequestsPerClient, cfg.MaxDataPerClient, cfg.MaxQuestionsPerClient, MinLease)
	}
	s := &LockServer{cfg: cfg, locks: locks, manager: access.Manager(locks), clients: map[uint64]*servedClient{}, bySource: map[source]*peerGroup{}, allEnded: make(chan struct{}), turns: newFrameTurns()}
	if s.manager.Bridge == nil {
		return nil, fmt.Errorf("%w: the locks are those of a lock server: a lock server needs ZooKeeper itself", actors.ErrInvalid)
	}
	if s.cfg.Lease == 0 {
		s.cfg.Lease = 30 * time.Second
	}
	if s.cfg.MaxClients == 0 {
		s.cfg.MaxClients = 20_000
	}
	if s.cfg.MaxClientsPerPeer == 0 {
		s.cfg.MaxClientsPerPeer = max(s.cfg.MaxClients/4, min(s.cfg.MaxClients, 100))
	}
	if s.cfg.MaxRequestsPerClient == 0 {
		s.cfg.MaxRequestsPerClient = 10_000
	}
	s.cfg.MaxDataPerClient = cmp.Or(s.cfg.MaxDataPerClient, 8<<20)
	s.cfg.MaxQuestionsPerClient = cmp.Or(s.cfg.MaxQuestionsPerClient, 64)
	if s.cfg.Logger == nil {
		s.cfg.Logger = slog.Default()
	}
	s.log = host.BoundLogger(s.cfg.Logger)
	s.incarnation, s.began = randomID(), s.manager.Session.Now()
	s.manager.Session.Ref().SendSubscribe(&messages.Subscribe{}, sessionWatch{s})
	return s, nil
}

// maxName bounds the name of a client's program, which lines of the log have.
const maxName = 128

// sessionWatch is a LockServer as the subscriber of the ZooKeeper session, whose states it passes on to
// all clients.
type sessionWatch struct{ of *LockServer }

// Tell implements ask.Recipient.
func (w sessionWatch) Tell(msg any) {
	s := w.of
	now, is := msg.(*messages.SessionChanged)
	if !is {
		return
	}
	state := &messages.State{Connected: now.State == messages.SessionState_CONNECTED, Detail: readable(now.Detail), SessionId: now.SessionId}
	s.suspended.Store(state)
	s.updateHealth()
	s.tellAll(sessionState{state})
}

func (s *LockServer) tellAll(msg any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range slices.SortedFunc(maps.Values(s.clients), func(a, b *servedClient) int { return cmp.Compare(a.number, b.number) }) {
		c.self.Tell(msg)
	}
}

// connect serves a stream until it ends.
func (s *LockServer) connect(t serverTransport, peer Peer) error {
	first, err := firstFrame(t)
	if err != nil {
		return err
	}
	h := first.GetHello()
	if h == nil || h.Version != protocolVersion {
		return s.refuse(t, messages.Reason_INVALID, fmt.Sprintf("the stream begins with version %d: this server has version %d", h.GetVersion(), protocolVersion))
	}
	s.letGo(h, peer)
	c, reason, detail := s.clientFor(h, peer)
	if c == nil {
		return s.refuse(t, reason, detail)
	}
	stream := &serverStream{done: make(chan struct{}), cut: make(chan struct{}), room: make(chan struct{}, maxUnhandled)}
	stream.frames = newFrames(t.Send, func(err error) { stream.failed = err; close(stream.done) })
	first, rest := firstPart(first)
	c.self.Tell(attached{stream, first})
	failed := make(chan error, 1)
	go func() { failed <- s.read(t, stream, c, rest) }()
	select {
	case <-stream.done:
		return stream.failed
	case <-stream.cut:
		return errCut
	case err := <-failed:
		if !errors.Is(err, io.EOF) {
			c.self.Tell(detached{stream})
			stream.frames.close()
			<-stream.done
			return err
		}
		c.self.Tell(halfClosed{stream})
		select {
		case <-stream.done:
			return stream.failed
		case <-stream.cut:
			return errCut
		}
	}
}

// errCut is the error of a stream that the server ends without waiting for the client to read.
var errCut = errors.New("the lock server has ended the stream")

// firstFrame returns the frame with which a stream begins, which is to have a Hello. The error is also
// that the stream has had none for a time: it would count for nothing.
func firstFrame(t serverTransport) (*messages.ClientFrame, error) {
	var frame *messages.ClientFrame
	came := make(chan error, 1)
	go func() {
		var err error
		frame, err = t.Recv()
		came <- err
	}()
	timer := time.NewTimer(handshakeLimit)
	defer timer.Stop()
	select {
	case err := <-came:
		return frame, err
	case <-timer.C:
		return nil, fmt.Errorf("the stream has not begun with a Hello within %v", handshakeLimit)
	}
}

// maxUnhandled is how many frames of a client the server takes in before it has handled them.
const maxUnhandled = 4

// read takes in the rest of the first frame, and the frames behind it.
func (s *LockServer) read(t serverTransport, stream *serverStream, c *servedClient, rest *messages.ClientFrame) error {
	for {
		for rest != nil {
			select {
			case stream.room <- struct{}{}:
			case <-stream.done:
				return nil
			}
			var part *messages.ClientFrame
			part, rest = firstPart(rest)
			s.turns.handle(len(part.Messages), func() { c.self.RunInlineIfIdle(frameReceived{stream, part}) })
		}
		var err error
		if rest, err = t.Recv(); err != nil {
			return err
		}
	}
}

// firstPart splits a frame that has more messages than a frame of ours: other actors have their turns
// between its parts. The numbers of the first part are wrong if those of the frame are. rest is nil if
// there is no other part.
func firstPart(f *messages.ClientFrame) (part, rest *messages.ClientFrame) {
	if len(f.Messages) <= maxFrameMessages {
		return f, nil
	}
	part = &messages.ClientFrame{Hello: f.Hello, Received: f.Received, First: f.First, Messages: f.Messages[:maxFrameMessages]}
	rest = &messages.ClientFrame{Renew: f.Renew, Bye: f.Bye, Received: f.Received, First: f.First + maxFrameMessages, Messages: f.Messages[maxFrameMessages:]}
	return part, rest
}

func (s *LockServer) refuse(t serverTransport, reason messages.Reason, detail string) error {
	return t.Send(&messages.ServerFrame{Ended: &messages.Ended{Reason: reason, Detail: detail}})
}

// letGo ends a lease that its client has let go of.
func (s *LockServer) letGo(h *messages.Hello, peer Peer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.clients[h.LetGo]; c != nil && h.Incarnation == s.incarnation && c.peer.sameAs(peer) {
		c.self.Tell(leaseLetGo{})
	}
}

// clientFor returns the client of the lease that the Hello resumes, or a new one.
func (s *LockServer) clientFor(h *messages.Hello, peer Peer) (c *servedClient, reason messages.Reason, detail string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.clients[h.Lease]; c != nil && h.Incarnation == s.incarnation && c.peer.sameAs(peer) {
		return c, 0, ""
	}
	group := s.bySource[peer.source()]
	switch {
	case s.closed || s.draining:
		return nil, messages.Reason_CLOSED, closing
	case len(s.clients) >= s.cfg.MaxClients:
		s.counts.countRefusal(LimitClients)
		return nil, messages.Reason_LIMIT_EXCEEDED, fmt.Sprintf("the lock server has %d clients, the most that it takes", len(s.clients))
	case group != nil && group.clients >= s.cfg.MaxClientsPerPeer:
		s.counts.countRefusal(LimitClientsPerPeer)
		return nil, messages.Reason_LIMIT_EXCEEDED, fmt.Sprintf("the lock server has %d clients of %q at %s, the most that it takes of one peer",
			s.cfg.MaxClientsPerPeer, peer.Name, addressOf(peer.Address))
	}
	if group == nil {
		group = &peerGroup{}
		s.bySource[peer.source()] = group
	}
	group.clients++
	s.last++
	c = &servedClient{server: s, number: s.last, id: randomID(), peer: peer, group: group, ctx: context.WithValue(context.Background(), peerKey{}, peer), name: readable(h.Client[:min(len(h.Client), maxName)]),
		requests: map[uint64]*servedRequest{}, questions: map[uint64]*servedQuestion{}, reading: zkbridge.NewReadLimit(maxReading, maxRead, func() { s.counts.countRefusal(LimitAnswers) }),
		lease: lease.NewServerEnd(s.manager.Session.Now(), s.cfg.Lease)}
	s.clients[c.id] = c
	s.manager.System().Start(fmt.Sprintf("client-%d", c.number), func(self *host.Ref) host.Actor { c.self = self; return c })
	return c, 0, ""
}

// ended forgets a client whose lease is over and whose requests are answered.
func (s *LockServer) ended(c *servedClient) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clients[c.id] != c {
		return
	}
	delete(s.clients, c.id)
	if c.group.clients--; c.group.clients == 0 {
		delete(s.bySource, c.peer.source())
	}
	s.noteEndLocked()
}

func (s *LockServer) noteEndLocked() {
	if (s.closed || s.draining) && len(s.clients) == 0 {
		select {
		case <-s.allEnded:
		default:
			close(s.allEnded)
		}
	}
}

// Drain prepares the end: the server takes no new clients and requests, asks holders to release, and
// from the grace on renews no lease. It blocks until no lease of this server is valid any more, or
// until ctx ends. After an error do not close the locks, whose session is what clients rely
// on: end the process, or wait.
func (s *LockServer) Drain(ctx context.Context, grace time.Duration) error {
	s.mu.Lock()
	s.draining = true
	s.noteEndLocked()
	s.mu.Unlock()
	s.updateHealth()
	s.tellAll(drain{})
	timer := time.AfterFunc(grace, func() { s.tellAll(renewNoMore{}) })
	defer timer.Stop()
	return s.awaitExpiry(ctx)
}

// awaitExpiry blocks until no lease of this server is valid any more. Draining or
// closed is set.
func (s *LockServer) awaitExpiry(ctx context.Context) error {
	select {
	case <-s.allEnded: // also if ctx has ended
		return nil
	default:
	}
	select {
	case <-s.allEnded:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%d clients may believe in their locks: %w", s.Clients(), context.Cause(ctx))
	}
}

// Clients returns how many clients have a lease. It never blocks.
func (s *LockServer) Clients() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.clients)
}

// Close asks all clients to let go of their leases, and blocks until no lease of this
// server is valid any more and its locks are released: for the time of a lease and some seconds at most.
// After an error do not close the locks, as after Drain. Close the locks after it otherwise.
func (s *LockServer) Close() error {
	s.mu.Lock()
	s.closed = true
	s.noteEndLocked()
	s.mu.Unlock()
	s.updateHealth()
	s.tellAll(closeDown{})
	defer s.manager.Session.Ref().SendUnsubscribe(&messages.Unsubscribe{}, sessionWatch{s})
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.Lease+closeLimit)
	defer cancel()
	return s.awaitExpiry(ctx)
}

// closeLimit is how long Close waits for ZooKeeper.
const closeLimit = 10 * time.Second

var _ ask.Recipient = sessionWatch{}

// updateHealth says to the health service whether the server takes clients.
func (s *LockServer) updateHealth() {
	h := s.health.Load()
	if h == nil {
		return
	}
	s.mu.Lock()
	ending := s.draining || s.closed
	s.mu.Unlock()
	if ending {
		h.Shutdown() // for good: a change of the session that comes at this moment changes nothing
		return
	}
	status := healthpb.HealthCheckResponse_SERVING
	if state := s.suspended.Load(); state == nil || !state.Connected {
		status = healthpb.HealthCheckResponse_NOT_SERVING
	}
	h.SetServingStatus("", status)
	h.SetServingStatus(grpcService, status)
}

// Serving reports whether the server takes clients, and its session with ZooKeeper is connected, as the
// health service does. It does not block.
func (s *LockServer) Serving() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.suspended.Load()
	return !s.draining && !s.closed && state != nil && state.Connected
}

// warn is logLimited for a warning.
func (s *LockServer) warn(text string, args ...any) { s.logLimited(slog.LevelWarn, text, args...) }

// logLimited writes a line to the log, one of each text in 10 s at most. The next has how many were left out.
func (s *LockServer) logLimited(level slog.Level, text string, args ...any) {
	leftOut, may := s.lines.take(text, s.manager.Session.Now())
	if !may {
		return
	}
	if leftOut > 0 {
		args = append(args, slog.Int("alike", leftOut))
	}
	s.log.Log(context.Background(), level, text, args...)
}

// Stats returns the present counts. It never blocks for long.
func (s *LockServer) Stats() ServerStats {
	all := ServerStats{Clients: s.Clients(), PendingMessages: int(s.counts.pendingMessages.Load()), PendingBytes: int(s.counts.pendingBytes.Load()),
		LeasesLost: s.counts.leasesLost.Load(), LateRenewals: s.counts.lateRenewals.Load(), LimitRefusals: map[Limit]uint64{}}
	for i, l := range limits {
		all.LimitRefusals[l] = s.counts.refusals[i].Load()
	}
	return all
}
