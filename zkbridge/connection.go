package zkbridge

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

// connection is what a Bridge shares with its actor.
type connection struct {
	cfg *settings
	ref *host.Ref

	ready        chan struct{} // closed when the first session is ready for requests
	stopped      chan struct{} // closed when the actor has ended; err is set before
	ended        chan struct{} // closed when the connection's goroutines have ended, too
	err          error
	inUse        context.Context // until Close is called
	endUse       context.CancelFunc
	closingConns sync.WaitGroup // connections that are being closed

	state            atomic.Pointer[snapshot]
	counters         counters
	lastConnectError atomic.Pointer[connectError]
	noTokens         atomic.Pointer[error] // see NoTokens
	promised         zkconn.Latest         // until when others rely on the session, by Now
}

// snapshot is what other goroutines may read of the actor's state.
type snapshot struct {
	Session
	failed       bool                // the bridge has ended by a panic
	conn         *zkconn.SessionConn // of the epoch, nil between two
	outageSince  time.Time           // start of the state SUSPENDED, or LOST if that came first; otherwise zero
	outageReason string              // the newest
}

// connectError is the error of an attempt to connect, and when it happened.
type connectError struct {
	err error
	at  time.Time
}

// lives reports whether the session of the epoch is the present one and not lost.
func (s *snapshot) lives(epoch uint64) bool {
	return s.Epoch == epoch && (s.State == messages.SessionState_CONNECTED || s.State == messages.SessionState_SUSPENDED)
}

// now is Internals.Now.
func (b *connection) now() time.Duration { return b.cfg.Clock.Now() }

// noteConnectError keeps the error of an attempt to connect.
func (b *connection) noteConnectError(err error) {
	if last := b.lastConnectError.Load(); last != nil {
		err = zkconn.MoreTelling(last.err, err)
	}
	b.lastConnectError.Store(&connectError{err, time.Now()})
}

// closeLostConn closes the connection of a lost session, in the background.
func (b *connection) closeLostConn(c *zkconn.SessionConn) {
	c.Kill()
	b.closingConns.Go(c.Close)
}

// closeSession has a server close the session if one is connected, and closes the connection, in
// the background.
func (b *connection) closeSession(c *zkconn.SessionConn) {
	if !c.IsOnline() {
		c.Kill()
	}
	b.closingConns.Go(c.Close)
}

// closeAfterMargin is closeSession for a bridge that has failed. It keeps the session until the
// holders of locks have had the margin to end their work and the promises are over, or until the
// user calls Close. Without pings the session lives for longer than that.
func (b *connection) closeAfterMargin(c *zkconn.SessionConn) {
	b.closingConns.Go(func() {
		timer := time.NewTimer(b.closePause())
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-b.inUse.Done():
		case <-c.Context().Done(): // the session has expired
		}
		b.closeSession(c)
	})
}

// closePause returns how long the bridge waits before it closes a session that it has given up.
func (b *connection) closePause() time.Duration {
	return max(b.cfg.Margin, b.promised.Load()-b.cfg.Clock.Now())
}

// beatOfPromises is the time between beats while other processes rely on the session: a Promise is
// shorter by up to twice that time.
const beatOfPromises = time.Second

// beatPause returns the time between two beats.
func (b *connection) beatPause(timeout time.Duration) time.Duration {
	pause := timeout / zkconn.BeatsPerTimeout
	if b.promised.Load() > b.cfg.Clock.Now() {
		pause = min(pause, beatOfPromises)
	}
	return pause
}
