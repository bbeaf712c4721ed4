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

// question is a call of the library that blocks until ZooKeeper answers, on a goroutine of its own.
// look is called with what it returned, when no event happens.
func question[T any](w *world, limit time.Duration, call func(context.Context) (T, error), look func(T, error)) {
	w.questions++
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		answer, err := call(ctx)
		w.locked(func() {
			w.questions--
			look(answer, err)
		})
	}()
}

// roundTrips is how many round trips a question takes at most: Participants of a lock with shared permits reads the
// count behind a barrier, lists behind one, reads the contenders in two rounds, and the generation behind a barrier.
const roundTrips = 8

// asks has the holder ask ZooKeeper about its grant, in one of four ways.
func (r *programRequest) asks() {
	if r.state != holds || !r.believed || r.p.frozen || r.dropped {
		return
	}
	limit := 2*roundTrips*r.p.host.far + time.Second + time.Duration(r.rand.Int64N(int64(4*time.Second)))
	gone := r.isTaken()
	r.checkHeldHere()
	switch how := r.rand.IntN(4); how {
	case 0:
		question(r.w, limit, func(ctx context.Context) (any, error) { return nil, r.grant.Verify(ctx) }, func(_ any, err error) {
			r.w.line("%d is verified: %v", r.id, err)
			r.compare("Verify", gone, err)
		})
	case 1:
		question(r.w, limit, func(ctx context.Context) (any, error) {
			return nil, r.p.locks.VerifyToken(ctx, r.grant.Node(), r.grant.Token())
		}, func(_ any, err error) {
			r.w.line("the token of %d is verified: %v", r.id, err)
			if !r.isCustom() { // whose nodes VerifyToken of Locks does not know
				r.compare("VerifyToken", gone && len(r.grant.Nodes()) == 1, err)
			}
		})
	case 2:
		r.guard(limit, gone)
	case 3:
		r.asksWho(limit)
	}
}

// asksWho has the holder look whether it is among the participants.
func (r *programRequest) asksWho(limit time.Duration) {
	lock, ok := r.lock.(interface {
		Participants(context.Context) ([]actors.Participant, error)
	})
	if !ok || r.multi || isSimple(r.path) {
		return
	}
	// A grant may come before the nodes of former holders of its process are deleted, which takes
	// long where a fault or missing rights are in the way.
	settled := r.w.denied == 0 && !r.p.isShaky() && r.w.now() > r.since+10*r.p.host.far
	question(r.w, limit, lock.Participants, func(all []actors.Participant, err error) {
		r.w.line("participants beside %d: %d, %v", r.id, len(all), err)
		if err == nil && !r.isAmong(all, settled) && r.believed && !r.isTaken() && r.grant.Err() == nil {
			r.w.fail(r.w.now(), "%v is not among the participants: %v", r, all)
		}
		if err != nil && r.w.faulty == 0 {
			r.w.fail(r.w.now(), "%v: Participants without a fault: %v", r, err)
		}
	})
}

// isAmong reports whether the grant is among the participants, and as one that holds if all is settled.
func (r *programRequest) isAmong(all []actors.Participant, settled bool) bool {
	return slices.ContainsFunc(all, func(p actors.Participant) bool {
		return slices.Contains(r.grant.Nodes(), p.Node) && (p.Holds || !settled)
	})
}

func (r *programRequest) isCustom() bool {
	return slices.ContainsFunc(r.uses, func(u use) bool { return r.w.specs[u.path].excludes != nil })
}

// isTaken reports whether a node of the grant was deleted by force, or its session ended so.
func (r *programRequest) isTaken() bool {
	if _, ended := r.w.expired[r.grant.Session()]; ended {
		return true
	}
	return slices.ContainsFunc(r.grant.Nodes(), func(node string) bool { return r.w.gone[node] > 0 })
}

// compare looks whether ZooKeeper's answer fits the grant: it must not be good if the grant was over
// when it was asked (gone), nor bad while the grant goes on and nothing has ever gone wrong.
func (r *programRequest) compare(what string, gone bool, err error) {
	over := errors.Is(err, actors.ErrNotHeld) || errors.Is(err, actors.ErrNodeDeleted) || errors.Is(err, actors.ErrSessionLost)
	switch {
	case gone && err == nil:
		r.w.fail(r.w.now(), "%v: %s says that it holds, and it was over before", r, what)
	case err != nil && r.believed && r.w.faulty == 0:
		r.w.fail(r.w.now(), "%v: %s without a fault: %v", r, what, err)
	case over && r.believed && !r.isTaken() && r.grant.Err() == nil && r.w.denied == 0 && len(r.w.deleted) == 0:
		r.w.fail(r.w.now(), "%v: %s says that it is over, and it holds: %v", r, what, err)
	}
}

// guarded is what a lock protects in ZooKeeper itself: writes of it are transactions of Guard.
type guarded struct {
	zxid  int64
	token actors.Token
}

