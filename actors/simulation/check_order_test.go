package simulation

import (
	"slices"
	"time"
)

// Checks of the order of grants, and of the refusals of Try requests.

// checkOrder checks that a request is not granted before an earlier request of its process for the
// same lock.
func (sim *simulation) checkOrder(now time.Duration, r *programRequest) {
	if r.named || r.multi || sim.generationRaises > 0 || sim.nearOverflow || now < sim.deniedUntil || r.p.isAffected() {
		return
	}
	for _, o := range sim.requests {
		if o.stage == stageWaiting && o.p == r.p && o.path == r.path && o.requestedAt < r.requestedAt && !o.named && !o.cancelled && !isDone(o.future.Done()) &&
			o.requestedAt > max(r.p.affectedUntil, sim.lastFault+time.Second) && (sim.specs[r.uses[0].path].permits || sim.conflicts(o, r)) {
			sim.fail(now, "%v is granted before %v", r, o)
		}
	}
}

func (sim *simulation) conflicts(a, b *programRequest) bool {
	for i := range a.uses {
		s := sim.specs[a.uses[i].path]
		if s.conflict(s.key(a.uses[i]), s.key(b.uses[i])) {
			return true
		}
	}
	return false
}

// nodeHold is a node hold of a local queue. The czxid of its node identifies it.
type nodeHold struct {
	path    string
	process *process
	czxid   int64
}

// nodeHoldGrants counts the grants of a node hold.
type nodeHoldGrants struct {
	start      time.Duration
	lateGrants uint32 // grants since another process has waited for contentionNoticeTime
}

// contentionNoticeTime is how long a contender of another process may wait until a local queue
// knows of it.
const contentionNoticeTime = 2 * time.Second

// checkBudget checks that a local queue leaves the node to others once its budget is used up.
func (sim *simulation) checkBudget(now time.Duration, r *programRequest) {
	if r.path != root+"/local" && r.path != root+"/rwlocal" || sim.plan.lockServers > 0 || r.named || sim.unaffectedSince == 0 {
		return
	}
	key := nodeHold{r.path, r.p, r.grant.Token().Czxid}
	hold := sim.nodeHolds[key]
	if hold == nil {
		hold = &nodeHoldGrants{start: now}
		sim.nodeHolds[key] = hold
	}
	waits := func(o *programRequest) bool {
		return o.stage == stageWaiting && o.p != r.p && o.path == r.path && !o.named && !o.try && !o.cancelled && sim.conflicts(o, r) && o.requestedAt+contentionNoticeTime < now
	}
	if now < max(hold.start, sim.unaffectedSince)+contentionNoticeTime || !slices.ContainsFunc(sim.requests, waits) {
		return
	}
	if hold.lateGrants++; hold.lateGrants > r.p.budget {
		sim.fail(now, "%v: grant %d of its local queue since another process waits, and the budget is %d", r, hold.lateGrants, r.p.budget)
	}
}

// requestEnd is the last end of a request for a lock. request is nil for actors and multi-locks.
type requestEnd struct {
	request      *programRequest
	at, previous time.Duration // of the end, and of the latest end before
}

