package simulation

import (
	"context"
	"runtime"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/gen/ask"
	actorhost "github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
)

// apart is what a process consists of whose Locks are made by actors.New: its actors can be
// stopped from outside. While they stand still, all that timers of the process tell them waits in
// their mailboxes, as the timers of a process that the operating system has stopped fire late.
type apart struct {
	system *actorhost.System
	bridge *zkbridge.Bridge
	thaw   chan struct{} // ends the freeze; nil without one
	still  []*actorhost.Ref
}

// openApart is actors.Connect from its public parts.
func openApart(servers string, cfg actors.Config) (*actors.Locks, *apart, error) {
	system := actorhost.NewSystem(cfg.System, cfg.Logger)
	bridge, err := zkbridge.Open(system, zkbridge.Config{Servers: servers, SessionTimeout: cfg.SessionTimeout, Dial: cfg.Dial, Logger: cfg.Logger})
	if err == nil {
		if err = bridge.Connected(context.Background()); err != nil {
			bridge.Close()
		}
	}
	if err != nil {
		system.Close()
		return nil, nil, err
	}
	return actors.New(system, bridge, cfg), &apart{system: system, bridge: bridge}, nil
}

func (a *apart) close() {
	a.bridge.Close()
	a.system.Close()
}

// freeze has no actor of the process handle a message before unfreeze: it occupies all goroutines
// that serve mailboxes.
func (a *apart) freeze() {
	a.thaw = make(chan struct{})
	occupy := func(*actorhost.Ref) actorhost.Actor { return occupier{a.thaw} }
	for range max(4, 2*runtime.GOMAXPROCS(0)) {
		a.still = append(a.still, a.system.Start("occupier", occupy))
	}
	if ref, err := a.system.SpawnPriority("occupier", occupy); err == nil {
		a.still = append(a.still, ref)
	}
	for _, ref := range a.still {
		ref.Tell("stand still")
	}
}

// hasLost reports whether the process has lost a session by its clock, of which its actors do not
// hear while they stand still.
func (p *process) hasLost(session int64) bool {
	return session != 0 && (session != p.session || p.state == messages.SessionState_LOST)
}

func (a *apart) unfreeze() {
	if a.thaw == nil {
		return
	}
	close(a.thaw)
	for _, ref := range a.still {
		ref.Stop()
	}
	a.thaw, a.still = nil, nil
}

// occupier is an actor that blocks the goroutine that serves it.
type occupier struct{ thaw chan struct{} }

func (o occupier) Receive(ask.Recipient, any) { <-o.thaw }
func (o occupier) Stopped(any)                {}
func (o occupier) Refuse(ask.Recipient, any)  {}
