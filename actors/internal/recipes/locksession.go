package recipes

import (
	"github.com/actorlock/actorlock/actors/internal/lockqueue"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
)

// The session of a lock actor, in which its nodes live.

// lockSession is the session that a lock actor knows.
type lockSession struct {
	epoch   uint64 // 0 before the first session
	lost    bool   // the session of epoch is lost
	session int64  // ZooKeeper's number of the session, for the grants
}

// SessionChanged implements messages.BridgeClientHandler.
func (l *lockActor) SessionChanged(_ ask.Recipient, msg *messages.SessionChanged) {
	if l.lost && msg.Epoch == l.epoch && msg.State != messages.SessionState_ENDED {
		return // a lost session does not come back
	}
	l.Detail = msg.Detail
	switch msg.State {
	case messages.SessionState_CONNECTED:
		l.sessionLives(msg, lockqueue.Connected)
	case messages.SessionState_SUSPENDED:
		l.sessionLives(msg, lockqueue.Suspended) // this may be the first message about the session
	case messages.SessionState_LOST:
		l.sessionLost(msg.Epoch)
	case messages.SessionState_ENDED: // the bridge is closed
		feed(l, lockqueue.Close{Reason: requests.Closed})
	}
}

func (l *lockActor) sessionLives(msg *messages.SessionChanged, state lockqueue.SessionState) {
	l.lockSession = lockSession{epoch: msg.Epoch, session: msg.SessionId}
	feed(l, lockqueue.Session{Epoch: msg.Epoch, State: state})
}

func (l *lockActor) sessionLost(epoch uint64) {
	l.lost = true
	feed(l, lockqueue.Session{Epoch: epoch, State: lockqueue.Lost})
}

// SessionOverdue implements shell.Behavior.
func (l *lockActor) SessionOverdue() { l.sessionLost(l.epoch) }
