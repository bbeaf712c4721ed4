package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/actorlock/actorlock/zkbridge"
	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// faults are the faults of a drawn plan, which has a random subset of them.
var faults = []string{"cut", "slow", "late", "hole", "expire", "freeze", "kill",
	"close", "actor stops", "server away", "request", "stale", "delete", "write", "rights", "sequence", "generation",
	"follower", "drop", "count", "revoke", "session node"}

// scenarios are the operations of more than one request.
var scenarios = map[string]func(*simulation, entry){
	"op actor": (*simulation).acquireByActor, "op future": (*simulation).acquireByFuture, "op missing": (*simulation).acquireInMissingDirectory,
	"op readers": (*simulation).tryAfterReaders, "op four": (*simulation).acquireFourTimes, "op lost": (*simulation).acquireAfterLostReply,
	"op list": (*simulation).acquireDuringList, "op overdue": (*simulation).loseSessionByClock, "op owner lost": (*simulation).reacquireAfterLoss,
	"op observe": (*simulation).listParticipants, "op unreadable": (*simulation).acquireUnreadable, "op watch": (*simulation).watchQueue,
	"op group lock": (*simulation).lockPartition, "op group leave": (*simulation).leaveGroup, "op group resign": (*simulation).resignPartition,
	"op group return": (*simulation).returnFromTerm, "op group ask": (*simulation).askLeaders, "op group see": (*simulation).seeGroup,
}

// perform executes an entry.
func (sim *simulation) perform(e entry) {
	if scenario := scenarios[e.name]; scenario != nil {
		scenario(sim, e)
		return
	}
	if !e.isFault() {
		sim.acquire(e)
		return
	}
	p, r := sim.slots[e.slot], e.rand()
	if p == nil || !p.isUp() || p.frozen || sim.comesTooSoon(e) {
		return
	}
	sim.record("%s: %s", p.name, e.name)
	sim.lastFault = sim.now()
	sim.injectFault(e.name, p, r)
}

// minPauses says how many session timeouts must be between two faults of a kind at one process.
// Without it there would be nothing but the fault.
var minPauses = map[string]time.Duration{"slow": 3, "late": 5, "hole": 3, "freeze": 3, "stale": 2, "kill": 1, "close": 1, "sleep": 1, "link": 3, "drain": 1, "mute": 1, "deaf": 1, "overdue answers": 1}

// comesTooSoon reports whether a fault must be left out, because another one of its kind came a
// short time before.
func (sim *simulation) comesTooSoon(e entry) bool {
	key, pause := fmt.Sprint(e.name, e.slot), minPauses[e.name]*sim.plan.sessionTimeout
	switch e.name {
	case "server away":
		key, pause = e.name, time.Minute+2*sim.plan.sessionTimeout
	case "delete", "write", "rights":
		return sim.operator.openTasks.Load() > 10
	}
	if pause == 0 {
		return false
	}
	if since, was := sim.lastFaultOf[key]; was && sim.now() < since+pause {
		return true
	}
	sim.lastFaultOf[key] = sim.now()
	return false
}

func (sim *simulation) injectFault(fault string, p *process, r *rand.Rand) {
	span := time.Duration(r.Int64N(int64(2 * sim.plan.sessionTimeout)))
	switch r.IntN(3) {
	case 0:
		span /= 10
	case 1: // about as long as it takes to lose the session
		span = sim.plan.sessionTimeout/2 + span*3/10
	}
	if p = sim.affectedBy(fault, p); p == nil {
		return
	}
	switch fault {
	case "cut":
		p.markDisconnected(3 * time.Second)
		p.host.cut()
	case "slow":
		p.markAffected(span + time.Second)
		p.host.setExtraDelay(time.Duration(r.Int64N(int64(sim.plan.sessionTimeout / 2))))
		sim.undoAfter(span, func() { p.host.setExtraDelay(0) })
	case "late": // answers are late, and later the server receives nothing more
		wait := time.Duration(r.Int64N(int64(sim.plan.sessionTimeout)))
		p.markAffected(wait + 2*sim.plan.sessionTimeout + 3*time.Second)
		p.host.setExtraAnswerDelay(sim.plan.sessionTimeout/5 + time.Duration(r.Int64N(int64(sim.plan.sessionTimeout/3))))
		over := false
		sim.after(wait, func() {
			if !over {
				p.host.muteRequests()
			}
		})
		sim.undoAfter(wait+2*sim.plan.sessionTimeout, func() {
			over = true
			p.host.setExtraAnswerDelay(0)
			p.unblock()
		})
	case "hole":
		p.markAffected(span + 3*time.Second)
		p.host.block(true)
		sim.undoAfter(span, func() { p.unblock() })
	case "expire":
		p.markDisconnected(3 * time.Second)
		sim.expireSession(p)
	case "freeze":
		p.markAffected(span + 3*time.Second)
		p.host.block(true)
		p.frozen = true
		if p.components != nil {
			p.components.freeze()
		}
		sim.undoAfter(span, func() {
			p.frozen = false
			if p.components != nil {
				p.components.unfreeze()
			}
			p.unblock()
		})
	case "sleep":
		sim.sleep(p, span, r)
	case "kill":
		sim.kill(p)
		if r.IntN(2) == 0 {
			p.host.cut() // the operating system closes the connections
		}
		p.markClients(span + 3*time.Second)
		next := len(sim.incarnations)
		sim.undoAfter(span, func() { sim.startProcess(p.slot, next) })
	case "mute", "deaf", "blink", "link", "drain", "overdue answers":
		sim.injectStreamFault(fault, p, r, span)
	default:
		sim.injectServerFault(fault, p, r, span)
	}
}

