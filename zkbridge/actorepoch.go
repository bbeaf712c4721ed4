package zkbridge

import (
	"fmt"
	"time"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/epoch"
	"github.com/actorlock/actorlock/zkbridge/internal/jobs"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

func newBridgeActor(b *Bridge, self *host.Ref) *bridgeActor {
	a := &bridgeActor{bridge: b, cfg: b.cfg, self: self, subs: map[ask.Recipient]uint64{}}
	a.timers = jobs.NewTimers(a.PostAhead)
	a.timers.After(probePause, a.probeUnknown)
	a.session.State = messages.SessionState_LOST
	a.store("there was no session yet")
	return a
}

// reopenPause is how long the bridge waits before it opens the next epoch if the last one ended
// before it had a session, or because a server refused the credentials.
const reopenPause = time.Second

// open begins the next epoch.
func (a *bridgeActor) open() {
	if a.epoch != nil || a.fatal != nil {
		return
	}
	a.epochsOpened++
	a.epoch = epoch.Open(a, epoch.Config{Settings: &a.cfg.Settings, Former: a.former, Answers: &a.rooms.answers, Blocking: &a.blockingJobs,
		OnBatch: a.bridge.countBatch}, a.epochsOpened)
	a.closeLostSessions()
}

// probePause is how long the bridge waits before it asks a server again for requests that servers have
// not known: they may have been upgraded.
const probePause = 5 * time.Minute

// probeUnknown asks the present server for the requests that servers have not known, now and then.
func (a *bridgeActor) probeUnknown() {
	a.timers.After(probePause, a.probeUnknown)
	if a.epoch == nil || len(a.cfg.UnknownRequests()) == 0 {
		return
	}
	if conn := a.epoch.Conn.Active(); conn != nil {
		ctx := a.epoch.Conn.Context()
		a.epoch.Jobs().Closings.AddBlocking(func() func() {
			if err := zkconn.ProbeUnknown(ctx, &a.cfg.Settings, conn.Server); err != nil {
				a.cfg.Log.Debug("the server could not be asked for requests that it did not know", "server", conn.Server, "error", err)
			}
			return func() {}
		})
	}
}

func (a *bridgeActor) openAfterPause() {
	a.timers.After(reopenPause, a.open)
}

// checkTimeout checks the timeout of a new session, and reports whether the bridge accepts the
// session. The first one must have the timeout that was asked for. Later it is too late to refuse:
// locks are in use.
func (a *bridgeActor) checkTimeout() bool {
	timeout := a.epoch.Conn.Timeout()
	switch {
	case timeout == a.cfg.SessionTimeout || a.session.State != messages.SessionState_LOST:
	case a.wasReady:
		a.cfg.Log.Warn("server grants another session timeout than asked for", "granted", timeout, "asked", a.cfg.SessionTimeout,
			"do", "set minSessionTimeout and maxSessionTimeout alike on all servers")
	default:
		a.GiveUp(fmt.Errorf("zkbridge: %w: asked for %v, granted %v, which the server's minSessionTimeout and maxSessionTimeout allow",
			ErrSessionTimeout, a.cfg.SessionTimeout, timeout))
		return false
	}
	return true
}

// OnAuthRefused implements epoch.Owner. At the first
// session that is fatal. Later it ends the session, and the bridge tries another: locks are in use,
// and the server's configuration may be corrected.
func (a *bridgeActor) OnAuthRefused(err error) {
	if !a.wasReady {
		a.GiveUp(fmt.Errorf("zkbridge: %w: %w", messages.Reason_NO_AUTH, err))
		return
	}
	a.cfg.Log.Error("server refuses the bridge's credentials", "error", err,
		"do", "restore the credentials of Config.Auth on the server; other servers are tried")
	a.OnSessionEvent(epoch.Refused, err.Error())
}

// onConnected begins or goes on with the epoch. was is the state before.
func (a *bridgeActor) onConnected(was epoch.State) {
	if was.State == messages.SessionState_LOST {
		a.scheduleBeat()
		a.epoch.Begin()
	}
	a.epoch.Resume()
}

// takeSnapshot returns the present state for the methods of Bridge.
func (a *bridgeActor) takeSnapshot(detail string) *snapshot {
	s := &snapshot{Session: Session{State: a.session.State, Epoch: a.session.Epoch}, failed: a.failed}
	if a.epoch != nil {
		s.conn = a.epoch.Conn
		s.ID, s.Timeout = a.epoch.Conn.ID(), a.epoch.Conn.Timeout()
	}
	if s.State == messages.SessionState_SUSPENDED || s.State == messages.SessionState_LOST {
		s.outageSince, s.outageReason = time.Now(), detail
		if last := a.bridge.state.Load(); last != nil && !last.outageSince.IsZero() {
			s.outageSince = last.outageSince
		}
	}
	return s
}

// NoteTokens implements epoch.Owner.
func (a *bridgeActor) NoteTokens(missing error) {
	if missing == nil {
		a.bridge.noTokens.Store(nil)
	} else {
		a.bridge.noTokens.Store(&missing)
	}
}

// OnReady implements epoch.Owner.
func (a *bridgeActor) OnReady() {
	if !a.wasReady {
		a.wasReady = true
		close(a.bridge.ready)
	}
}

// WasReady implements epoch.Owner.
func (a *bridgeActor) WasReady() bool { return a.wasReady }

// IsConnected implements epoch.Owner.
func (a *bridgeActor) IsConnected() bool { return a.session.State == messages.SessionState_CONNECTED }

// NoteConnectError implements epoch.Owner.
func (a *bridgeActor) NoteConnectError(err error) { a.bridge.noteConnectError(err) }

// endEpoch leaves the session, and answers all requests that are open. retire ends the connection.
func (a *bridgeActor) endEpoch(why messages.Reason, detail string, retire func(*zkconn.SessionConn)) {
	ep := a.epoch
	a.epoch = nil
	retire(ep.Conn)
	a.former.Add(ep.Writer.Generation, ep.Conn.Zxid())
	ep.End(why, detail)
	a.rooms.answers += uint64(a.fresh.n)
	a.failNewCreates(why, detail)
}
