package zkbridge

import (
	"runtime"
	"testing"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// stuck is an actor that does not come to the end of a message.
type stuck struct{ end <-chan struct{} }

func (s stuck) Receive(ask.Recipient, any) { <-s.end }
func (stuck) Stopped(any)                  {}
func (stuck) Refuse(ask.Recipient, any)    {}

// The bridge serves requests and hears of its session while other actors keep all goroutines
// that serve actors.
func TestBridgeDoesNotWaitForOtherActors(t *testing.T) {
	s := zktest.Embedded(t)
	system := host.NewSystem(nil, nil)
	defer system.Close()
	end := make(chan struct{})
	defer close(end)
	for range 4 + 4*runtime.GOMAXPROCS(0) {
		system.Start("stuck", func(*host.Ref) host.Actor { return stuck{end} }).Tell("get stuck")
	}
	b, err := Open(system, Config{Servers: s.Addr()})
	must(t, err)
	defer b.Close()
	must(t, b.Connected(t.Context()))
	u := newUser(t, b)
	u.subscribe()
	state(t, u.peer, messages.SessionState_CONNECTED)
	u.created(s.Path(t), "node-")
	s.Embedded().DropConnections()
	state(t, u.peer, messages.SessionState_SUSPENDED)
	state(t, u.peer, messages.SessionState_CONNECTED)
}
