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
	none := State{lost, 0}
	for _, c := range []struct {
		name    string
		from    State
		event   Event
		epoch   uint64
		to      State
		changed bool
	}{
		{"first session", none, Established, 1, State{connected, 1}, true},
		{"cannot connect", none, Disconnected, 1, none, false},
		{"refused before there was one", none, Expired, 1, none, false},
		{"closed before there was one", none, Closed, 0, State{ended, 0}, true},
		{"cut", State{connected, 1}, Disconnected, 1, State{suspended, 1}, true},
		{"cut twice", State{suspended, 1}, Disconnected, 1, State{suspended, 1}, false},
		{"reconnected", State{suspended, 1}, Established, 1, State{connected, 1}, true},
		{"connected twice", State{connected, 1}, Established, 1, State{connected, 1}, false},
		{"expired", State{suspended, 1}, Expired, 1, State{lost, 1}, true},
		{"expired at once", State{connected, 1}, Expired, 1, State{lost, 1}, true},
		{"overdue", State{suspended, 1}, Overdue, 1, State{lost, 1}, true},
		{"overdue while connected", State{connected, 1}, Overdue, 1, State{lost, 1}, true},
		{"overdue of an old epoch", State{connected, 2}, Overdue, 1, State{connected, 2}, false},
		{"a lost session never comes back", State{lost, 1}, Established, 1, State{lost, 1}, false},
		{"next session", State{lost, 1}, Established, 2, State{connected, 2}, true},
		{"late event of the last epoch", State{connected, 2}, Disconnected, 1, State{connected, 2}, false},
		{"event of another epoch", State{suspended, 2}, Established, 3, State{suspended, 2}, false},
		{"closed", State{connected, 2}, Closed, 2, State{ended, 2}, true},
		{"closed while suspended", State{suspended, 2}, Closed, 2, State{ended, 2}, true},
		{"closed stays closed", State{ended, 2}, Established, 3, State{ended, 2}, false},
		{"closed twice", State{ended, 2}, Closed, 2, State{ended, 2}, false},
	} {
		to, changed := c.from.After(c.event, c.epoch)
		if to != c.to || changed != c.changed {
			t.Errorf("%s: %v, %v; want %v, %v", c.name, to, changed, c.to, c.changed)
		}
	}
}
