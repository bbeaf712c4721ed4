package zkbridge

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/epoch"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

// A session that the bridge takes for lost by its own clock lives on at the servers until they
// expire it, and servers that were restarted count its timeout anew. Until then the session's nodes
// keep other processes, and this one, from its locks. So the bridge resumes the session on a
// separate connection and closes it: the servers then delete all its nodes at once, and refuse its
// requests that are still on their way. The bridge does that Margin after it has told its
// subscribers of the loss, which is when the work under the session's locks has ended, and not before
// the end of each Promise.

const (
	// maxClosings bounds the attempts to close a session. An attempt renews the session, by the
	// shortest timeout that the server grants, if the server resumes it and does not close it.
	maxClosings = 20
	// maxClosePause bounds the pause between two attempts.
	maxClosePause = 10 * time.Second
)

// addLostSession has a session closed, unless a server has said that the session is over. The
// bridge has told its subscribers that the session is lost.
func (a *bridgeActor) addLostSession(conn *zkconn.SessionConn) {
	if conn.HasEnded() {
		return
	}
	s := &lostSession{}
	s.id, s.password = conn.Resumption()
	a.lostSessions = append(a.lostSessions, s)
	a.scheduleClose(s, a.bridge.closePause())
}

// scheduleClose has a lost session closed after a pause.
func (a *bridgeActor) scheduleClose(s *lostSession, pause time.Duration) {
	s.due = time.Now().Add(pause)
	a.timers.After(pause, a.closeLostSessions)
}

// closeLostSessions closes the lost sessions that are due, as soon as the present session is ready.
func (a *bridgeActor) closeLostSessions() {
	ep := a.epoch
	if ep == nil {
		return // open calls again
	}
	for _, s := range a.lostSessions {
		if s.closing == ep || time.Now().Before(s.due) {
			continue
		}
		s.closing = ep
		ep.Jobs().Closings.AddBlocking(func() func() {
			err := zk.ErrNoServer
			if conn := ep.Conn.Active(); conn != nil {
				err = zkconn.CloseSession(ep.Conn.Context(), &a.cfg.Settings, conn.Server, s.id, s.password)
			}
			return func() { a.onLostSessionClosed(s, err) }
		})
	}
}

// onLostSessionClosed handles the result of an attempt to close a lost session.
func (a *bridgeActor) onLostSessionClosed(s *lostSession, err error) {
	log := a.cfg.Log.With("session", messages.FormatSession(s.id))
	s.attempts++
	switch {
	case err == nil:
		log.Info("the lost session is closed: its nodes are gone")
	case errors.Is(err, zkconn.ErrAnotherSession) || s.attempts >= maxClosings:
		log.Warn("the lost session cannot be closed: its nodes stay until it expires", "why", err, "do", "wait: its locks are free when the servers have expired it")
	default:
		log.Debug("the lost session is not closed yet", "why", err)
		s.closing = nil
		a.scheduleClose(s, min(epoch.RetryPause<<s.attempts, maxClosePause))
		return
	}
	a.lostSessions = slices.DeleteFunc(a.lostSessions, func(other *lostSession) bool { return other == s })
}

// closeLostSessionsNow tries once to close the lost sessions, in the background. The user has
// closed the bridge: the work under all locks has ended.
func (a *bridgeActor) closeLostSessionsNow() {
	if a.epoch == nil {
		return
	}
	if conn := a.epoch.Conn.Active(); conn != nil {
		for _, s := range a.lostSessions {
			a.bridge.closingConns.Go(func() {
				zkconn.CloseSession(context.Background(), &a.cfg.Settings, conn.Server, s.id, s.password)
			})
		}
	}
}
