package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
)

// callAsync makes a blocking call of the library on a goroutine of its own. It passes the result to
// handle while no event happens.
func callAsync[T any](sim *simulation, limit time.Duration, call func(context.Context) (T, error), handle func(T, error)) {
	sim.pendingCalls++
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		answer, err := call(ctx)
		sim.withState(func() {
			sim.pendingCalls--
			handle(answer, err)
		})
	}()
}

// maxRoundTrips is how many round trips a call takes at most. Participants of a lock with shared
// permits takes the most: a barrier and the count, a barrier and the list, two rounds of
// contenders, and a barrier and the generation.
const maxRoundTrips = 8

// queryGrant has the holder ask ZooKeeper about its grant, in one of four ways.
func (r *programRequest) queryGrant() {
	if r.stage != stageHeld || !r.believed || r.p.frozen || r.dropped {
		return
	}
	limit := 2*maxRoundTrips*r.p.maxDelay() + time.Second + time.Duration(r.rand.Int64N(int64(4*time.Second)))
	asked, ended := r.sim.now(), r.isInvalidated()
	r.checkHeldHere()
	how := r.rand.IntN(4)
	if how == 2 && r.p.isClient { // a lock server makes no transactions
		how = 0
	}
	switch how {
	case 0:
		callAsync(r.sim, limit, func(ctx context.Context) (any, error) { return nil, r.grant.Verify(ctx) }, func(_ any, err error) {
			r.sim.record("%d is verified: %v", r.id, err)
			r.checkAnswered("Verify", asked, err)
			r.checkVerdict("Verify", ended, err)
		})
	case 1:
		callAsync(r.sim, limit, func(ctx context.Context) (any, error) {
			return nil, r.p.locks.VerifyToken(ctx, r.grant.Node(), r.grant.Token())
		}, func(_ any, err error) {
			r.sim.record("the token of %d is verified: %v", r.id, err)
			r.checkAnswered("VerifyToken", asked, err)
			if !r.isCustom() { // Locks.VerifyToken does not know the nodes of a custom rule
				r.checkVerdict("VerifyToken", ended && len(r.grant.Nodes()) == 1, err)
			}
		})
	case 2:
		r.writeGuarded(limit, ended)
	case 3:
		r.queryParticipants(limit)
	}
}

// checkAnswered checks that a call has not ended by its own limit, in a plan whose faults delay no answer
// but that of a half-open connection: the client asks again, or learns that the stream has ended.
func (r *programRequest) checkAnswered(call string, asked time.Duration, err error) {
	broken, was := r.sim.lastFaultOf[fmt.Sprint("link", r.p.slot)]
	if !r.sim.plan.keepsLeases || !errors.Is(err, context.DeadlineExceeded) || was && asked < broken+halfOpenTime || r.p.dead {
		return
	}
	r.sim.fail(r.sim.now(), "%v: %s, asked at %v, has no answer: %v", r, call, asked, err)
}

// halfOpenTime is for how long calls may have no answer because a connection is half open.
const halfOpenTime = 30 * time.Second

// queryParticipants checks that the holder is among the participants of its lock.
func (r *programRequest) queryParticipants(limit time.Duration) {
	lock, ok := r.lock.(interface {
		Participants(context.Context) ([]actors.Participant, error)
	})
	if !ok || r.multi {
		return
	}
	// A grant may come before the nodes of former holders of its process are deleted. A fault or
	// missing rights may delay these deletions for long.
	asked := r.sim.now()
	settled := r.sim.deniedUntil == 0 && !r.p.isAffected() && r.sim.now() > r.stageSince+10*r.p.maxDelay()
	callAsync(r.sim, limit, lock.Participants, func(all []actors.Participant, err error) {
		r.sim.record("participants beside %d: %d, %v", r.id, len(all), err)
		r.checkAnswered("Participants", asked, err)
		// A smaller count leaves more holders than permits: the last of them count as waiting.
		settled := settled && (r.uses[0].path != root+"/shared" || !r.sim.countChangedSince(r.stageSince))
		if err == nil && !r.isAmong(all, settled) && r.believed && !r.isInvalidated() && !r.mayBeDeleted() && r.grant.Err() == nil {
			r.sim.fail(r.sim.now(), "%v is not among the participants: %v", r, all)
		}
		if err != nil && r.sim.lastFault == 0 {
			r.sim.fail(r.sim.now(), "%v: Participants fails without a fault: %v", r, err)
		}
	})
}

