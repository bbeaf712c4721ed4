package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/actorlock/actorlock/actors"
)

// programRequest is one request of a process's program, until the answer to its release.
type programRequest struct {
	sim               *simulation
	p                 *process
	rand              *rand.Rand
	id                int
	uses              []use
	path              string
	lock              lockHandle
	owner             string // "": the request has an owner of its own
	named             bool
	multi             bool
	try               bool
	beforeRelease     bool // it was made before a release of the same moment
	timeout           time.Duration
	cancellable       bool          // it may be cancelled
	holdAtMost        time.Duration // 0: without limit
	failOnSessionLoss bool          // it has the option FailOnSessionLoss
	ctx               context.Context
	cancelContext     context.CancelFunc

	stage             requestStage
	requestedAt       time.Duration
	clockAtRequest    time.Duration // by the clock of the process
	future            *actors.Future[*actors.Grant]
	grant             *actors.Grant
	work              context.Context // of the grant; nil unless the process stops its work when the connection is lost
	believed          bool
	worksInMargin     bool  // its session is lost, and its work continues within the margin
	believedAtRelease bool  // its owner believed in the grant when it released
	endErr            error // why the grant ended
	releaseFuture     *actors.Future[struct{}]
	stageSince        time.Duration // when the stage began
	lastSeenWaiting   time.Duration // when it was last seen to wait
	killed            bool          // its process was killed
	cancelled         bool          // it was cancelled
	releasesOnRevoke  bool          // it releases on a revoke
	unread            bool          // nothing reads the answer
	unreadable        bool          // its owner has a name that is no text
	dropped           bool          // the program has dropped the grant, which holds until it is lost
	freeSince         time.Duration // since when it waits for a lock without a holder
	holdTime          time.Duration
	onGranted         func() // called after the grant, if set
	onLost            func() // called after the loss of the grant, if set
	onRelease         func() // called after the call of Release, if set
}

type requestStage int

const (
	stageWaiting requestStage = iota
	stageHeld
	stageReleasing
	stageDone
)

func (s requestStage) String() string { return []string{"waits", "holds", "releases", "done"}[s] }

func (r *programRequest) String() string {
	return fmt.Sprintf("%d of %s for %s %v since %v", r.id, r.p.name, r.path, r.stage, r.stageSince)
}

// operations are the operations of a drawn plan. Every plan has the first one.
var operations = []string{"op plain", "op options", "op owner", "op multi", "op owner multi", "op actor"}

// acquire makes the request of an entry.
func (sim *simulation) acquire(e entry) {
	p := sim.slots[e.slot]
	if p == nil || !p.isUp() || p.frozen || len(sim.requests) > maxOpenRequests {
		return
	}
	r := sim.newRequest(p, e.rand())
	if strings.HasSuffix(e.name, "multi") {
		r.multi = true
		r.send(e.name, r.multiLock(1+r.rand.IntN(4)))
		return
	}
	acc := p.anyLock(r.rand)
	r.uses = []use{acc.use}
	var options []actors.Option
	if acc.permits > 1 {
		options = append(options, actors.Permits(acc.permits))
	}
	r.send(e.name, acc.Member.(lockHandle), options...)
}

// acquireAlongside requests the lock of memberLockAt for the program of old, when it releases.
func (sim *simulation) acquireAlongside(old *programRequest, path, operation string, options ...actors.Option) *programRequest {
	if len(sim.requests) > maxOpenRequests || old.p.dead {
		return nil
	}
	return sim.acquireAt(old.p, old.rand, path, operation, options...)
}

// acquireAt requests the lock of memberLockAt. It returns nil if there is none.
func (sim *simulation) acquireAt(p *process, rnd *rand.Rand, path, operation string, options ...actors.Option) *programRequest {
	if !p.isUp() || p.frozen {
		return nil
	}
	r := sim.newRequest(p, rnd)
	acc := p.memberLockAt(path, r.rand)
	if acc.Member == nil {
		return nil
	}
	r.uses, r.try = []use{acc.use}, operation == "op again"
	r.send(operation, acc.Member.(lockHandle), options...)
	return r
}

func (sim *simulation) newRequest(p *process, rnd *rand.Rand) *programRequest {
	sim.requestCount++
	return &programRequest{sim: sim, p: p, rand: rnd, id: sim.requestCount, requestedAt: sim.now(), clockAtRequest: p.clock(), stageSince: sim.now()}
}

