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

// components are the parts of a process whose Locks are made by actors.New. Their actors can be frozen from
// outside. The messages of timers then wait in mailboxes, as the timers of a process that the operating system has
// stopped fire late.
type components struct {
	system   *actorhost.System
	bridge   *zkbridge.Bridge
	frozen   chan struct{} // closed to end the freeze; nil without a freeze
	blockers []*actorhost.Ref
}

// connectComponents does what actors.Connect does, by means of public functions.
func connectComponents(servers string, cfg actors.Config) (*actors.Locks, *components, error) {
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
	return actors.New(system, bridge, cfg), &components{system: system, bridge: bridge}, nil
}

func (c *components) close() {
	c.bridge.Close()
	c.system.Close()
}

// freeze keeps the actors of the process from handling messages until unfreeze: it blocks all goroutines that
// serve mailboxes.
func (c *components) freeze() {
	c.frozen = make(chan struct{})
	block := func(*actorhost.Ref) actorhost.Actor { return blockingActor{c.frozen} }
	for range max(4, 2*runtime.GOMAXPROCS(0)) {
		c.blockers = append(c.blockers, c.system.Start("blocker", block))
	}
	if ref, err := c.system.SpawnPriority("blocker", block); err == nil {
		c.blockers = append(c.blockers, ref)
	}
	for _, ref := range c.blockers {
		ref.Tell("block")
	}
}

// hasLost reports whether the process has lost a session by its own clock. Its actors do not learn of that while
// they are frozen.
func (p *process) hasLost(session int64) bool {
	return session != 0 && (session != p.session || p.state == messages.SessionState_LOST)
}

func (c *components) unfreeze() {
	if c.frozen == nil {
		return
	}
	close(c.frozen)
	for _, ref := range c.blockers {
		ref.Stop()
	}
	c.frozen, c.blockers = nil, nil
}

// blockingActor blocks the goroutine that serves it.
type blockingActor struct{ frozen chan struct{} }

func (b blockingActor) Receive(ask.Recipient, any) { <-b.frozen }
func (b blockingActor) Stopped(any)                {}
func (b blockingActor) Refuse(ask.Recipient, any)  {}