// checkHandOff checks that the next holder of a mutex is granted as soon as it learns that its
// predecessor has left, without another request. A contender watches its predecessor's node, the
// one before that, and its own. These watches take up to four round trips after the request: three
// until the node exists, if the directory must be created, and one for the watches. After the
// departure of the one before its predecessor, the contender lists the directory.
func (sim *simulation) checkHandOff(now time.Duration, r *programRequest) {
	if sim.plan.lockServers > 0 { // each message may have two ways to go
		return
	}
	last := sim.lastEnds[r.path]
	queuedBy := last.at - 8*r.p.host.maxDelay - 50*time.Millisecond
	if r.path != root+"/m0" && r.path != root+"/m1" || r.named || r.try || r.multi || sim.nearOverflow || sim.usesFutures || len(sim.foreignClients) > 0 ||
		sim.unaffectedSince == 0 || sim.unaffectedSince > queuedBy || last.request == nil || last.request.p == r.p || last.request.named || last.request.requestedAt > queuedBy || last.previous > queuedBy ||
		r.requestedAt > queuedBy || last.request.requestedAt > r.requestedAt || last.at < r.requestedAt || last.request.stage != stageDone || last.request.grant == nil || last.request.holdAtMost > 0 {
		return
	}
	usesPath := func(uses []use) bool {
		return slices.ContainsFunc(uses, func(u use) bool { return u.path == r.path })
	}
	for _, o := range sim.requests {
		// A request that was made later may have its node ahead, if it was made at nearly the same
		// time or if there was no session.
		if o != r && usesPath(o.uses) && (o.requestedAt <= r.requestedAt || o.multi || o.stage != stageWaiting) {
			return
		}
	}
	for name, until := range sim.requestEnded[r.path] {
		if name != last.request.p.name && until > queuedBy {
			return
		}
	}
	if slices.ContainsFunc(sim.actorRequests, func(a *actorRequest) bool { return usesPath(a.uses) }) {
		return
	}
	if late := now - last.at - r.p.host.maxDelay; late > 500*time.Microsecond {
		sim.fail(now, "%v is granted %v later than it can have learned that its predecessor has left", r, late)
	}
}

// noteRequestEnd notes until when the request has kept its locks from others.
func (sim *simulation) noteRequestEnd(r *programRequest) {
	until := sim.now()
	if r.stage == stageReleasing {
		until = r.stageSince
	}
	sim.noteUse(r.p, r.uses, until)
	if !r.multi {
		last := sim.lastEnds[r.path]
		last.request = r
		if r.cancelled { // its node may be made after its end, and stand between two holders until it is deleted
			last.at += 8 * r.p.host.maxDelay
		}
		sim.lastEnds[r.path] = last
	}
	if r.multi {
		for _, u := range r.uses {
			sim.multiLockEnded[r.p.name+u.path] = sim.now()
		}
	}
}

func (sim *simulation) noteUse(p *process, uses []use, until time.Duration) {
	for _, u := range uses {
		if sim.requestEnded[u.path] == nil {
			sim.requestEnded[u.path] = map[string]time.Duration{}
		}
		sim.requestEnded[u.path][p.name] = max(sim.requestEnded[u.path][p.name], until)
		last := sim.lastEnds[u.path] // of a dropped request that may be later than ends that follow
		sim.lastEnds[u.path] = requestEnd{at: max(until, sim.now()), previous: max(last.at, last.previous)}
	}
}

// nodeDeletionTime is how long after the end of a request its nodes may still exist.
const nodeDeletionTime = 500 * time.Millisecond

// checkTry checks that a refused Try was made while another request had the lock. Requests of other
// processes count until nodeDeletionTime after their end, and requests of its own process until
// their release.
func (r *programRequest) checkTry(now time.Duration) {
	sim := r.sim
	if !r.isQueueLock() || r.named || r.beforeRelease || sim.nearOverflow || sim.usesFutures || sim.unaffectedSince == 0 || r.requestedAt < sim.unaffectedSince+contentionNoticeTime ||
		len(sim.foreignClients) > 0 && (r.path == root+"/m0" || r.path == root+"/rw") {
		return
	}
	usesPath := func(uses []use) bool {
		return slices.ContainsFunc(uses, func(u use) bool { return u.path == r.path })
	}
	for _, o := range sim.requests {
		if o != r && usesPath(o.uses) && (o.multi || o.p != r.p || o.releaseFuture == nil || o.stageSince > r.requestedAt) {
			return
		}
	}
	if slices.ContainsFunc(sim.actorRequests, func(a *actorRequest) bool { return usesPath(a.uses) }) || sim.sinceMultiLock(r.p, r.path) < recentTime {
		return
	}
	for name, until := range sim.requestEnded[r.path] {
		if name == r.p.name && until > r.requestedAt || name != r.p.name && until+nodeDeletionTime > r.requestedAt {
			return
		}
	}
	sim.fail(now, "%v was refused, though no request had the lock", r)
}
