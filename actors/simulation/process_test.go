package simulation

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/streams"
	"github.com/actorlock/actorlock/messages"
)

// process is one process: a connection and its locks.
type process struct {
	sim              *simulation
	name             string
	slot             int
	host             *host
	locks            *actors.Locks
	components       *components   // nil if Connect made locks
	ready            chan struct{} // closed when connecting is over
	closed           chan struct{} // closed when closing is over
	err              error
	dead             bool          // killed or closed
	affectedUntil    time.Duration // until when faults may have an effect on the process
	delayedUntil     time.Duration // until when faults may delay the messages to the process
	frozen           bool
	limited          bool
	stopOnSuspended  bool
	candidateStarted bool               // startCandidate was called
	replaceNext      bool               // replaceDirectoryAfter replaces the directory of the next mutex that is released
	hideReplaced     bool               // no client may read the new directory
	system           *actor.ActorSystem // nil if the process has no protoactor actors
	session          int64
	state            messages.SessionState

	isClient   bool               // of lock servers
	links      *streamDialer      // of a client
	lockServer streams.LockServer // nil if the process serves no clients
	observes   bool               // watchQueue observes a queue
	member     *partitionsMember  // of the group, nil without one; it need not join

	missingNodeAt  map[string]time.Duration // when a release was answered because the node was missing, by path
	lostSessions   map[int64]time.Duration  // when a session was lost
	connectedSince time.Duration            // since when the process is connected
	budget         uint32                   // of its local queues
}

func (sim *simulation) startProcess(slot, incarnation int) {
	p := &process{sim: sim, slot: slot, name: fmt.Sprintf("p%d.%d", slot, incarnation), ready: make(chan struct{}),
		missingNodeAt: map[string]time.Duration{}, lostSessions: map[int64]time.Duration{}}
	p.host = sim.network.newHost(p.name, sim.rand(p.name, 0).Uint64())
	if r := sim.rand(p.name, 3); r.Float64() < sim.plan.farChance {
		p.host.maxDelay = pick(r, []time.Duration{10 * time.Millisecond, 100 * time.Millisecond})
	}
	if sim.plan.maxDelays != nil {
		p.host.maxDelay = sim.plan.maxDelays[slot]
	}
	p.isClient = sim.plan.isClient(slot)
	sim.slots[slot] = p
	sim.incarnations = append(sim.incarnations, p)
	sim.record("%s starts", p.name)
	p.connect()
}

func (p *process) connect() {
	if p.dead {
		close(p.ready)
		return
	}
	r := p.sim.rand(p.name, 1)
	// A history must be the same in another process and on another host, so no node names them.
	cfg := actors.Config{SessionTimeout: p.sim.plan.sessionTimeout, Dial: p.host.dial, Logger: slog.New(slog.DiscardHandler), OmitHolder: true}
	p.stopOnSuspended = r.IntN(4) == 0
	cfg.StopOnSuspended = p.stopOnSuspended
	if r.IntN(8) == 0 && !p.sim.plan.unlimited && p.slot >= p.sim.plan.lockServers {
		cfg.MaxRequestsPerLock, cfg.MaxRequests, p.limited = 4, 12, true
	}
	if r.IntN(4) == 0 {
		cfg.IdleTimeout = 300 * time.Millisecond
	}
	if r.IntN(2) == 0 {
		p.system = newActorSystem()
		cfg.System = p.system
	}
	separateParts := r.IntN(2) == 0
	ready := make(chan struct{})
	p.ready = ready
	go func() {
		defer close(ready)
		switch {
		case p.isClient:
			p.connectToLockServers(cfg)
			return
		case p.slot < p.sim.plan.lockServers:
			p.serve(cfg)
			return
		}
		if separateParts {
			p.locks, p.components, p.err = connectComponents(p.sim.network.serverList(), cfg, 0)
			return
		}
		p.locks, p.err = actors.Connect(context.Background(), p.sim.network.serverList(), cfg)
	}()
}

func (p *process) isUp() bool {
	select {
	case <-p.ready:
		return p.locks != nil && !p.dead
	default:
		return false
	}
}

func (p *process) advance() {
	select {
	case <-p.ready:
		if p.locks == nil && !p.dead {
			p.sim.record("%s: connect: %v", p.name, p.err)
			p.ready = make(chan struct{})
			p.sim.after(time.Millisecond, p.connect) // at a time of its own: other processes may have failed at this one
		}
	default:
		return
	}
	if p.locks == nil {
		return
	}
	if !p.candidateStarted {
		p.candidateStarted = true
		p.sim.startCandidate(p)
		p.sim.startMember(p)
	}
	s := p.locks.Session()
	if s.State != p.state || s.ID != p.session {
		p.noteSession(p.sim.now(), s.ID, s.State)
		if p.sim.plan.keepsLeases && p.isClient && p.session != 0 && s.State == messages.SessionState_LOST && !p.dead {
			p.sim.fail(p.sim.now(), "%s has lost its lease by a fault that may not cost it", p.name)
		}
		p.state, p.session = s.State, s.ID
		p.sim.record("%s is %v, session %#x", p.name, s.State, s.ID)
	}
}

// close closes the process's locks in the background. Before Close all work under them must have
// ended.
func (p *process) close() {
	p.dead = true
	if p.closed != nil {
		return
	}
	for _, r := range p.sim.requests {
		if r.p == p {
			r.endWork()
		}
	}
	if p.member != nil {
		close(p.member.gone)
	}
	p.closed = make(chan struct{})
	go func() {
		<-p.ready
		if p.lockServer != nil {
			p.stopServing()
		}
		if p.locks != nil {
			p.locks.Close()
		}
		if p.components != nil {
			p.components.close()
		}
		if p.system != nil {
			p.system.Shutdown()
		}
		close(p.closed)
	}()
}

// markAffected notes that a fault may have an effect on the process for a time.
func (p *process) markAffected(d time.Duration) {
	p.markDisconnected(d)
	p.delayedUntil = max(p.delayedUntil, p.sim.now()+d)
}

// markDisconnected is markAffected for a fault that loses messages but delays none.
func (p *process) markDisconnected(d time.Duration) {
	p.affectedUntil = max(p.affectedUntil, p.sim.now()+d)
	p.markClients(d)
	p.sim.unaffectedSince = 0 // checkLiveness looks once a second only
}

// isAffected reports whether a fault may have an effect on the process.
func (p *process) isAffected() bool {
	return p.sim.now() < p.affectedUntil || p.frozen || p.dead || p.isClient && p.sim.serversAffected()
}
