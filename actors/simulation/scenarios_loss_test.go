package simulation

import "time"

// Scenarios: losses, and requests after them.

// loseSessionByClock has a process lose the session of a mutex that it holds, by its own clock, and
// connect again at once. Then this process or another one requests the mutex. The request must wait
// until the work under the lost grant ends.
func (sim *simulation) loseSessionByClock(e entry) {
	const path = root + "/m0"
	p, q, r := sim.slots[e.slot], sim.slots[(e.slot+1)%len(sim.slots)], e.rand()
	if p == nil || q == nil || p == q || !p.isUp() || !q.isUp() || len(sim.requests) > 0 {
		return
	}
	holder, session := sim.acquireAt(p, r, path, "op plain"), p.session
	holder.holdTime = 4 * sim.plan.sessionTimeout
	sim.after(8*p.host.maxDelay, func() {
		sim.acquireAt(pick(r, []*process{p, q}), r, path, "op plain")
	})
	sim.after(8*p.host.maxDelay+8*q.host.maxDelay, func() {
		sim.lastFault = sim.now()
		p.markAffected(3*sim.plan.sessionTimeout + 3*time.Second)
		over := false
		if r.IntN(2) == 0 {
			p.host.block(true)
		} else { // the last answers are late
			p.host.setExtraAnswerDelay(sim.plan.sessionTimeout * 3 / 10)
			sim.after(sim.plan.sessionTimeout, func() {
				if !over {
					p.host.muteRequests()
				}
			})
		}
		sim.undoAfter(3*sim.plan.sessionTimeout, func() {
			over = true
			p.host.setExtraAnswerDelay(0)
			p.unblock()
		})
		var connect func()
		connect = func() {
			if _, lost := p.lostSessions[session]; lost || over {
				p.host.setExtraAnswerDelay(0)
				p.unblock()
			} else {
				sim.after(10*time.Millisecond, connect)
			}
		}
		connect()
	})
}

// freezePastDeadline freezes the actors of a process for longer than its connections are blocked.
// The deadline of its session may pass, and the server may answer before the actors continue.
func (sim *simulation) freezePastDeadline(p *process, span time.Duration) {
	if p.components == nil {
		return
	}
	silence := sim.plan.sessionTimeout*6/10 + span/5
	p.markAffected(silence + sim.plan.sessionTimeout + 3*time.Second)
	p.host.block(true)
	p.frozen = true
	p.components.freeze()
	sim.undoAfter(silence, p.unblock)
	sim.undoAfter(silence+sim.plan.sessionTimeout/10, func() {
		p.frozen = false
		p.components.unfreeze()
	})
}

// reacquireAfterLoss has an owner request a lock that it has lost and not released. The request
// must fail at once.
func (sim *simulation) reacquireAfterLoss(e entry) {
	p, r := sim.slots[e.slot], e.rand()
	if p == nil || !p.isUp() || len(sim.requests) > 3 {
		return
	}
	paths := []string{root + "/m0", root + "/m1", root + "/rw"}
	old := sim.acquireAt(p, r, pick(r, paths), "op owner")
	old.holdTime, old.releasesOnRevoke = 8*time.Second, false
	old.onGranted = func() {
		sim.after(old.holdTime/4, func() {
			sim.lastFault = sim.now()
			sim.operator.do(func() { sim.operator.deleteNode(old.grant.Nodes()[0]) })
		})
	}
	old.onLost = func() {
		again := sim.newRequest(p, r)
		again.uses, again.owner = old.uses, old.owner
		again.send("op owner", old.lock)
		sim.after(time.Second, func() {
			if !isDone(again.future.Done()) && old.stage == stageHeld {
				sim.fail(sim.now(), "%v still waits, though its owner has lost the lock by %v", again, old)
			}
		})
	}
}

// listParticipants has a process request a mutex several times within moments, near the end of its
// numbers, so that one transaction creates most of the nodes. The holders list the participants.
func (sim *simulation) listParticipants(e entry) {
	const path = root + "/m0"
	p, r := sim.slots[e.slot], e.rand()
	if p == nil || !p.isUp() || len(sim.requests) > 0 {
		return
	}
	acquire := func() {
		one := sim.acquireAt(p, r, path, "op plain")
		one.holdTime = 300 * time.Millisecond
		one.onGranted = func() { sim.after(12*p.host.maxDelay, func() { one.queryParticipants(5 * time.Second) }) }
	}
	acquire()
	sim.after(10*p.host.maxDelay, func() { // the directory exists now
		sim.advanceCounter(path, r)
		sim.lastFault = sim.now()
		acquire()
		for range 4 {
			sim.after(time.Microsecond, acquire)
		}
	})
}
