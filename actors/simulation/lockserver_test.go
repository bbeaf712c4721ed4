package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/streams"
	_ "github.com/actorlock/actorlock/actors/remote" // sets the variables of package streams
	actorhost "github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/zkbridge"
)

// Lock servers, their clients, and the faults of what is between them.

// drawLockServers makes some of the processes lock servers, and the others their clients.
func (p *plan) drawLockServers(r *rand.Rand) {
	p.lockServers = pick(r, []int{1, 1, 2, 2, 2})
	p.lease = pick(r, []time.Duration{3037, 6053, 10067, 20083}) * time.Millisecond
	p.processes = p.lockServers + pick(r, []int{1, 2, 2, 3, 4})
}

// isClient reports whether a process is a client of lock servers. Few others have ZooKeeper sessions
// of their own.
func (p *plan) isClient(slot int) bool {
	return p.lockServers > 0 && slot >= p.lockServers && (slot == p.lockServers || (p.seed+uint64(slot))%6 > 0)
}

// streamSettleTime is how much longer the effect of a fault may last if there are lock servers: a
// client may wait for the answer of a server that stands still, and its lease must end.
func (p *plan) streamSettleTime() time.Duration {
	if p.lockServers == 0 {
		return 0
	}
	return 2*p.lease + 20*time.Second
}

// streamFaults are the faults of streams and lock servers.
var streamFaults = []string{"mute", "deaf", "link", "drain"}

// streamFaultGroups are faults that affect the same part of the streams.
var streamFaultGroups = [][]string{
	{"mute", "deaf", "cut"},                // what is sent again
	{"mute", "deaf", "link", "slow"},       // renewals
	{"kill", "close", "drain"},             // ends of servers
	{"sleep", "freeze", "hole", "late"},    // deadlines
	{"drain", "cut", "deaf", "expire"},     // what the end of a lease meets
	{"delete", "deaf", "cut", "revoke"},    // losses that are under way
	{"server away", "deaf", "link"},        // reconnections
	{"request", "mute", "generation"},      // outcomes that are unknown
	{"drop", "expire", "close", "deaf"},    // futures and grants that programs have dropped
	{"actor stops", "kill", "cut", "mute"}, // ends of clients
}

// targetedStreams each draw a plan. The faults of most must not cost a client a grant.
var targetedStreams = []func(p *plan, r *rand.Rand){
	// Streams break while one way is silent.
	func(p *plan, r *rand.Rand) {
		p.draw(r, []string{"op plain"}, 1, always, 100*time.Millisecond, 300*time.Millisecond)
		p.draw(r, []string{"blink"}, 1, always, 3*time.Second, 10*time.Second)
	},
	// Connections are half open.
	func(p *plan, r *rand.Rand) {
		p.draw(r, []string{"op plain"}, 1, always, 300*time.Millisecond, time.Second)
		p.draw(r, []string{"link"}, 1, phase{time.Minute, 15 * time.Second}, 10*time.Second)
	},
	// Names that are no text.
	func(p *plan, r *rand.Rand) {
		p.draw(r, []string{"op plain"}, 1, always, 300*time.Millisecond)
		p.draw(r, []string{"op unreadable"}, 1, always, 10*time.Second)
	},
	// Clients observe queues while one way is silent.
	func(p *plan, r *rand.Rand) {
		p.draw(r, []string{"op plain"}, 1, always, 100*time.Millisecond)
		p.draw(r, []string{"op watch"}, 1, always, 5*time.Second)
		p.draw(r, []string{"blink"}, 1, always, 10*time.Second)
	},
	// One name leads to two lock servers in turn.
	func(p *plan, r *rand.Rand) {
		p.lockServers, p.processes, p.sharedName = 2, 2+pick(r, []int{1, 2, 3}), true
		p.draw(r, []string{"op plain"}, 1, always, 100*time.Millisecond, 300*time.Millisecond)
		p.draw(r, []string{"blink"}, 1, always, 3*time.Second, 10*time.Second)
	},
	// Answers are late, and then the server hears nothing more: leases end.
	func(p *plan, r *rand.Rand) {
		p.keepsLeases, p.optionChance, p.farChance, p.meanHold = false, 0, 0, pick(r, []time.Duration{500 * time.Millisecond, 2 * time.Second})
		p.lease = pick(r, []time.Duration{3037, 6053}) * time.Millisecond
		p.processes, p.memberForms, p.anyForms = p.lockServers+3, []int{r.IntN(2)}, []int{anyFormCount - 1}
		p.draw(r, []string{"op plain"}, 1, always, 300*time.Millisecond)
		p.draw(r, []string{"overdue answers"}, 1, always, 5*time.Second)
	},
}

