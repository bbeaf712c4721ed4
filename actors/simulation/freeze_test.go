package simulation

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	actorhost "github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
)

// components are the parts of a process whose Locks are made by actors.New. Their actors can be
// frozen from outside. The messages of timers then wait in mailboxes, as the timers of a process
// that the operating system has stopped fire late.
type components struct {
	system    *actorhost.System
	bridge    *zkbridge.Bridge
	frozen    func()       // ends the freeze; nil without a freeze
	suspended atomic.Int64 // for how long the machine was suspended, a time.Duration
	began     time.Time
	drift     float64 // by how much the clock is faster than virtual time
}

// ahead returns by how much the clock of the process is ahead of virtual time.
func (c *components) ahead() time.Duration {
	return time.Duration(float64(time.Since(c.began))*c.drift) + time.Duration(c.suspended.Load())
}

// connectComponents does what actors.Connect does, by means of public functions.
func connectComponents(servers string, cfg actors.Config, drift float64) (*actors.Locks, *components, error) {
	c := &components{system: actorhost.NewSystem(cfg.System, cfg.Logger), began: time.Now(), drift: drift}
	var err error
	c.bridge, err = zkbridge.Open(c.system, zkbridge.Config{Servers: servers, SessionTimeout: cfg.SessionTimeout, Dial: cfg.Dial, Logger: cfg.Logger,
		SuspendedFor: c.ahead})
	if err == nil {
		if err = c.bridge.Connected(context.Background()); err != nil {
			c.bridge.Close()
		}
	}
	if err != nil {
		c.system.Close()
		return nil, nil, err
	}
	return actors.New(c.system, c.bridge, cfg), c, nil
}

func (c *components) close() {
	if c.bridge == nil { // of a client, whose Locks end all
		return
	}
	c.bridge.Close()
	c.system.Close()
}

// freeze keeps the actors of the process from handling messages until unfreeze.
func (c *components) freeze() { c.frozen = locktest.FreezeActors(c.system) }

// sleep suspends the machine of a process. Its clock goes on, and its timers stand still: the clock
// jumps, and a moment passes in virtual time. If the jump is longer than the session timeout, the
// servers end the session within that moment, and other processes are granted what it held. The
// process must not believe in it, nor be granted anything by the messages that wait for its actors.
func (sim *simulation) sleep(p *process, asleep time.Duration, r *rand.Rand) {
	if p.components == nil || p.lockServer != nil { // the clocks of its clients would have to go on, too
		return
	}
	moment := 10*time.Millisecond + time.Duration(r.Int64N(int64(2*time.Second)))
	p.markAffected(moment + sim.plan.sessionTimeout)
	p.host.block(true)
	p.frozen = true
	p.components.freeze()
	sim.record("%s sleeps for %v", p.name, asleep)
	p.components.suspended.Add(int64(asleep))
	if session := p.session; session != 0 && asleep > sim.plan.sessionTimeout && !p.isClient {
		sim.overslept[session] = true
		sim.after(2*time.Millisecond, func() { sim.server.Expire(session) }) // the clock shows a jump a millisecond later
	}
	sim.undoAfter(moment, func() {
		p.frozen = false
		p.components.unfreeze()
		p.unblock()
	})
}

// clock returns the time by the clock of the process, which goes on while the machine is suspended.
func (p *process) clock() time.Duration {
	now := p.sim.now()
	if p.components != nil {
		now += p.components.ahead()
	}
	return now
}

// hasLost reports whether the process has lost a session by its own clock. Its actors do not learn
// of that while they are frozen.
func (p *process) hasLost(session int64) bool {
	return session != 0 && (session != p.session || p.state == messages.SessionState_LOST)
}

func (c *components) unfreeze() {
	if c.frozen == nil {
		return
	}
	c.frozen()
	c.frozen = nil
}