// isAmong reports whether a node of the grant is among the participants. If settled is set, the
// participant must also hold.
func (r *programRequest) isAmong(all []actors.Participant, settled bool) bool {
	return slices.ContainsFunc(all, func(p actors.Participant) bool {
		return slices.Contains(r.grant.Nodes(), p.Node) && (p.Holds || !settled)
	})
}

func (r *programRequest) isCustom() bool {
	return slices.ContainsFunc(r.uses, func(u use) bool { return r.sim.specs[u.path].excludes != nil })
}

// isInvalidated reports whether a node of the grant was deleted by force, or its session ended by
// force.
func (r *programRequest) isInvalidated() bool {
	if _, ended := r.sim.expiredAt[r.grant.Session()]; ended {
		return true
	}
	return slices.ContainsFunc(r.grant.Nodes(), func(node string) bool { return r.sim.deletedAt[node] > 0 })
}

// mayBeDeleted reports whether a deletion of a node of the grant by force has begun.
func (r *programRequest) mayBeDeleted() bool {
	return slices.ContainsFunc(r.grant.Nodes(), func(node string) bool { _, may := r.sim.deletionStarted[node]; return may })
}

// checkVerdict checks the outcome of a call against the grant. The call must not succeed if the
// grant had ended before the call (ended). It must not fail while the grant holds and nothing has
// gone wrong.
func (r *programRequest) checkVerdict(call string, ended bool, err error) {
	over := errors.Is(err, actors.ErrNotHeld) || errors.Is(err, actors.ErrNodeDeleted) || errors.Is(err, actors.ErrSessionLost)
	switch {
	case ended && err == nil:
		r.sim.fail(r.sim.now(), "%v: %s succeeds, though the grant had ended before", r, call)
	case err != nil && r.believed && r.sim.lastFault == 0:
		r.sim.fail(r.sim.now(), "%v: %s fails without a fault: %v", r, call, err)
	case over && r.believed && !r.isInvalidated() && r.grant.Err() == nil && r.sim.deniedUntil == 0 && len(r.sim.deletionStarted) == 0:
		r.sim.fail(r.sim.now(), "%v: %s fails, though the grant holds: %v", r, call, err)
	}
}

// guardedWrite is a write of guardedNode, in a transaction with the grant's Guard.
type guardedWrite struct {
	zxid  int64
	token actors.Token
}

const guardedNode = "/guarded"

// writeGuarded writes guardedNode. The transactions that ZooKeeper has executed must be in the
// order of their tokens.
func (r *programRequest) writeGuarded(limit time.Duration, ended bool) {
	u := r.uses[0]
	s := r.sim.specs[u.path]
	token := r.grant.Token()
	ops := r.grant.Guard(&zk.SetDataRequest{Path: guardedNode, Data: []byte(token.String()), Version: -1})
	callAsync(r.sim, limit, func(ctx context.Context) ([]zkbridge.Result, error) { return r.p.locks.Multi(ctx, ops...) }, func(all []zkbridge.Result, err error) {
		r.sim.record("%d writes behind a guard: %v", r.id, err)
		var failed *zkbridge.OpError
		switch {
		case errors.As(err, &failed) && !errors.Is(err, messages.Reason_NO_AUTH):
			r.checkVerdict("Guard", false, fmt.Errorf("%w: %w", actors.ErrNodeDeleted, err))
			return
		case err != nil:
			r.checkVerdict("Guard", false, err)
			return
		}
		r.checkVerdict("Guard", ended, nil)
		if s.excludes != nil || s.permits || u.weight < s.capacity || r.named || r.multi || !hasNodePerGrant(u.path) {
			return
		}
		r.sim.checkGuarded(r, u.path, guardedWrite{all[len(all)-1].Stat.Mzxid, token})
	})
}

// hasNodePerGrant reports whether each grant of the lock has a node of its own. With LocalQueue a
// former holder of the process may write by the node of a later one.
func hasNodePerGrant(path string) bool {
	return !slices.Contains([]string{root + "/local", root + "/rwlocal"}, path)
}

