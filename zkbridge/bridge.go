package zkbridge

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
)

// Bridge is a connection to ZooKeeper, owned by an actor. Its methods may be called from any
// goroutine.
type Bridge struct{ *connection }

// bridges numbers the actors of this process.
var bridges atomic.Uint64

// Open starts a bridge and returns without waiting for ZooKeeper. The errors are about cfg only;
// they name the value and what is accepted. Close the bridge before system.
func Open(system *host.System, cfg Config) (*Bridge, error) {
	if system == nil {
		return nil, errors.New("zkbridge: Open needs a host.System")
	}
	s, err := cfg.check()
	if err != nil {
		return nil, err
	}
	return start(system, s)
}

// start is Open with checked settings.
func start(system *host.System, s *settings) (*Bridge, error) {
	b := &Bridge{connection: &connection{cfg: s, ready: make(chan struct{}), stopped: make(chan struct{}), ended: make(chan struct{})}}
	b.inUse, b.endUse = context.WithCancel(context.Background())
	name := fmt.Sprintf("zkbridge-%d", bridges.Add(1))
	var err error
	b.ref, err = system.SpawnPriority(name, func(self *host.Ref) host.Actor { return newBridgeActor(b.connection, self) })
	if err != nil {
		return nil, fmt.Errorf("zkbridge: %w", err)
	}
	b.ref.Tell(task((*bridgeActor).open))
	return b, nil
}

// Connected blocks until the first session is ready for requests. After that it returns nil at
// once, whatever the state: see Session. It fails when ctx ends, with an error that wraps the
// context's cause and names the servers and the last error of connecting to them; with
// [ErrSessionTimeout]; and with [messages.Reason_CLOSED] once the bridge is closed.
func (b *Bridge) Connected(ctx context.Context) error {
	if ctx == nil {
		return errNilContext
	}
	select {
	case <-b.stopped:
		return b.err
	default:
	}
	select {
	case <-b.ready: // also if ctx has ended
		return nil
	default:
	}
	select {
	case <-b.ready:
		return nil
	case <-b.stopped:
		return b.err
	case <-ctx.Done():
		return b.unreachable(context.Cause(ctx))
	}
}

func (b *connection) unreachable(cause error) error {
	servers := strings.Join(b.cfg.Servers.All(), ",")
	if last := b.lastConnectError.Load(); last != nil {
		return fmt.Errorf("zkbridge: no session with %s: %w (%w)", servers, last.err, cause)
	}
	return fmt.Errorf("zkbridge: no session with %s: %w", servers, cause)
}

// SetServers replaces the servers of [Config]: those of the same ensemble after its members have
// changed, with the same chroot. The bridge leaves a server that is not in the list: the session is
// SUSPENDED until it goes on over another one. An ensemble that does not know the session ends it.
// The times of Config stay as they are. SetServers does not block. The error is about the list:
// then nothing changes.
func (b *Bridge) SetServers(list string) error {
	servers, root, err := parseServers(list)
	if err != nil {
		return fmt.Errorf("zkbridge: servers: %w", err)
	}
	if root != b.cfg.Root {
		return fmt.Errorf("zkbridge: servers: %q has the chroot %q: it must stay %q", list, root, b.cfg.Root)
	}
	b.cfg.Servers.Replace(servers)
	b.ref.Tell(task(func(a *bridgeActor) {
		a.cfg.Log.Info("the servers are replaced", "servers", strings.Join(servers, ","))
		if a.epoch != nil {
			a.epoch.Conn.LeaveReplaced()
		}
	}))
	return nil
}

// Ref returns the reference that requests to the bridge are sent to. Sending never blocks. After
// Close the bridge answers each request by Failed(CLOSED).
func (b *Bridge) Ref() messages.BridgeRef { return messages.BridgeRef{To: b.ref} }

// Session returns the present state, by the clock: once the deadline has passed the state is LOST,
// also if the actor has not run since. It never blocks.
func (b *Bridge) Session() Session {
	now := b.state.Load()
	s := now.Session
	if now.conn == nil || s.State == messages.SessionState_ENDED {
		return s
	}
	s.Deadline = now.conn.Deadline()
	if s.State != messages.SessionState_LOST && now.conn.Overdue(b.now()) {
		s.State = messages.SessionState_LOST
	}
	return s
}

// Lost reports whether the session of an epoch is lost, or must be taken for lost now because its
// deadline has passed or the bridge has failed. It reads the clock, so it is right also in a
// process that was paused, before any timer or message has come through. Once true for an epoch it
// stays true. After Close it is false for the last epoch: subscribers are told ENDED. It never
// blocks and costs little.
func (b *Bridge) Lost(epoch uint64) bool { return b.lostAt(epoch, b.now()) }

// lostAt is Lost for a caller that has read the clock: now returned at.
func (b *connection) lostAt(epoch uint64, at time.Duration) bool {
	now := b.state.Load()
	switch {
	case now.Epoch != epoch:
		return epoch < now.Epoch
	case now.State == messages.SessionState_LOST:
		return true
	case now.State == messages.SessionState_ENDED:
		return now.failed
	}
	return now.conn.Overdue(at)
}

// Close ends the bridge and its session, so that ZooKeeper deletes the session's nodes at once. It
// tells ENDED to the subscribers, answers all open requests by Failed(CLOSED), and closes the
// session. There is no margin between: another process may hold the locks of this one right after,
// so the work that they protect must have ended before Close is called. That is so, too, for a
// bridge that has failed by a panic: without Close it closes its session by itself, Margin after it
// has told ENDED.
//
// Close also closes lost sessions that may live on, if there is a connection.
//
// Close blocks until that is done and the connection's goroutines have ended, for
// ConnectTimeout and a second at most. An error means that no server has confirmed the end of the
// session: its nodes stay until it expires. A second call, or calls from several goroutines, return
// the same result. An actor must not call it.
func (b *Bridge) Close() error {
	b.endUse()
	b.ref.Stop()
	timer := time.NewTimer(b.cfg.ConnectTimeout + time.Second)
	defer timer.Stop()
	select {
	case <-b.stopped:
	case <-timer.C:
		return errors.New("zkbridge: the actor does not stop: its host.System must be closed after the bridge")
	}
	select {
	case <-b.ended:
	case <-timer.C:
	}
	last := b.state.Load()
	if c := last.conn; last.Epoch > 0 && c != nil && c.ID() != 0 && !c.HasEnded() {
		return fmt.Errorf("zkbridge: no server has confirmed the end of session %s: its nodes stay until it expires, "+
			"within %v", messages.FormatSession(c.ID()), c.Timeout())
	}
	return nil
}

// Stats returns the present counts. It never blocks.
func (b *Bridge) Stats() Stats {
	c := &b.counters
	return Stats{Batches: c.batches.Load(), BatchOperations: c.batchOperations.Load(), Suspensions: c.suspensions.Load(),
		SessionsLost: c.sessionsLost.Load()}
}

// errNilContext is the error of a call with a nil context.
var errNilContext = fmt.Errorf("zkbridge: %w: %w", messages.Reason_INVALID, ask.ErrNilContext)
