package zkbridge

import (
	"errors"
	"strings"
	"testing"

	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// A program ends at its start, with the setting that helps, if the servers have local sessions that they do
// not upgrade. A lock would wait for ever: within a transaction they say that the session has expired.
func TestLocalSessions(t *testing.T) {
	t.Parallel()
	zktest.OneRunIn(t, 8)
	s := zktest.Ensemble(t, 3, zktest.Setting("localSessionsEnabled", "true"), zktest.Setting("localSessionsUpgradingEnabled", "false"))
	for _, member := range s.Members() {
		system := host.NewSystem(nil, nil)
		b, err := Open(system, Config{Servers: member.Addr()})
		must(t, err)
		err = b.Connected(within(t))
		if !errors.Is(err, messages.Reason_UNAVAILABLE) || !strings.Contains(err.Error(), "localSessionsUpgradingEnabled") {
			t.Errorf("leader %v: %v", member == s.Leader(t), err)
		}
		b.Close()
		system.Close()
	}
}