// requestFaults are the faults that the server injects into a request.
var requestFaults = []embedded.Action{embedded.CutBefore, embedded.DropReply, embedded.CutAfter, embedded.DelayRequest,
	embedded.DelayReply, embedded.BlackHole, embedded.BlackHoleAfter}

// injectServerFault injects a fault of the server, of an operator or of another program.
func (sim *simulation) injectServerFault(fault string, p *process, r *rand.Rand, span time.Duration) {
	directory := sim.directoryInUse(r)
	switch fault {
	case "close":
		p.markClients(span + 3*time.Second)
		p.close()
		next := len(sim.incarnations)
		sim.undoAfter(span, func() { sim.startProcess(p.slot, next) })
	case "server away":
		span = time.Second + time.Duration(r.Int64N(int64(59*time.Second)))
		if sim.network.away.Load() {
			return
		}
		for _, p := range sim.incarnations {
			p.markAffected(span + 2*sim.plan.sessionTimeout)
		}
		sim.stopServer(r.IntN(2) == 0)
		sim.undoAfter(span, sim.startServer)
	case "request":
		p.markAffected(3*time.Second + sim.plan.sessionTimeout)
		f := embedded.Fault{Op: pick(r, []embedded.Op{embedded.OpAny, embedded.OpMulti, embedded.OpAll, embedded.OpGetChildren2}), Session: p.session,
			Nth: 1 + r.IntN(5), Times: 1 + r.IntN(2), Action: pick(r, requestFaults), Delay: time.Duration(r.Int64N(int64(sim.plan.sessionTimeout)))}
		sim.record("%s: %v of %v", p.name, f.Action, f.Op)
		i := sim.server.Inject(f)
		sim.undoAfter(span, func() {
			i.Remove()
			p.markAffected(3*time.Second + sim.plan.sessionTimeout)
			p.host.cut() // the fault may have left a black hole
		})
	case "actor stops":
		for _, a := range sim.actorRequests {
			if a.p == p && a.name == "" && r.IntN(2) == 0 {
				a.stop()
			}
		}
	case "stale":
		p.markAffected(span + 3*time.Second)
		session := p.session
		sim.server.Freeze(session)
		sim.undoAfter(span, func() { sim.server.Thaw(session) })
	case "follower":
		sim.lagSessions(p, r, span)
	case "lag":
		sim.lagServer(r, span)
	case "member":
		sim.stopEnsembleServer(r, span)
	case "restore":
		sim.loseHistory(r)
	case "replace":
		p.replaceNext, p.hideReplaced = true, false
	case "replace and hide":
		p.replaceNext, p.hideReplaced = true, true
	case "lease":
		sim.operator.do(func() { sim.operator.deleteOne(root+"/s3/leases", r, func(string) bool { return true }) })
	case "turn":
		sim.raiseAndDelete(p, r)
	case "still":
		sim.freezePastDeadline(p, span)
	case "unresolved", "held":
		sim.delayCreate(p, fault == "unresolved")
	case "drop":
		sim.dropGrants(p, r, span)
	case "count":
		sim.changeCount(p, r)
	case "revoke":
		sim.revoke(p, r)
	case "session node":
		sim.operator.do(func() {
			sim.operator.deleteOne(zkbridge.GenerationDirectory, r, func(name string) bool { return strings.HasPrefix(name, "session-") })
		})
	case "delete":
		sim.operator.do(func() { sim.operator.delete(directory, r) })
	case "write":
		sim.operator.do(func() { sim.operator.write(directory, r) })
	case "rights":
		sim.operator.do(func() { sim.operator.deny(directory, r, span) })
	case "sequence":
		sim.advanceCounter(directory, r)
	case "generation":
		sim.raiseGeneration(p)
	}
}