// drawTargetedStreams replaces the plan by a targeted one, for some of the seeds.
func (p *plan) drawTargetedStreams() {
	if p.seed%targetedOneIn != 0 {
		if p.seed%3 == 0 {
			r := rand.New(rand.NewPCG(p.seed, 9))
			p.draw(r, []string{"op watch", "op unreadable", "blink"}, 0.5, always, 3*time.Second, 20*time.Second)
		}
		return
	}
	r := rand.New(rand.NewPCG(p.seed, 3))
	p.entries, p.foreignClients, p.optionChance, p.farChance, p.servers, p.election = nil, 0, 0.1, pick(r, []float64{0, 0.3, 0.7}), 1, false
	p.sessionTimeout, p.lease, p.keepsLeases = 20071*time.Millisecond, 20083*time.Millisecond, true
	targetedStreams[p.seed/targetedOneIn%uint64(len(targetedStreams))](p, r)
}

// lockServerAddress returns the address of a lock server, whatever its incarnation.
func lockServerAddress(slot int) string { return fmt.Sprintf("lock%d:7400", slot) }

// maxDrift is how far the clocks of two processes may drift apart: a two-hundredth.
const maxDrift = 1.0 / 200

// drift returns how much faster than virtual time the clock of the process is.
func (p *process) drift() float64 {
	switch r := p.sim.rand(p.name, 9); r.IntN(3) {
	case 0:
		return maxDrift
	case 1:
		return maxDrift * r.Float64()
	}
	return 0
}

// byClock returns how long the clock of the process takes a time of virtual time to be.
func (p *process) byClock(d time.Duration) time.Duration {
	return d + time.Duration(float64(d)*p.drift())
}

// connectToLockServers makes Locks that live on the lock servers.
func (p *process) connectToLockServers(cfg actors.Config) {
	r := p.sim.rand(p.name, 8)
	c := &components{system: actorhost.NewSystem(cfg.System, cfg.Logger), began: time.Now(), drift: p.drift()}
	if p.links == nil {
		p.links = &streamDialer{host: p.host, links: map[string]*link{}}
	}
	var servers []string
	for _, i := range r.Perm(p.sim.plan.lockServers) {
		servers = append(servers, lockServerAddress(i))
	}
	cfg.SessionTimeout, cfg.Dial = 0, nil
	if r.IntN(2) == 0 {
		cfg.Margin = 503 * time.Millisecond
	}
	p.locks, p.err = streams.Dial(context.Background(), c.system, zkbridge.NewClock(c.ahead), p.links, servers, cfg)
	if p.err == nil {
		p.components = c
	}
}

// serve makes a lock server.
func (p *process) serve(cfg actors.Config) {
	p.locks, p.components, p.err = connectComponents(p.sim.network.serverList(), cfg, p.drift())
	if p.err != nil {
		return
	}
	if p.lockServer, p.err = streams.NewServer(p.locks, p.sim.plan.lease, cfg); p.err != nil {
		panic(p.err)
	}
	p.sim.withState(func() {
		if !p.dead {
			p.sim.network.setPeer(p.slot, &peer{p.host, p.lockServer.Connect})
		}
	})
}

// setPeer has a lock server be reached by its address.
func (n *network) setPeer(slot int, to *peer) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.peers[lockServerAddress(slot)] = to
}

// removePeer has no more streams come to a lock server.
func (n *network) removePeer(slot int, h *host) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if p := n.peers[lockServerAddress(slot)]; p != nil && p.host == h {
		delete(n.peers, lockServerAddress(slot))
	}
}

// stopServing ends the lock server. It blocks until no client believes in a lease.
func (p *process) stopServing() {
	for range 30 {
		err := p.lockServer.Close()
		if err == nil {
			break
		}
		p.sim.record("%s: %v", p.name, err)
	}
	p.sim.network.removePeer(p.slot, p.host)
	p.host.endLinks(func(*link) bool { return true })
}

// promised returns for how long clients may rely on a session that the process has lost. It does not
// close the session before.
func (p *process) promised() time.Duration {
	if p.lockServer == nil {
		return 0
	}
	return p.sim.plan.lease + p.sim.plan.lease/50
}

// maxDelay returns how long a message may take to ZooKeeper, or back.
func (p *process) maxDelay() time.Duration {
	d := p.host.maxDelay
	if p.isClient {
		d += 10 * nearDelay // a lock server is near ZooKeeper
	}
	return d
}

// endDelay returns how long it may take until a lock hears that a grant of the process has ended.
func (p *process) endDelay() time.Duration {
	if !p.isClient {
		return 0
	}
	return p.maxDelay() + 20*time.Millisecond
}

// holder names what has grants in common: the session of a lock server has those of its clients.
func (p *process) holder(session int64) string {
	if p.sim.plan.lockServers == 0 {
		return p.name
	}
	return fmt.Sprintf("%x", session)
}

// markClients notes that a fault of a lock server may have an effect on its clients.
func (p *process) markClients(d time.Duration) {
	if p.slot >= p.sim.plan.lockServers {
		return
	}
	until := p.sim.now() + d + p.sim.plan.streamSettleTime()
	for _, q := range p.sim.slots {
		if q != nil && q.isClient {
			q.affectedUntil, q.delayedUntil = max(q.affectedUntil, until), max(q.delayedUntil, until)
		}
	}
}
