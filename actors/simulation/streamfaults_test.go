package simulation

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"
)

// serversAffected reports whether a fault may have an effect on a lock server.
func (sim *simulation) serversAffected() bool {
	for _, p := range sim.slots[:sim.plan.lockServers] {
		if p == nil || !p.isUp() || p.isAffected() {
			return true
		}
	}
	return false
}

// affectedBy returns the process that has the fault which was drawn for p, nil if none has: a client
// has no session with ZooKeeper.
func (sim *simulation) affectedBy(fault string, p *process) *process {
	if !p.isClient || !slices.Contains([]string{"expire", "request", "stale", "follower", "generation", "session node", "overdue"}, fault) {
		return p
	}
	for _, s := range sim.slots[:sim.plan.lockServers] {
		if s != nil && s.isUp() && !s.frozen && s.session == p.session {
			return s
		}
	}
	return nil
}

// injectStreamFault injects a fault of a stream or of a lock server.
func (sim *simulation) injectStreamFault(fault string, p *process, r *rand.Rand, span time.Duration) {
	switch fault {
	case "mute", "deaf": // one way is silent; then the connections break, or go on
		p.markAffected(span + 3*time.Second)
		p.host.silence(fault)
		breaks := r.IntN(2) == 0
		sim.undoAfter(span, func() {
			if breaks {
				p.host.cut()
			}
			p.unblock()
		})
	case "blink":
		if !sim.plan.keepsLeases {
			p.markAffected(3 * time.Second)
		}
		sim.blink(p, r)
	case "link":
		sim.breakLinks(p, r)
	case "overdue answers":
		sim.delayAnswersToTheEnd(p, r)
	case "drain":
		if p.lockServer == nil {
			return
		}
		p.markClients(span + 3*time.Second)
		next := len(sim.incarnations)
		sim.drain(p, span/4)
		sim.undoAfter(span, func() { sim.startProcess(p.slot, next) })
	}
}

// silence has nothing be delivered in one direction.
func (h *host) silence(direction string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if direction == "mute" {
		h.mute = true
	} else {
		h.deaf = true
	}
}

// blink has one way of a client be silent for a moment. Then its connections break, and what is in
// flight is lost. The client keeps its lease.
func (sim *simulation) blink(p *process, r *rand.Rand) {
	p.host.silence(pick(r, []string{"deaf", "deaf", "mute"}))
	sim.undoAfter(time.Duration(1+r.Int64N(int64(300*time.Millisecond))), func() {
		p.host.cut()
		p.unblock()
	})
}

// delayAnswersToTheEnd has the answers to a client be late. Then nothing is delivered to its server any
// more, until its lease is over.
func (sim *simulation) delayAnswersToTheEnd(p *process, r *rand.Rand) {
	if !p.isClient {
		return
	}
	late, end := sim.plan.lease/5+time.Duration(r.Int64N(int64(sim.plan.lease/5))), 3*sim.plan.lease
	p.markAffected(end + 3*time.Second)
	p.host.setExtraAnswerDelay(late)
	over := false
	sim.after(sim.plan.lease+time.Duration(r.Int64N(int64(sim.plan.lease/2))), func() {
		if !over {
			p.host.silence("mute")
		}
	})
	sim.undoAfter(end, func() {
		over = true
		p.host.setExtraAnswerDelay(0)
		p.unblock()
	})
}

// breakLinks has the links of a client be half open: nothing is delivered, and neither end hears of
// that. The keepalives of gRPC end such a connection after 15 s at most.
func (sim *simulation) breakLinks(p *process, r *rand.Rand) {
	if !p.isClient {
		return
	}
	if !sim.plan.keepsLeases {
		p.markAffected(20 * time.Second)
	}
	broken := p.links.breakAll()
	sim.undoAfter(10*time.Second+time.Duration(r.Int64N(int64(5*time.Second))), func() {
		p.host.endLinks(func(l *link) bool { return slices.Contains(broken, l) })
	})
}

// breakAll has all links be half open, and returns them.
func (d *streamDialer) breakAll() (broken []*link) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.links {
		l.dead.Store(true)
		broken = append(broken, l)
	}
	return broken
}

// drain has a lock server end as an operator does: it drains, and then it closes. No client may
// believe in a lease for longer than the grace and a lease.
func (sim *simulation) drain(p *process, grace time.Duration) {
	p.dead = true
	for _, r := range sim.requests {
		if r.p == p {
			r.endWork()
		}
	}
	limit := grace + sim.plan.lease + sim.plan.lease/50 + drainSlack
	sim.record("%s drains for %v", p.name, grace)
	callAsync(sim, limit, func(ctx context.Context) (any, error) { return nil, p.lockServer.Drain(ctx, grace) }, func(_ any, err error) {
		sim.record("%s has drained: %v", p.name, err)
		if err != nil && !sim.stopped {
			sim.fail(sim.now(), "%s has not drained within %v: %v", p.name, limit, err)
		}
		p.close()
	})
}

// drainSlack is how much longer a drain may take, until ZooKeeper has answered.
const drainSlack = 5 * time.Minute

// cutFromZooKeeper breaks the connections to ZooKeeper.
func (h *host) cutFromZooKeeper() {
	h.mu.Lock()
	connections := slices.Clone(h.connections)
	h.mu.Unlock()
	for _, c := range connections {
		if c.stream == nil {
			c.cut()
		}
	}
}

// acquireUnreadable requests a lock for an owner whose name is no text. The request fails alone.
func (sim *simulation) acquireUnreadable(e entry) {
	p := sim.slots[e.slot]
	if p == nil || !p.isUp() || p.frozen || len(sim.requests) > maxOpenRequests {
		return
	}
	r := sim.newRequest(p, e.rand())
	r.unreadable = true
	acc := p.memberLock(r.rand)
	r.uses, r.owner = []use{acc.use}, p.name+"/caf\xe9"
	r.send("op unreadable owner", acc.Member.(lockHandle))
}

// watchQueue has a process observe the queue of a lock for a time.
func (sim *simulation) watchQueue(e entry) {
	p, r := sim.slots[e.slot], e.rand()
	if p == nil || !p.isUp() || p.frozen || p.observes { // several would ask again in a random order
		return
	}
	p.observes = true
	path := p.memberLock(r).Path()
	callAsync(sim, time.Duration(1+r.Int64N(int64(20*time.Second))), func(ctx context.Context) (n int, err error) {
		for range p.locks.Observe(ctx, path) {
			n++
		}
		return n, nil
	}, func(n int, _ error) {
		p.observes = false
		sim.record("%s has seen %d states of %s", p.name, n, path)
	})
}
