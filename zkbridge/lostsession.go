package zkbridge

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// A session that the bridge takes for lost by its own clock lives on at the servers until they
// expire it, and servers that were restarted count its timeout anew. Until then the session's
// nodes keep other processes, and this one, from its locks. So the bridge resumes the session on
// a separate connection and closes it: the servers then delete all its nodes at once, and refuse
// its requests that are still on their way. The bridge does that Margin after it has told its
// subscribers of the loss, which is when the work under the session's locks has ended.

// lostSession is a session that the bridge has given up and that the servers may keep.
type lostSession struct {
	id       int64
	password []byte
	due      time.Time // of the next attempt to close it
	closing  *epoch    // in which an attempt is queued or under way, nil for none
	attempts int       // that failed
}

// maxClosings bounds the attempts to close a session: an attempt renews the session, by the
// shortest timeout that the server grants, if the server resumes it and does not close it.
const maxClosings = 20

// addLostSession has the session of a link closed, unless the server has said that the session is over.
// The bridge has told its subscribers that the session is lost.
func (a *bridgeActor) addLostSession(l *sessionConn) {
	if l.sessionEnded.Load() {
		return
	}
	l.mu.Lock()
	s := &lostSession{id: l.sessionID.Load(), password: l.password}
	l.mu.Unlock()
	a.lostSessions = append(a.lostSessions, s)
	a.scheduleClose(s, a.cfg.margin)
}

// scheduleClose has a lost session closed when a pause is over.
func (a *bridgeActor) scheduleClose(s *lostSession, pause time.Duration) {
	s.due = time.Now().Add(pause)
	time.AfterFunc(pause, func() { a.self.Tell(task((*bridgeActor).closeLostSessions)) })
}

// closeLostSessions has the lost sessions that are due closed, as soon as the present session is ready.
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
		ep.singles.addBlocking(func() func() {
			err := zk.ErrNoServer
			if w := ep.conn.active.Load(); w != nil {
				err = s.close(ep.conn.ctx, a.cfg, w.server)
			}
			return func() { a.onLostSessionClosed(s, err) }
		})
	}
}

// onLostSessionClosed takes the result of an attempt to close a lost session.
func (a *bridgeActor) onLostSessionClosed(s *lostSession, err error) {
	log := a.cfg.log.With("session", fmt.Sprintf("%#x", s.id))
	s.attempts++
	switch {
	case err == nil:
		log.Info("the lost session is closed: its nodes are gone")
	case errors.Is(err, errAnotherSession) || s.attempts >= maxClosings:
		log.Warn("the lost session cannot be closed: its nodes stay until it expires", "why", err)
	default:
		log.Debug("the lost session is not closed yet", "why", err)
		s.closing = nil
		a.scheduleClose(s, min(retryPause<<s.attempts, maxOrphanPause))
		return
	}
	a.lostSessions = slices.DeleteFunc(a.lostSessions, func(other *lostSession) bool { return other == s })
}

// closeLostSessionsNow tries once to close the lost sessions, in the background. It is for a bridge
// that the user closes: the work under all locks has ended.
func (a *bridgeActor) closeLostSessionsNow() {
	if a.epoch == nil {
		return
	}
	if w := a.epoch.conn.active.Load(); w != nil {
		for _, s := range a.lostSessions {
			a.bridge.closingConns.Go(func() { s.close(context.Background(), a.cfg, w.server) })
		}
	}
}

var errAnotherSession = errors.New("the server has opened another session rather than resume this one")

// close resumes the session on a server and closes it. It returns nil if the server has closed
// the session or says that it is over. It blocks until then, for ConnectTimeout at most; an
// earlier end of ctx ends it.
func (s *lostSession) close(ctx context.Context, cfg *settings, server string) error {
	deadline := time.Now().Add(cfg.connect)
	ctx, cancel := context.WithDeadline(ctx, deadline)
	var lookups sync.WaitGroup
	defer lookups.Wait()
	defer cancel()
	conn, raw, err := cfg.open(ctx, ctx, &lookups, "tcp", server)
	if err != nil {
		return err
	}
	defer raw.Close()
	defer context.AfterFunc(ctx, func() { raw.Close() })()
	w := newConn(conn, raw, nil, deadline)
	if err := conn.SetDeadline(deadline); err != nil {
		return err
	}
	if _, err := conn.Write(s.connectRequest()); err != nil {
		return err
	}
	hello, err := w.readConnectResponse()
	if err != nil || hello.session == 0 {
		return err
	}
	for _, a := range cfg.auth {
		if err := w.authenticate(a); err != nil {
			return err
		}
	}
	if err := w.closeSession(); err != nil || hello.session == s.id {
		return err
	}
	return errAnotherSession
}

// connectRequest is the message that resumes the session. It asks for the shortest timeout, by which
// the session expires if it is not closed.
func (s *lostSession) connectRequest() []byte {
	const shortest = 1                          // ms; the server grants more
	b := appendInt(make([]byte, lengthSize), 0) // protocol version
	b = binary.BigEndian.AppendUint64(b, 0)     // newest zxid seen: any server will do
	b = appendInt(b, shortest)
	b = binary.BigEndian.AppendUint64(b, uint64(s.id))
	b = appendBool(appendData(b, s.password), false) // no server that only reads
	binary.BigEndian.PutUint32(b, uint32(len(b)-lengthSize))
	return b
}

// closeSession closes the session of the connection.
func (c *conn) closeSession() error {
	b := binary.BigEndian.AppendUint32(nil, headerSize-lengthSize)
	b = appendInt(appendInt(b, 1), opClose)
	if _, err := c.Conn.Write(b); err != nil {
		return err
	}
	answer, err := c.readFrame(maxGreeting)
	if err != nil {
		return err
	}
	if err := errorOf(int32(binary.BigEndian.Uint32(answer[lengthSize+xidSize+8:]))); !errors.Is(err, zk.ErrSessionExpired) {
		return err
	}
	return nil
}
