package zkbridge

import (
	"fmt"
	"time"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/epoch"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

// reopenPause is how long the bridge waits before it opens the next epoch if the last one ended
// before it had a session, because a server refused the credentials, or so soon after another one.
const reopenPause = time.Second

// open begins the next epoch.
func (a *bridgeActor) open() {
	if a.epoch != nil || a.fatal != nil {
		return
	}
	a.epochsOpened++
	a.epoch = epoch.Open(a, epoch.Setup{Settings: &a.cfg.Settings, Former: a.former, Answers: &a.rooms.answers, Blocking: &a.blockingJobs,
		OnBatch: a.bridge.counters.countBatch}, a.epochsOpened)
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

// endEpoch leaves the session, and answers all requests that are open. retire ends the connection.
func (a *bridgeActor) endEpoch(why messages.Reason, detail string, retire func(*zkconn.SessionConn)) {
	ep := a.epoch
	a.epoch = nil
	retire(ep.Conn)
	a.former.Add(ep.Writer.Generation, ep.Conn.Zxid())
	ep.End(why, detail)
	a.rooms.answers += uint64(a.newCreates.n)
	a.failNewCreates(why, detail)
}