// raiseGeneration has a process raise the generation, which ends all sessions.
func (sim *simulation) raiseGeneration(p *process) {
	sim.generationRaises++
	sim.markAllDisconnected()
	go func() {
		g, err := p.locks.RaiseGeneration(context.Background())
		sim.record("%s raises the generation to %d: %v", p.name, g, err)
		sim.withState(func() {
			sim.generationRaises--
			sim.lastFault = sim.now()
			sim.markAllDisconnected()
		})
	}()
}

func (sim *simulation) markAllDisconnected() {
	for _, p := range sim.slots {
		if p != nil {
			p.markDisconnected(3 * time.Second)
		}
	}
}

// stopServer has the server be away: connections break, and it accepts no new ones. Sessions expire
// meanwhile, unless the server restarts: then their timeouts begin anew.
func (sim *simulation) stopServer(restarts bool) {
	sim.network.away.Store(true)
	for i, h := range sim.network.hosts { // at times of their own, because each client sets timers then
		sim.after(time.Duration(i)*time.Microsecond, h.cutFromZooKeeper)
	}
	if !restarts {
		sim.server.Pause()
		return
	}
	sim.record("the server ends, to be started again")
	sim.after(10*time.Millisecond, func() { // when the server has no connections
		if sim.network.away.Load() {
			sim.server.Halt()
		}
	})
}

func (sim *simulation) startServer() {
	sim.network.away.Store(false)
	sim.server.Resume()
	sim.server.Restart()
}

// unblock lets the connections of a process continue.
func (p *process) unblock() {
	if !p.dead {
		p.host.block(false)
	}
}

// lagSessions has the server show an old state to half of the processes. They catch up now and
// then, and when the server answers a write of theirs.
func (sim *simulation) lagSessions(p *process, r *rand.Rand, span time.Duration) {
	followers := map[*process]int64{}
	for _, q := range sim.slots {
		if q != nil && q.isUp() && q.slot%2 == p.slot%2 && q.session != 0 {
			q.markAffected(span + 3*time.Second)
			followers[q] = q.session
		}
	}
	each := func(do func(session int64)) {
		for _, q := range sim.slots {
			if session, ok := followers[q]; ok {
				do(session)
			}
		}
	}
	over := false
	var lag func()
	lag = func() {
		if !over {
			each(sim.server.Thaw)
			each(sim.server.Freeze)
			sim.after(time.Duration(1+r.Int64N(int64(2*time.Second))), lag)
		}
	}
	lag()
	sim.undoAfter(span, func() {
		over = true
		each(sim.server.Thaw)
	})
}

// undoAfter calls undo after a time, or when all faults end.
func (sim *simulation) undoAfter(d time.Duration, undo func()) {
	over := false
	sim.activeFaults++
	once := func() {
		if !over {
			over = true
			sim.activeFaults--
			sim.lastFault = sim.now()
			undo()
		}
	}
	sim.undoFaults = append(sim.undoFaults, once)
	sim.after(d, once)
}

// endFaults ends all faults.
func (sim *simulation) endFaults() {
	sim.faultsOver = true
	sim.stopCandidates()
	sim.record("all faults end")
	for len(sim.undoFaults) > 0 {
		undo := sim.undoFaults
		sim.undoFaults = nil
		for _, f := range undo {
			f()
		}
	}
}

// expireSession has the server end the session of a process, whose program believes in its grants
// until it learns of that.
func (sim *simulation) expireSession(p *process) {
	if p.session == 0 {
		return
	}
	sim.expiredAt[p.session] = sim.now()
	sim.invalidate(sim.now(), ofSession(p.session))
	sim.server.Expire(p.session)
}

// kill ends a process as kill -9 does: no more messages are sent or received.
func (sim *simulation) kill(p *process) {
	p.host.block(true)
	p.host.stopDialing()
	for _, a := range sim.actorRequests {
		if a.p == p {
			a.kill()
		}
	}
	for _, r := range sim.requests {
		if r.p == p {
			r.kill()
		}
	}
	p.close()
}