const guardedNode = "/guarded"

// guard writes what an exclusive lock protects. The transactions that ZooKeeper has taken must have
// been in the order of their tokens.
func (r *programRequest) guard(limit time.Duration, gone bool) {
	u := r.uses[0]
	s := r.w.specs[u.path]
	token := r.grant.Token()
	ops := r.grant.Guard(&zk.SetDataRequest{Path: guardedNode, Data: []byte(token.String()), Version: -1})
	question(r.w, limit, func(ctx context.Context) ([]zkbridge.Result, error) { return r.p.locks.Multi(ctx, ops...) }, func(all []zkbridge.Result, err error) {
		r.w.line("%d writes behind a guard: %v", r.id, err)
		var failed *zkbridge.OpError
		switch {
		case errors.As(err, &failed) && !errors.Is(err, messages.Reason_NO_AUTH):
			r.compare("Guard", false, fmt.Errorf("%w: %w", actors.ErrNodeDeleted, err))
			return
		case err != nil:
			r.compare("Guard", false, err)
			return
		}
		r.compare("Guard", gone, nil)
		if s.excludes != nil || s.permits || u.weight < s.room || r.named || r.multi || !keepsNode(u.path) {
			return
		}
		r.w.checkGuarded(r, u.path, guarded{all[len(all)-1].Stat.Mzxid, token})
	})
}

// keepsNode reports whether each grant of the lock has a node of its own. With LocalQueue a former
// holder of the process may write by the node of a later one.
func keepsNode(path string) bool {
	return !slices.Contains([]string{root + "/local", root + "/rwlocal", root + "/simple", root + "/simplerw"}, path)
}

func (w *world) checkGuarded(r *programRequest, path string, g guarded) {
	all := w.guarded[path]
	i, _ := slices.BinarySearchFunc(all, g, func(a, b guarded) int { return int(min(max(a.zxid-b.zxid, -1), 1)) })
	if i > 0 && all[i-1].token.Compare(g.token) > 0 || i < len(all) && all[i].token.Compare(g.token) < 0 {
		w.fail(w.now(), "%v: its guarded write at %d is not in the order of tokens: %v", r, g.zxid, all)
	}
	w.guarded[path] = slices.Insert(all, i, g)
}

// revoke has a process ask the holder of a node to release, and delete the node after a grace.
func (w *world) revoke(p *process, r *rand.Rand) {
	var nodes []string
	for _, h := range w.held {
		if len(h.uses) == 1 && !isSimple(h.uses[0].path) {
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
		w.deleted[node] = never // its deletion may be at any time
		w.take(hasNode(node))
	}
	w.line("%s revokes %s within %v", p.name, node, grace)
	w.active++ // until it is answered
	question(w, grace+5*time.Second, func(ctx context.Context) (bool, error) { return p.locks.Revoke(ctx, node, grace) }, func(broken bool, err error) {
		w.active--
		w.faulty = w.now()
		w.line("%s has revoked %s: broken %v, %v", p.name, node, broken, err)
		if broken && grace == 0 {
			w.fail(w.now(), "%s was deleted without a grace", node)
		}
		_, before := w.gone[node]
		switch {
		case broken:
			w.deleted[node] = w.now()
			w.noteGone(node)
			w.took(w.now(), hasNode(node))
		case err == nil && grace > 0 && !before: // its holder has released it
			delete(w.deleted, node)
		}
	})
}

// changeCount changes how many permits the semaphore with shared permits has.
func (w *world) changeCount(p *process, r *rand.Rand) {
	if w.counting {
		return
	}
	n := firstShared + r.IntN(maxShared-firstShared+1) // no request may wait for more than there are
	former := slices.Clone(w.counts)
	w.counts = append(w.counts, &count{value: n, until: never})
	w.counting = true
	question(w, 5*time.Second, func(ctx context.Context) (any, error) {
		return nil, p.locks.SharedCount(sharedCount, firstShared).Set(ctx, n)
	}, func(_ any, err error) {
		w.line("%s sets the count to %d: %v", p.name, n, err)
		if err != nil {
			return // it may be written yet, at any time: none is done any more
		}
		w.counting = false
		for _, c := range former {
			c.until = min(c.until, w.now())
		}
	})
}

// count is a number of shared permits that may be in force until then, or longer where a process does
// not hear of the next.
type count struct {
	value int
	until time.Duration
}

const (
	sharedCount = "/count"
	firstShared = 2
	maxShared   = 4
)

// sharedRoom is how many permits a process may take there to be that nothing has kept from knowing
// since calm.
func (w *world) sharedRoom(calm func() time.Duration) (room int) {
	since := never
	if calm != nil {
		since = calm()
	}
	for _, c := range w.counts {
		if w.now() < max(c.until, since)+knowledge {
			room = max(room, c.value)
		}
	}
	return room
}
