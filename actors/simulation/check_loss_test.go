package simulation

import (
	"errors"
	"slices"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
)

// What a process must do when it learns of a loss: of its node, its grant or its session.

// queueLocks are locks in which each request has a contender, is granted with it, and waits only
// for the contenders ahead.
var queueLocks = []string{root + "/m0", root + "/m1", root + "/rw", root + "/custom"}

func (r *programRequest) isQueueLock() bool {
	return !r.multi && slices.Contains(queueLocks, r.path)
}

// maxAnswerDelay returns how long an answer may take to reach the process of the request. It
// returns 0 if the time is not known: a fault has an effect on the process, or a multi-lock has
// contenders that the program does not see.
func (r *programRequest) maxAnswerDelay() time.Duration {
	if !r.isQueueLock() || r.sim.now() < r.p.delayedUntil || r.p.frozen || r.sim.nearOverflow || r.sim.sinceMultiLock(r.p, r.path) < recentTime {
		return 0
	}
	return r.p.maxDelay() + 20*time.Millisecond
}

// sinceMultiLock returns the time since the process had a request of a multi-lock for the path.
func (sim *simulation) sinceMultiLock(p *process, path string) time.Duration {
	for _, r := range sim.requests {
		if r.p == p && r.multi && slices.ContainsFunc(r.uses, func(u use) bool { return u.path == path }) {
			return 0
		}
	}
	last, was := sim.multiLockEnded[p.name+path]
	if !was {
		return never
	}
	return sim.now() - last
}

// checkAfterMissingNode checks that a process proves its nodes again once the answer to a release
// was that the node is missing: no grant after that may be by a node that was deleted before.
func (r *programRequest) checkAfterMissingNode(now time.Duration, h *heldGrant) {
	if missingAt, was := r.p.missingNodeAt[r.path]; was && r.sim.plan.lockServers == 0 && h.nodeDeletedAt > 0 && h.maxAnswerDelay > 0 && h.nodeDeletedAt+h.maxAnswerDelay < missingAt {
		r.sim.fail(now, "%v is granted by a node that was deleted at %v, though the process learned at %v that another node was missing", r, h.nodeDeletedAt, missingAt)
	}
}

// checkRelease checks that the answer to a release says so if the node had been deleted. It does
// not check that after a fault: then an attempt whose answer was lost may have deleted the node.
func (r *programRequest) checkRelease(now time.Duration, err error) {
	if !r.isQueueLock() || !r.believedAtRelease {
		return
	}
	if errors.Is(err, actors.ErrNodeDeleted) {
		r.p.missingNodeAt[r.path] = now
	}
	deletedAt, was := r.sim.deletedAt[r.grant.Nodes()[0]]
	if err == nil && was && deletedAt < r.stageSince && !r.named && r.p.unaffectedSince() < r.stageSince && !r.sim.nearOverflow {
		r.sim.fail(now, "%v: the release succeeds, though the node was deleted at %v", r, deletedAt)
	}
}

// noteSession notes the sessions that the process has lost, and since when it is connected.
func (p *process) noteSession(now time.Duration, id int64, state messages.SessionState) {
	if p.session != 0 && !p.isClient && (id != p.session || state == messages.SessionState_LOST) {
		p.lostSessions[p.session] = now
	}
	if state == messages.SessionState_CONNECTED {
		p.connectedSince = now
	}
}

// checkLostSessionsClosed checks that a process closes a lost session once it is connected again.
// Otherwise the session's nodes would still block others.
func (sim *simulation) checkLostSessionsClosed(now time.Duration) {
	open := map[int64]bool{}
	for _, p := range sim.slots {
		if p == nil || len(p.lostSessions) == 0 || !p.isUp() || p.frozen || p.state != messages.SessionState_CONNECTED || sim.activeFaults > 0 {
			continue
		}
		if len(open) == 0 {
			for _, s := range sim.server.Sessions() {
				open[s.ID] = true
			}
		}
		for id, lost := range p.lostSessions {
			since := max(lost, sim.lastFault, p.connectedSince)
			if sim.plan.onKeeper() {
				since += 2 * sim.plan.sessionTimeout // nobody can close it, and the fault of a late request prolongs it
			}
			switch {
			case !open[id]:
				delete(p.lostSessions, id)
			case now > since+sim.margin()+sessionCloseTime+p.promised():
				sim.fail(now, "%s has lost session %#x at %v, is connected since %v and has not closed it", p.name, id, lost, since)
			}
		}
	}
}

// sessionCloseTime is how long it may take to close a lost session after the margin.
const sessionCloseTime = 3 * time.Second

// margin returns the margin of actors.Config.
func (sim *simulation) margin() time.Duration { return sim.plan.sessionTimeout / 5 }

// noteLoss notes that the grant has ended without a release. The work under a lost session may
// continue for almost the whole margin, and no other request may be granted before it ends.
func (r *programRequest) noteLoss(now time.Duration) {
	if errors.Is(r.endErr, actors.ErrHoldExpired) && r.hasUnreadRequest() { // the owner still holds by its other grant
		r.sim.ended(now, r.id)
		return
	}
	_, expired := r.sim.expiredAt[r.grant.Session()]
	// Nothing works under a grant that was dropped.
	if !errors.Is(r.endErr, actors.ErrSessionLost) || expired || r.sim.overslept[r.grant.Session()] || r.p.dead || r.dropped || r.p.isClient {
		r.sim.lost(now, r.id)
		return
	}
	r.worksInMargin = true
	r.sim.sessionLost(now, r.id)
	if remaining := r.sim.previousCheck + r.sim.margin()*8/10 - now; remaining > 0 { // the grant may have ended at any time since the previous checks
		r.sim.after(remaining, r.endWork)
	} else {
		r.endWork()
	}
}

// endWork ends the work under a lost grant.
func (r *programRequest) endWork() {
	if r.worksInMargin {
		r.worksInMargin = false
		r.sim.ended(r.sim.now(), r.id)
	}
}
