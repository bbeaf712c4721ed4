package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/actorlock/actorlock/actors"
)

// maxFreeTime is how long a lock may have a waiter and no holder while no fault has an effect.
// Lock-delays and local queues take some of it.
const maxFreeTime = 8 * time.Second

// drainTimeout is how long it may take after the last fault until all requests have ended.
const drainTimeout = 5 * time.Minute

// isUnaffected reports whether no fault has an effect any more, not even by a session that must
// still expire.
func (sim *simulation) isUnaffected(now time.Duration) bool {
	if sim.activeFaults > 0 || sim.operator.openTasks.Load() > 0 || sim.lastFault > 0 && now < sim.lastFault+2*sim.plan.sessionTimeout+10*time.Second+sim.plan.streamSettleTime() {
		return false
	}
	for _, p := range sim.slots {
		if p == nil || !p.isUp() || p.isAffected() {
			return false
		}
	}
	return now > 2*sim.plan.sessionTimeout
}

// describePending lists the requests and calls that have not ended.
func (sim *simulation) describePending() string {
	var all []string
	for _, r := range sim.requests {
		all = append(all, r.String())
	}
	for _, a := range sim.actorRequests {
		all = append(all, a.String())
	}
	if sim.pendingCalls > 0 {
		all = append(all, fmt.Sprint(sim.pendingCalls, " calls"))
	}
	if sim.operator.openTasks.Load() > 0 || !sim.foreignClientsDone() || !sim.candidatesDone() || !sim.membersDone() {
		all = append(all, "operator, another library, a candidate or a member of a group")
	}
	return strings.Join(all, "; ")
}

// checkLiveness runs the checks that need to run only once a second. It fails for requests that
// wait for a lock without a holder and without a grant since the last time, unless a multi-lock
// connects that lock with a held one.
func (sim *simulation) checkLiveness(now time.Duration) {
	if now < sim.lastLivenessCheck+time.Second {
		return
	}
	last := sim.lastLivenessCheck
	sim.lastLivenessCheck = now
	unaffected := sim.isUnaffected(now)
	if !unaffected {
		sim.unaffectedSince = 0
	} else if sim.unaffectedSince == 0 {
		sim.unaffectedSince = now
	}
	sim.checkLostSessionsClosed(now)
	sim.checkCounts()
	sim.checkElection(now, unaffected)
	sim.checkGroup(now, unaffected)
	for _, r := range sim.requests {
		if !unaffected || r.stage != stageWaiting || sim.isInUse(r.uses, last) {
			r.freeSince = 0
			continue
		}
		if r.freeSince == 0 {
			r.freeSince = now
		}
		if now > r.freeSince+maxFreeTime {
			sim.fail(now, "%v: the lock has no holder since %v", r, r.freeSince)
		}
	}
}

// isInUse reports whether a process holds or releases one of the locks, or a lock that is connected
// with them by open requests, or was granted one of them after a time. It also returns true for
// locks of other libraries' clients, whose queues it does not know.
func (sim *simulation) isInUse(uses []use, after time.Duration) bool {
	paths := map[string]bool{}
	for _, u := range uses {
		paths[u.path] = true
	}
	usesPaths := func(uses []use) bool {
		return slices.ContainsFunc(uses, func(u use) bool { return paths[u.path] })
	}
	for added := true; added; {
		added = false
		for _, r := range sim.requests {
			if !usesPaths(r.uses) {
				continue
			}
			if r.stage != stageWaiting || r.unread && isDone(r.future.Done()) {
				return true
			}
			for _, u := range r.uses {
				added = added || !paths[u.path]
				paths[u.path] = true
			}
		}
	}
	for path := range paths {
		if sim.lastGrant[path] > after {
			return true
		}
	}
	if len(sim.foreignClients) > 0 && (paths[root+"/m0"] || paths[root+"/rw"]) {
		return true
	}
	return slices.ContainsFunc(sim.actorRequests, func(a *actorRequest) bool { return usesPaths(a.uses) && a.stage != stageWaiting }) ||
		slices.ContainsFunc(sim.held, func(h *heldGrant) bool { return usesPaths(h.uses) })
}

// register is a number that a lock protects. It checks tokens.
type register struct {
	newest actors.Token
	value  int
}

// useRegisters has the holder of exclusive locks read the registers that they protect, and write
// them after a time, perhaps after the grant has ended. A write either is refused, or no other
// token has written since the read.
func (r *programRequest) useRegisters() {
	if r.named {
		return // several grants of a named owner have one token
	}
	token := r.grant.Token()
	for _, u := range r.uses {
		s := r.sim.specs[u.path]
		if s.excludes != nil || s.maxCapacity > 0 || u.weight < s.capacity {
			continue
		}
		reg := r.sim.registers[u.path]
		if reg == nil {
			reg = &register{}
			r.sim.registers[u.path] = reg
		}
		if token.Compare(reg.newest) < 0 {
			continue
		}
		reg.newest = token
		read := reg.value
		delay := time.Duration(r.rand.ExpFloat64() * float64(100*time.Millisecond))
		if r.rand.IntN(10) == 0 {
			delay *= 50
		}
		r.sim.after(delay, func() {
			switch {
			case token.Compare(reg.newest) < 0: // the register refuses the write
			case reg.value != read:
				r.sim.fail(r.sim.now(), "%s: the write of %d by token %v overwrites one of another token", u.path, r.id, token)
			default:
				reg.value++
			}
		})
	}
}
