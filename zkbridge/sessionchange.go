package zkbridge

import (
	"fmt"
	"time"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/epoch"
	"github.com/actorlock/actorlock/zkbridge/internal/requests"
)

// beat takes the session for lost if its deadline has passed. Otherwise it sends a ping, and sets
// the timer for the next beat. By beats the bridge also notices the deadline soon after the machine
// was suspended, when timers are late.
func (a *bridgeActor) beat() {
	if a.epoch.Conn.Overdue(a.cfg.Clock.Now()) {
		a.OnSessionEvent(epoch.Overdue, "the session's deadline has passed: ZooKeeper may have expired it")
		return
	}
	if conn := a.epoch.Conn.Active(); conn != nil {
		conn.Ping()
	}
	a.scheduleBeat()
}

// scheduleBeat sets the timer for the next beat, which is at the deadline at the latest.
func (a *bridgeActor) scheduleBeat() {
	conn := a.epoch.Conn
	a.epoch.AfterFunc(min(conn.Left(), a.bridge.beatPause(conn.Timeout())), a.beat)
}

// OnSessionEvent implements epoch.Owner, for the present epoch.
func (a *bridgeActor) OnSessionEvent(e epoch.SessionEvent, detail string) {
	was := a.session
	next, changed := was.After(e, a.epoch.Number)
	switch {
	case !changed && (e == epoch.Expired || e == epoch.Refused): // it ended before it was established (still LOST)
		a.endEpoch(messages.Reason_SESSION_LOST, detail, a.bridge.closeLostConn)
		a.openAfterPause()
		return
	case !changed:
		return
	case e == epoch.Established && !a.checkTimeout():
		return // checkTimeout has made the bridge give up
	}
	a.session = next
	a.publish(detail)
	switch next.State {
	case messages.SessionState_LOST:
		a.addLostSession(a.epoch.Conn) // it may live at the server, and is closed later, on another connection: lostsession.go
		a.endEpoch(messages.Reason_SESSION_LOST, detail, a.bridge.closeLostConn)
		again := time.Since(a.lostAt) < reopenPause
		a.lostAt = time.Now()
		if again || e == epoch.Refused {
			a.openAfterPause() // the next one may end as soon
		} else {
			a.open()
		}
	case messages.SessionState_SUSPENDED:
		a.failFastCalls()
	case messages.SessionState_CONNECTED:
		a.onConnected(was)
	}
}

// onConnected begins or goes on with the epoch. was is the state before.
func (a *bridgeActor) onConnected(was epoch.SessionMachine) {
	if was.State == messages.SessionState_LOST {
		a.scheduleBeat()
		a.epoch.Begin()
	}
	a.epoch.Resume()
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

// failFastCalls fails the calls that do not wait for a connection.
func (a *bridgeActor) failFastCalls() {
	for _, r := range a.epoch.Open.InOrder() {
		if w, is := r.(requests.Waited); is && w.Called().FailFast {
			a.epoch.Fail(r, messages.Reason_DISCONNECTED, "%s", a.bridge.outageText())
		}
	}
}
