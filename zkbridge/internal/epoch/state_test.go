package epoch

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
	none := SessionMachine{lost, 0}
	for _, c := range []struct {
		name    string
		from    SessionMachine
		event   SessionEvent
		epoch   uint64
		to      SessionMachine
		changed bool
	}{
		{"first session", none, Established, 1, SessionMachine{connected, 1}, true},
		{"cannot connect", none, Disconnected, 1, none, false},
		{"refused before there was one", none, Expired, 1, none, false},
		{"closed before there was one", none, Closed, 0, SessionMachine{ended, 0}, true},
		{"cut", SessionMachine{connected, 1}, Disconnected, 1, SessionMachine{suspended, 1}, true},
		{"cut twice", SessionMachine{suspended, 1}, Disconnected, 1, SessionMachine{suspended, 1}, false},
		{"reconnected", SessionMachine{suspended, 1}, Established, 1, SessionMachine{connected, 1}, true},
		{"connected twice", SessionMachine{connected, 1}, Established, 1, SessionMachine{connected, 1}, false},
		{"expired", SessionMachine{suspended, 1}, Expired, 1, SessionMachine{lost, 1}, true},
		{"expired at once", SessionMachine{connected, 1}, Expired, 1, SessionMachine{lost, 1}, true},
		{"overdue", SessionMachine{suspended, 1}, Overdue, 1, SessionMachine{lost, 1}, true},
		{"overdue while connected", SessionMachine{connected, 1}, Overdue, 1, SessionMachine{lost, 1}, true},
		{"overdue of an old epoch", SessionMachine{connected, 2}, Overdue, 1, SessionMachine{connected, 2}, false},
		{"a lost session never comes back", SessionMachine{lost, 1}, Established, 1, SessionMachine{lost, 1}, false},
		{"next session", SessionMachine{lost, 1}, Established, 2, SessionMachine{connected, 2}, true},
		{"late event of the last epoch", SessionMachine{connected, 2}, Disconnected, 1, SessionMachine{connected, 2}, false},
		{"event of another epoch", SessionMachine{suspended, 2}, Established, 3, SessionMachine{suspended, 2}, false},
		{"closed", SessionMachine{connected, 2}, Closed, 2, SessionMachine{ended, 2}, true},
		{"closed while suspended", SessionMachine{suspended, 2}, Closed, 2, SessionMachine{ended, 2}, true},
		{"closed stays closed", SessionMachine{ended, 2}, Established, 3, SessionMachine{ended, 2}, false},
		{"closed twice", SessionMachine{ended, 2}, Closed, 2, SessionMachine{ended, 2}, false},
	} {
		to, changed := c.from.After(c.event, c.epoch)
		if to != c.to || changed != c.changed {
			t.Errorf("%s: %v, %v; want %v, %v", c.name, to, changed, c.to, c.changed)
		}
	}
}
