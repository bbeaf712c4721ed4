package recipes

import (
	"github.com/actorlock/actorlock/actors/internal/lockqueue"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
)

// The session of an actor's directories, in which their nodes live.

// SessionChanged implements messages.BridgeClientHandler. The manager passes the bridge's news of the session to
// each actor, and package lock (own.go) calls this method.
func (ds *directories) SessionChanged(_ ask.Recipient, msg *messages.SessionChanged) {
	if ds.lost && msg.Epoch == ds.epoch && msg.State != messages.SessionState_ENDED {
		return // a lost session does not come back
	}
	ds.Detail = msg.Detail
	switch msg.State {
	case messages.SessionState_CONNECTED:
		ds.sessionLives(msg, lockqueue.Connected)
	case messages.SessionState_SUSPENDED:
		ds.sessionLives(msg, lockqueue.Suspended) // this may be the first message about the session
	case messages.SessionState_LOST:
		ds.sessionLost(msg.Epoch)
	case messages.SessionState_ENDED: // the bridge is closed
		ds.each(func(d *directory) { d.close(false) })
	}
}

func (ds *directories) sessionLives(msg *messages.SessionChanged, state lockqueue.SessionState) {
	ds.epoch, ds.lost, ds.session = msg.Epoch, false, msg.SessionId
	ds.each(func(d *directory) { feed(d, lockqueue.Session{Epoch: msg.Epoch, State: state}) })
}

func (ds *directories) sessionLost(epoch uint64) {
	ds.lost = true
	ds.each(func(d *directory) { feed(d, lockqueue.Session{Epoch: epoch, State: lockqueue.Lost}) })
}
