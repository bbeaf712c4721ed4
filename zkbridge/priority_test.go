package zkbridge

import (
	"runtime"
	"testing"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// blockedActor handles its first message until end is closed.
type blockedActor struct{ end <-chan struct{} }

func (a blockedActor) Receive(ask.Recipient, any) { <-a.end }
func (blockedActor) Stopped(any)                  {}
func (blockedActor) Refuse(ask.Recipient, any)    {}

// The bridge serves requests and learns of changes of its session while other actors block all goroutines of the actor system.
func TestBridgeDoesNotWaitForOtherActors(t *testing.T) {
	s := zktest.Embedded(t)
	system := host.NewSystem(nil, nil)
	defer system.Close()
	end := make(chan struct{})
	defer close(end)
	for range 4 + 4*runtime.GOMAXPROCS(0) {
		system.Start("blocked", func(*host.Ref) host.Actor { return blockedActor{end} }).Tell("block")
	}
	b, err := Open(system, Config{Servers: s.Addr()})
	must(t, err)
	defer b.Close()
	must(t, b.Connected(t.Context()))
	u := newUser(t, b)
	u.subscribe()
	u.waitState(messages.SessionState_CONNECTED)
	u.created(s.Path(t), "node-")
	s.Embedded().DropConnections()
	u.waitState(messages.SessionState_SUSPENDED)
	u.waitState(messages.SessionState_CONNECTED)
}
