package actors

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
)

// group is what the members of a multi-lock have in common in one phase of a request. The
// actor of each member reports once, in its own time: it hands in the node that it wants
// (add), or says that it wants none (skip). The last report decides: one transaction makes
// all nodes, or, if the owner has some of the members but not all, the request is refused.
type group struct {
	bridge   *zkbridge.Bridge
	number   uint64 // of all groups of this program; see lockqueue.Acquire.AtomicCreate
	multi    ask.Recipient
	attempt  uint64 // of multi
	owner    string
	members  int
	queueing *queueing

	mu      sync.Mutex
	missing int // members that have not reported
	parts   []zkbridge.Part
	over    bool

	known   int    // members that the owner waits for or holds already
	first   string // the path of the first of them
	entered uint64 // the group that made the nodes of all of them; 0 if there is no such group
}

// queueing is an attempt that queues at the gates of its semaphores, and has nothing of its
// other members yet. If its owner asks for one of these meanwhile, the attempt is refused at
// once: it would be, for having a part only, when it is past the gates.
type queueing struct {
	multi   ask.Recipient
	attempt uint64
	over    atomic.Bool
}

// lastGroup is the number of the group that was made last.
var lastGroup atomic.Uint64

// acquireJoint is an Acquire for the member of a multi-lock, whose node is made together
// with those of others.
type acquireJoint struct {
	*messages.Acquire
	group *group
	// ahead asks only whether the owner has something of the lock: the multi-lock queues at
	// the gates of its semaphores first, and must not do so for what it cannot get.
	ahead bool
}

// proceed tells a semaphore that the multi-lock is past all gates.
type proceed struct {
	requestID uint64
	group     *group
}

// passed tells a multi-lock that a request is past the gate of a semaphore.
type passed struct{ requestID uint64 }

// refused tells a multi-lock that an attempt has failed for good.
type refused struct {
	attempt uint64
	why     messages.Reason
	detail  string
}

func newGroup(m *multi, a *attempt) *group {
	n := len(m.upon)
	return &group{bridge: m.manager.zk.Bridge, number: lastGroup.Add(1), multi: m.self, attempt: a.id,
		owner: a.msg.Owner, members: n, missing: n, queueing: a.queueing}
}

// add hands in a member's node.
func (g *group) add(p zkbridge.Part) {
	g.mu.Lock()
	over := g.over
	if !over {
		g.parts = append(g.parts, p)
	}
	g.mu.Unlock()
	if over {
		refuseParts([]zkbridge.Part{p})
		return
	}
	g.skip()
}

// skip reports that a member needs no node in this phase.
func (g *group) skip() {
	g.mu.Lock()
	g.missing--
	last, whole := g.missing == 0 && !g.over, g.whole()
	g.over = g.over || last && whole
	g.mu.Unlock()
	switch {
	case last && !whole:
		g.refuse(messages.Reason_WOULD_DEADLOCK, g.hint(g.first))
	case last && len(g.parts) > 0:
		g.bridge.CreateAll(g.parts)
	}
}

// hint says why the owner cannot have the multi-lock as long as it has the lock at path.
func (g *group) hint(path string) string {
	return fmt.Sprintf("owner %q waits for %s or holds it by another request: release or cancel that first; "+
		"a multi-lock is entered again only by those members that one request for a multi-lock has taken", g.owner, path)
}

// has notes that the owner waits for a member or holds it already, before the member
// reports. made is the group that made the node there that the request enters, or 0.
func (g *group) has(path string, made uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.known == 0:
		g.first, g.entered = path, made
	case g.entered != made:
		g.entered = 0
	}
	g.known++
}

// whole reports whether the tokens of all parts will be equal: the owner has none of the
// members, or enters all of them by the nodes of one transaction. The parts of semaphores
// are new in any case.
func (g *group) whole() bool {
	switch g.known {
	case 0:
		return true
	case g.members:
		return len(g.parts) == g.members || len(g.parts) == 0 && (g.entered != 0 || g.members == 1)
	}
	return false
}

// refuse ends the attempt for good, unless the group is over. The multi-lock hears of it
// before any member does.
func (g *group) refuse(why messages.Reason, detail string) {
	refuseParts(g.end(func() { g.multi.Tell(refused{g.attempt, why, detail}) }))
}

// abort ends a group that is not over.
func (g *group) abort() { refuseParts(g.end(func() {})) }

// end ends the group and calls first, unless the group is over. It returns the nodes that
// are not to be made then.
func (g *group) end(first func()) (parts []zkbridge.Part) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over {
		return nil
	}
	g.over = true
	first()
	return g.parts
}

// refuseParts tells members that their nodes will not be made. It is no loss for the attempt
// that has ended. One of another multi-lock of the same owner, which waits for the same
// nodes, begins anew.
func refuseParts(parts []zkbridge.Part) {
	for _, p := range parts {
		p.From.Tell(&messages.Failed{Id: p.Create.Id, Epoch: p.Create.Epoch, Reason: messages.Reason_NODE_DELETED})
	}
}

// ---- what a member has of the owner

// enter checks a request for the member of a multi-lock against what its owner has of this
// lock already. It reports whether the request may go on, and whether it needs a node.
func (l *lock) enter(msg acquireJoint) (may, needs bool) {
	if why, lost := l.state.LostBy(msg.Owner); l.byUsers(lost) {
		msg.group.refuse(messages.Reason(why), fmt.Sprintf("owner %q has lost %s and not released it", msg.Owner, l.path))
		return false, false
	}
	switch entry := l.state.Entry(msg.Owner, queue.Kind(msg.Kind)); {
	case !entry.Known:
		return true, true
	case entry.AtomicCreate == 0 && msg.group.members > 1:
		msg.group.refuse(messages.Reason_WOULD_DEADLOCK, msg.group.hint(l.path))
		return false, false
	default:
		msg.group.has(l.path, entry.AtomicCreate)
		return true, false
	}
}

// byUsers reports whether some of the requests are not those of another actor of this
// package, which gives up at once what it has lost.
func (l *lock) byUsers(ids []requests.ID) bool {
	return slices.ContainsFunc(ids, func(id requests.ID) bool {
		r := l.requests.At(id)
		return r != nil && !r.front
	})
}

// expect notes that an attempt of the owner asks for this lock later.
func (l *lock) expect(owner string, q *queueing) {
	if owner == "" {
		return
	}
	if l.expected == nil {
		l.expected = map[string][]*queueing{}
	}
	l.expected[owner] = append(l.expected[owner], q)
}

// asked refuses the attempts, other than mine, that expect to find nothing of the owner here,
// if the owner waits for this lock or holds it now.
func (l *lock) asked(owner string, kind queue.Kind, mine *queueing) {
	all := l.expected[owner]
	if len(all) == 0 || !l.state.Entry(owner, kind).Known {
		return
	}
	for _, q := range all {
		if q != mine {
			q.multi.Tell(refused{q.attempt, messages.Reason_WOULD_DEADLOCK, fmt.Sprintf("owner %q has asked for %s by another request "+
				"while this one waited at the gate of a semaphore", owner, l.path)})
		}
	}
	l.expected[owner] = slices.DeleteFunc(all, func(q *queueing) bool { return q != mine })
}

// unexpect forgets attempts that are over, and done.
func (l *lock) unexpect(done *queueing) {
	for owner, all := range l.expected {
		if all = slices.DeleteFunc(all, func(q *queueing) bool { return q == done || q.over.Load() }); len(all) > 0 {
			l.expected[owner] = all
		} else {
			delete(l.expected, owner)
		}
	}
}