func (sim *simulation) checkGuarded(r *programRequest, path string, g guardedWrite) {
	all := sim.guardedWrites[path]
	i, _ := slices.BinarySearchFunc(all, g, func(a, b guardedWrite) int { return int(min(max(a.zxid-b.zxid, -1), 1)) })
	if i > 0 && all[i-1].token.Compare(g.token) > 0 || i < len(all) && all[i].token.Compare(g.token) < 0 {
		sim.fail(sim.now(), "%v: its guarded write at %d is not in the order of tokens: %v", r, g.zxid, all)
	}
	sim.guardedWrites[path] = slices.Insert(all, i, g)
}

// revoke has a process revoke the grant of a random node, mostly with a grace.
func (sim *simulation) revoke(p *process, r *rand.Rand) {
	var nodes []string
	for _, h := range sim.held {
		if len(h.uses) == 1 {
			nodes = append(nodes, h.nodes...)
		}
	}
	if len(nodes) == 0 {
		return
	}
	node := pick(r, nodes)
	var grace time.Duration
	if r.IntN(3) > 0 {
		grace = time.Duration(1 + r.Int64N(int64(2*time.Second)))
		sim.deletionStarted[node] = never // the node may be deleted at any time
		sim.revoking[node]++
		sim.beginInvalidation(hasNode(node))
	}
	sim.askedFor[node] = true
	sim.record("%s revokes %s within %v", p.name, node, grace)
	sim.activeFaults++ // until the call returns
	callAsync(sim, grace+5*time.Second, func(ctx context.Context) (bool, error) { return p.locks.Revoke(ctx, node, grace) }, func(broken bool, err error) {
		sim.activeFaults--
		sim.lastFault = sim.now()
		sim.record("%s has revoked %s: broken %v, %v", p.name, node, broken, err)
		if broken && grace == 0 {
			sim.fail(sim.now(), "%s was deleted without a grace", node)
		}
		if err == nil && grace > 0 {
			sim.revoking[node]--
		}
		_, before := sim.deletedAt[node]
		switch {
		case broken:
			sim.deletionStarted[node] = sim.now()
			sim.noteForcedDeletion(node)
			sim.invalidate(sim.now(), hasNode(node))
		case err == nil && grace > 0 && !before && sim.revoking[node] == 0: // its holder has released it
			delete(sim.deletionStarted, node)
		}
	})
}

// changeCount changes how many permits the semaphore with shared permits has.
func (sim *simulation) changeCount(p *process, r *rand.Rand) {
	if sim.countChanging {
		return
	}
	n := initialPermits + r.IntN(maxPermits-initialPermits+1) // no request may wait for more permits than exist
	former := slices.Clone(sim.permitCounts)
	sim.permitCounts = append(sim.permitCounts, &permitCount{value: n, inForceUntil: never})
	sim.countChanging = true
	callAsync(sim, 5*time.Second, func(ctx context.Context) (any, error) {
		return nil, p.locks.SharedCount(countPath, initialPermits).Set(ctx, n)
	}, func(_ any, err error) {
		sim.record("%s sets the count to %d: %v", p.name, n, err)
		if err != nil {
			return // the count may still be written at any time, so no former count ends
		}
		sim.countChanging = false
		for _, c := range former {
			c.inForceUntil = min(c.inForceUntil, sim.now())
		}
	})
}

// countChangedSince reports whether more than one count may have been in force since then.
func (sim *simulation) countChangedSince(since time.Duration) bool {
	former := sim.permitCounts[:len(sim.permitCounts)-1]
	return slices.ContainsFunc(former, func(c *permitCount) bool { return c.inForceUntil > since })
}

// permitCount is a number of shared permits that may be in force until a time. A process that does
// not learn of the next number may use it for longer.
type permitCount struct {
	value        int
	inForceUntil time.Duration
}

const (
	countPath      = "/count"
	initialPermits = 2
	maxPermits     = 4
)

// sharedCapacity returns how many shared permits a process may use at most, if faults have no
// effect on the process since the given time.
func (sim *simulation) sharedCapacity(unaffectedSince func() time.Duration) (capacity int) {
	since := never
	if unaffectedSince != nil {
		since = unaffectedSince()
	}
	for _, c := range sim.permitCounts {
		if sim.now() < max(c.inForceUntil, since)+lossNoticeTime {
			capacity = max(capacity, c.value)
		}
	}
	return capacity
}