// send requests the lock with random options, of which the name of the operation allows some.
func (r *programRequest) send(operation string, lock lockHandle, options ...actors.Option) {
	sim, p, rnd := r.sim, r.p, r.rand
	if strings.Contains(operation, "owner") {
		if r.named = true; r.owner == "" {
			r.owner = fmt.Sprint(p.name, "/", rnd.IntN(3))
		}
		options = append(options, actors.WithOwner(actors.Owner(r.owner)))
		r.timeout = time.Duration(1 + rnd.Int64N(int64(20*time.Second))) // an owner may wait for its own other requests
	} else {
		r.owner = fmt.Sprint(p.name, "#", r.id)
	}
	if operation == "op options" || !r.try && rnd.Float64() < sim.plan.optionChance {
		switch rnd.IntN(8) {
		case 0:
			r.try = true
			options = append(options, actors.Try())
		case 1:
			r.timeout = time.Duration(1 + rnd.Int64N(int64(5*time.Second)))
		case 2:
			r.cancellable = true
			sim.after(time.Duration(rnd.Int64N(int64(2*time.Second))), r.cancelIfWaiting)
		case 3:
			options = append(options, actors.Revocable())
		case 4:
			options = append(options, actors.WithData([]byte("data of "+r.owner)))
		case 5:
			r.cancellable = true
			sim.after(time.Duration(rnd.Int64N(int64(20*time.Millisecond))), r.cancelIfWaiting)
		case 6:
			sim.after(time.Duration(rnd.Int64N(int64(2*time.Second))), r.dropFuture)
		case 7: // nothing ever reads the answer
			r.unread = true
			sim.after(time.Duration(rnd.Int64N(int64(5*time.Second))), r.dropFuture)
		}
	}
	options = append(options, r.limitOptions()...)
	if r.timeout > 0 {
		options = append(options, actors.WithTimeout(r.timeout))
	}
	r.holdTime = time.Duration(rnd.ExpFloat64() * float64(sim.plan.meanHold))
	if rnd.IntN(20) == 0 || r.named && rnd.IntN(3) == 0 {
		r.holdTime = min(40*r.holdTime, drainTimeout/4) // several are over before the end of the run
	}
	r.path, r.lock = lock.Path(), lock
	r.releasesOnRevoke = rnd.IntN(2) == 0
	r.ctx, r.cancelContext = context.WithCancel(context.Background())
	sim.requests = append(sim.requests, r)
	sim.record("%d of %s asks for %s as %s: try %v, timeout %v", r.id, p.name, describeUses(r.uses), r.owner, r.try, r.timeout)
	r.future = lock.Acquire(r.ctx, options...)
}

func describeUses(uses []use) string {
	var all []string
	for _, u := range uses {
		all = append(all, fmt.Sprintf("%s:%d:%d", u.path, u.kind, u.weight))
	}
	return strings.Join(all, "+")
}

// multiLock returns a multi-lock of at most n locks.
func (r *programRequest) multiLock(n int) lockHandle {
	var members []actors.Member
	seen := map[string]bool{}
	for range n {
		acc := r.p.memberLock(r.rand)
		if seen[acc.use.path] {
			continue
		}
		seen[acc.use.path] = true
		members = append(members, acc.Member)
		r.uses = append(r.uses, acc.use)
	}
	return r.p.locks.MultiLock(members...)
}

// cancelIfWaiting cancels the request if it still waits.
func (r *programRequest) cancelIfWaiting() {
	if r.stage != stageWaiting || r.killed {
		return
	}
	if r.p.frozen {
		r.sim.after(100*time.Millisecond, r.cancelIfWaiting)
		return
	}
	r.cancelled = true
	r.sim.record("%d is given up", r.id)
	if r.rand.IntN(2) == 0 {
		r.cancelContext()
	} else {
		r.future.Cancel()
	}
}

