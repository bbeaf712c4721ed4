package localqueue

import (
	"slices"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// The decisions of a Queue.

// proceed does what is possible now: it grants, acquires and releases.
func (l *Queue) proceed() {
	for !l.waiting.empty() && l.serve(l.waiting.First()) || l.dropFirst() {
	}
	switch {
	case !l.waiting.empty() || !l.holders.empty():
	case l.hold.stage == creating || l.contended() || l.revoked():
		l.releaseNodes()
	case l.idle() && !l.timerRuns:
		l.startTimer()
	}
}

// serve tries to grant the first owner that waits. It reports whether something has changed, so that
// proceed looks again.
func (l *Queue) serve(b *localOwner) bool {
	switch {
	case l.hold.stage == unsent:
		l.hold = nodeHold{node: l.acquireNode(b.kind, b.data, b.onlyTries())}
		l.hold.first = l.hold.id
		return false
	case l.hold.stage == creating || l.blocked(b.kind):
		return false
	case l.mayGrant(b.kind):
		if !l.nodeReady(b.kind, b.data) {
			return false
		}
		l.grant(b)
		return true
	case !l.holders.empty():
		l.refuseTries()
		return false
	}
	l.releaseNodes() // and queue again
	return true
}

// blocked reports whether the holders keep an owner of a kind from holding beside them.
func (l *Queue) blocked(kind queue.Kind) bool {
	return l.holders.kinds.Count(l.rule.BlockedBy[kind]) > 0
}

// blockedLocally reports whether a new request would have to wait for owners of this process, or as
// long as one that waits for other processes.
func (l *Queue) blockedLocally(kind queue.Kind) bool {
	blockers := l.rule.BlockedBy[kind]
	return l.holders.kinds.Count(blockers) > 0 || l.waiting.kinds.Count(blockers) > 0 || l.hold.stage == creating && !l.hold.try
}

// mayGrant reports whether the node hold allows one more grant to a kind.
func (l *Queue) mayGrant(kind queue.Kind) bool {
	return l.suffices(kind) && l.stepsLeft(kind) && !l.budgetUsed()
}

// suffices reports whether the first node blocks, and was blocked by, at least the kinds that a
// node of the given kind would.
func (l *Queue) suffices(kind queue.Kind) bool {
	return l.rule.MayEnter(kind, l.hold.kind) && (!l.needsOwnNode(kind) || l.hold.second.stage != refused)
}

// needsOwnNode reports whether a kind holds by a node of its own, the second one.
func (l *Queue) needsOwnNode(kind queue.Kind) bool {
	return kind != l.hold.kind && l.rule.EntersFrom(kind).Has(l.hold.kind)
}

// nodeReady reports whether the node by which a kind holds is granted. If it is not asked for,
// nodeReady asks for it.
func (l *Queue) nodeReady(kind queue.Kind, data []byte) bool {
	if !l.needsOwnNode(kind) {
		return true
	}
	if l.hold.second.stage == unsent {
		l.hold.second = l.acquireNode(kind, data, false)
	}
	return l.hold.second.stage == held
}

// nodeFor returns the node by which a kind holds.
func (l *Queue) nodeFor(kind queue.Kind) *node {
	if l.needsOwnNode(kind) {
		return &l.hold.second
	}
	return &l.hold.node
}

// dropFirst releases the first node if only the second one is in use, others want the first,
// and no owner here is to have it soon. It reports whether it did.
func (l *Queue) dropFirst() bool {
	first, second := &l.hold.node, &l.hold.second
	if l.holders.kinds[second.kind] == 0 || second.stage != held || !first.contended && !first.revoked || !l.waiting.empty() && !l.budgetUsed() {
		return false
	}
	l.cancel(first)
	*first, *second = *second, node{}
	return true
}

// stepsLeft reports whether there is a step for a grant: one of its own, or one of earlier grants
// which do not block it.
func (l *Queue) stepsLeft(kind queue.Kind) bool {
	return l.hold.grants < mostGrants || !l.rule.BlockedBy[kind].Has(l.hold.lastKind)
}

// budgetUsed reports whether other processes wait and have waited for long enough, or another
// client asks for the lock.
func (l *Queue) budgetUsed() bool {
	return l.revoked() || l.contended() && (l.hold.timeUsed || l.hold.grants >= l.budget)
}

func (l *Queue) contended() bool { return l.hold.contended || l.hold.second.contended }

func (l *Queue) revoked() bool { return l.hold.revoked || l.hold.second.revoked }

// idle reports whether the node hold is granted, and no owner waits or holds.
func (l *Queue) idle() bool {
	return l.hold.stage == held && l.holders.empty() && l.waiting.empty()
}

// acquireNode asks for a node. It may be one of two: the places of their requests differ.
func (l *Queue) acquireNode(kind queue.Kind, data []byte, try bool) node {
	l.lastNumber++
	place := 1 + uint32(l.hold.id)%2
	r := &requests.Incoming{ID: requests.ID(l.lastNumber)<<32 | requests.ID(place), Kind: kind, Permits: 1, Try: try, NotifyContended: true, Data: data}
	if l.rule.Downgrades() {
		r.Owner = "the local queue"
	}
	l.Add(requests.Acquire, r.ID).Request = r
	return node{stage: creating, id: r.ID, kind: kind, try: try}
}

func (l *Queue) releaseNodes() {
	for _, p := range []*node{&l.hold.second, &l.hold.node} {
		if p.open() {
			l.cancel(p)
		}
	}
	l.hold = nodeHold{}
}

func (l *Queue) cancel(p *node) {
	l.Add(requests.Cancel, p.id)
}

// startTimer keeps the idle node hold for a while. The timer is not stopped when an owner is
// granted: it is started once more when it ends.
func (l *Queue) startTimer() {
	l.timerRuns, l.unused = true, true
	l.Add(requests.StartIdleTimer, 0)
}

func (l *Queue) grant(b *localOwner) {
	l.waiting.remove(b)
	l.holders.push(b)
	l.unused = false
	b.stage, b.step = held, l.hold.token.Step<<StepBits|min(l.hold.grants, mostGrants-1)
	l.hold.grants, l.hold.lastKind = min(l.hold.grants+1, mostGrants), b.kind
	for i := range b.requests {
		l.grantRequest(b, i)
	}
}

func (l *Queue) grantRequest(b *localOwner, i int) {
	r := &b.requests[i]
	if r.try {
		r.try = false
		l.tries--
	}
	token := l.hold.token
	token.Step = b.step
	f := l.Add(requests.Grant, r.id)
	f.By, f.Token = l.nodeFor(r.kind).id, token
	l.notify(r)
}

// grantEntering grants what holders have asked for beside what they hold, if its node is granted.
func (l *Queue) grantEntering() {
	if l.hold.second.stage != held {
		return
	}
	for b := range l.holders.All() {
		for i := range b.requests {
			if r := &b.requests[i]; r.enters {
				r.enters = false
				l.grantRequest(b, i)
			}
		}
	}
}

// refuseEntering refuses what holders have asked for beside what they hold.
func (l *Queue) refuseEntering(why requests.Reason) {
	l.refuseThose(&l.holders, why, func(r ownerRequest) bool { return r.enters })
}

func (l *Queue) notifyHolders() {
	for b := range l.holders.All() {
		for i := range b.requests {
			l.notify(&b.requests[i])
		}
	}
}

// notify tells a holder whether others wait for the node hold, once, and whether another client
// asks for it.
func (l *Queue) notify(r *ownerRequest) {
	if r.enters {
		return
	}
	if l.contended() && r.notifyContended {
		r.notifyContended = false
		l.Add(requests.NotifyContended, r.id)
	}
	if l.revoked() {
		l.Add(requests.RequestRevoke, r.id) // a further one has no effect
	}
}

// lose ends all grants.
func (l *Queue) lose(why requests.Reason) {
	l.refuseEntering(why)
	for b := range l.holders.All() {
		for _, r := range slices.Clone(b.requests) {
			l.Add(requests.Lose, r.id).Reason = why
			l.drop(b, r.id)
		}
	}
}
