package zkbridge

import (
	"testing"

	"github.com/actorlock/actorlock/messages"
)

func TestSessionTable(t *testing.T) {
	t.Parallel()
	const (
		connected = messages.SessionState_CONNECTED
		suspended = messages.SessionState_SUSPENDED
		lost      = messages.SessionState_LOST
		ended     = messages.SessionState_ENDED
	)
	none := sessionState{lost, 0}
	for _, c := range []struct {
		name    string
		from    sessionState
		event   sessionEvent
		epoch   uint64
		to      sessionState
		changed bool
	}{
		{"first session", none, sessionEstablished, 1, sessionState{connected, 1}, true},
		{"cannot connect", none, sessionDisconnected, 1, none, false},
		{"refused before there was one", none, sessionExpired, 1, none, false},
		{"closed before there was one", none, sessionClosed, 0, sessionState{ended, 0}, true},
		{"cut", sessionState{connected, 1}, sessionDisconnected, 1, sessionState{suspended, 1}, true},
		{"cut twice", sessionState{suspended, 1}, sessionDisconnected, 1, sessionState{suspended, 1}, false},
		{"reconnected", sessionState{suspended, 1}, sessionEstablished, 1, sessionState{connected, 1}, true},
		{"connected twice", sessionState{connected, 1}, sessionEstablished, 1, sessionState{connected, 1}, false},
		{"expired", sessionState{suspended, 1}, sessionExpired, 1, sessionState{lost, 1}, true},
		{"expired at once", sessionState{connected, 1}, sessionExpired, 1, sessionState{lost, 1}, true},
		{"overdue", sessionState{suspended, 1}, sessionOverdue, 1, sessionState{lost, 1}, true},
		{"overdue while connected", sessionState{connected, 1}, sessionOverdue, 1, sessionState{lost, 1}, true},
		{"overdue of an old epoch", sessionState{connected, 2}, sessionOverdue, 1, sessionState{connected, 2}, false},
		{"a lost session never comes back", sessionState{lost, 1}, sessionEstablished, 1, sessionState{lost, 1}, false},
		{"next session", sessionState{lost, 1}, sessionEstablished, 2, sessionState{connected, 2}, true},
		{"late event of the last epoch", sessionState{connected, 2}, sessionDisconnected, 1, sessionState{connected, 2}, false},
		{"event of another epoch", sessionState{suspended, 2}, sessionEstablished, 3, sessionState{suspended, 2}, false},
		{"closed", sessionState{connected, 2}, sessionClosed, 2, sessionState{ended, 2}, true},
		{"closed while suspended", sessionState{suspended, 2}, sessionClosed, 2, sessionState{ended, 2}, true},
		{"closed stays closed", sessionState{ended, 2}, sessionEstablished, 3, sessionState{ended, 2}, false},
		{"closed twice", sessionState{ended, 2}, sessionClosed, 2, sessionState{ended, 2}, false},
	} {
		to, changed := c.from.after(c.event, c.epoch)
		if to != c.to || changed != c.changed {
			t.Errorf("%s: %v, %v; want %v, %v", c.name, to, changed, c.to, c.changed)
		}
	}
}