func isDone(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// advance takes the steps that are possible after an event.
func (r *programRequest) advance(now time.Duration) {
	if r.p.frozen || r.killed {
		return
	}
	switch r.stage {
	case stageWaiting:
		if !r.unread && isDone(r.future.Done()) {
			r.handleAnswer(now)
			return
		}
		r.lastSeenWaiting = now
	case stageHeld:
		if r.releasesOnRevoke && isDone(r.grant.Revoked()) {
			r.release()
		}
	case stageReleasing:
		if isDone(r.releaseFuture.Done()) {
			_, err := r.releaseFuture.Result()
			r.sim.record("%d is released: %v", r.id, err)
			r.checkRelease(now, err)
			r.finish()
		}
	}
}

func (r *programRequest) handleAnswer(now time.Duration) {
	grant, err := r.future.Result()
	if err != nil {
		r.sim.record("%d gets: %v", r.id, err)
		if !r.isExpectedError(now, err) {
			r.sim.fail(now, "%v: the answer does not fit: %v", r, err)
		}
		if errors.Is(err, actors.ErrNotAcquired) {
			r.checkTry(now)
		}
		r.finish()
		return
	}
	r.lastSeenWaiting = max(r.lastSeenWaiting, r.stageSince)
	r.grant, r.stage, r.stageSince = grant, stageHeld, now
	r.sim.grants++
	r.sim.record("%d is granted: token %v, node %s", r.id, grant.Token(), grant.Node())
	if grant.Err() != nil {
		r.sim.noteDeletedNodeEnd(r.p.holder(grant.Session())+r.uses[0].path, now+r.p.endDelay())
	} else {
		r.believed = true
		h := &heldGrant{id: r.id, owner: r.owner, token: grant.Token(), uses: r.uses, nodes: grant.Nodes(),
			session: grant.Session(), unaffectedSince: r.p.unaffectedSince, process: r.p.holder(grant.Session()), maxAnswerDelay: r.maxAnswerDelay(), endDelay: r.p.endDelay(), minDelay: r.p.host.minDelay()}
		r.sim.noteGrant(h)
		r.beginWork()
		r.checkAskedBefore(now)
		r.checkAfterMissingNode(now, h)
		r.sim.checkOrder(now, r)
		r.sim.checkBudget(now, r)
		r.sim.checkHandOff(now, r)
		r.useRegisters()
		if r.rand.IntN(8) == 0 {
			r.sim.after(time.Duration(r.rand.Int64N(1+int64(r.holdTime))), r.queryGrant)
		}
		if r.onGranted != nil {
			r.onGranted()
		}
	}
	if r.sim.faultsOver { // up to maxOpenRequests hold one after the other before the end of the run
		r.holdTime = min(r.holdTime, drainTimeout/(4*maxOpenRequests))
	}
	r.sim.after(r.holdTime, r.release)
}

// noteGrant passes a grant to the checker. The node may already be deleted. The holder need not
// ever learn of a deletion whose outcome is unknown, such as that of a Revoke without an answer.
func (sim *simulation) noteGrant(h *heldGrant) {
	at, gone := sim.expiredAt[h.session]
	h.invalidated = gone
	for _, node := range h.nodes {
		if _, was := sim.deletedAt[node]; was && len(h.nodes) == 1 && h.token.Czxid > sim.deletions.get(node).zxid {
			// The node was created again: a repeated create has its former name if the directory
			// was deleted, too. The token of a grant by several nodes is that of the last node.
			delete(sim.deletionStarted, node)
			delete(sim.deletedAt, node)
		}
		if _, may := sim.deletionStarted[node]; may {
			h.invalidated = true
		}
		if since, was := sim.deletedAt[node]; was {
			at, gone = max(at, since), true
		}
	}
	if late := at + lossNoticeTime; gone && !h.foreign && sim.now() > late && sim.now() > h.unaffectedSince()+lossNoticeTime {
		sim.fail(sim.now(), "grant %d of %s is by a node that was deleted at %v", h.id, h.owner, at)
	}
	if !h.foreign && len(h.nodes) == 1 {
		h.nodeDeletedAt = sim.deletedAt[h.nodes[0]]
		h.predecessorOutlived = h.nodeDeletedAt > 0 && sim.predecessorOutlived(h.nodes[0], h.minDelay)
	}
	h.noticeBy = never
	if gone && !h.foreign {
		h.noticeBy = sim.now() + lossNoticeTime
	}
	sim.specs[root+"/shared"].capacity = sim.sharedCapacity(h.unaffectedSince)
	sim.granted(sim.now(), h)
}

// unaffectedSince returns since when no fault has an effect on the process.
func (p *process) unaffectedSince() time.Duration {
	if p.isAffected() {
		return never
	}
	return p.affectedUntil
}

func (r *programRequest) release() {
	if r.stage != stageHeld || r.killed || r.dropped {
		return
	}
	if r.p.frozen {
		r.sim.after(100*time.Millisecond, r.release)
		return
	}
	r.endWork()
	r.noteReleaseAtExpiry()
	r.believedAtRelease = r.believed
	if r.believed {
		r.believed = false
		r.sim.ended(r.sim.now(), r.id)
	}
	r.stage, r.stageSince = stageReleasing, r.sim.now()
	r.sim.record("%d releases", r.id)
	again := r.rand.IntN(4) == 0 && !r.multi
	if again && r.rand.IntN(2) == 0 { // both requests go in one batch when this one is answered
		if other := r.sim.acquireAlongside(r, pick(r.rand, []string{root + "/m0", root + "/m1"}), "op plain"); other != nil {
			other.beforeRelease = true
		}
	}
	r.releaseFuture = r.grant.Release()
	if again {
		r.sim.acquireAlongside(r, r.path, "op again", actors.Try())
	}
	if r.onRelease != nil {
		r.onRelease()
	}
	if r.p.replaceNext && r.believedAtRelease {
		r.sim.replaceDirectoryAfter(r)
	}
}

func (r *programRequest) finish() {
	r.close()
	r.cancelContext()
}

// close ends the request, but not its context.
func (r *programRequest) close() {
	r.sim.noteRequestEnd(r)
	r.stage = stageDone
	r.sim.ownerEnded[r.owner] = max(r.sim.ownerEnded[r.owner], r.sim.now()) // a dropped request of the owner may end later
}

// kill ends the request because its process is killed.
func (r *programRequest) kill() {
	r.killed = true
	r.endWork()
	if r.believed {
		r.believed = false
		r.sim.lost(r.sim.now(), r.id)
	}
	r.finish()
}
