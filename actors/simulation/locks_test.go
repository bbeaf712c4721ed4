package simulation

import (
	"context"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/group"
	"github.com/actorlock/actorlock/actors/queue"
)

// The locks are few, so that requests meet.
const (
	root       = "/t"
	rwCapacity = 1000
)

// intentions is a custom rule: shared and exclusive intentions, readers and a writer.
func intentions() queue.Rule {
	const is, ix, s, x = 0, 1, 2, 3
	return queue.Rule{
		Permits:   1,
		BlockedBy: []queue.KindSet{is: queue.Kinds(x), ix: queue.Kinds(s, x), s: queue.Kinds(ix, x), x: queue.Kinds(is, ix, s, x)},
		Markers:   []string{"-is-", "-ix-", "-s-", "-x-"},
		Reenter:   []queue.KindSet{is: queue.Kinds(is), ix: queue.Kinds(ix), s: queue.Kinds(s, x), x: queue.Kinds(x)},
	}
}

var intentionKinds = []string{"IS", "IX", "S", "X"}

func (p *plan) lockSpecs() map[string]*spec {
	rule := intentions()
	excludes := make([][]bool, len(rule.BlockedBy))
	for i, by := range rule.BlockedBy {
		for j := range rule.BlockedBy {
			excludes[i] = append(excludes[i], by.Has(queue.Kind(j)))
		}
	}
	one := func() *spec { return &spec{capacity: 1} }
	many := func() *spec { return &spec{capacity: rwCapacity} }
	all := map[string]*spec{
		root + "/m0": one(), root + "/m1": one(), root + "/local": one(), root + "/delay": {capacity: 1, lockDelay: lockDelay},
		root + "/rw": many(), root + "/rwlocal": many(),
		root + "/s1": {capacity: 1, permits: true}, root + "/s3": {capacity: 3, permits: true},
		root + "/sm": {capacity: 1, permits: true}, root + "/custom": {excludes: excludes},
		root + "/shared":   {permits: true, maxCapacity: maxPermits},
		root + "/election": one(),
	}
	for n := range p.partitions {
		all[group.LockPath(groupPath, n)] = one()
	}
	if p.partitions > 0 {
		all[group.Members(groupPath)] = many()
	}
	return all
}

// access is a lock, and how one request uses it.
type access struct {
	actors.Member
	use
	permits int // of a semaphore
}

// accessTo returns an access with one permit.
func accessTo(m actors.Member, kind, weight int) access {
	return access{Member: m, use: use{m.Path(), kind, weight}, permits: 1}
}

// lockHandle is a handle of any recipe.
type lockHandle interface {
	Path() string
	Acquire(context.Context, ...actors.Option) *actors.Future[*actors.Grant]
}

// memberFormCount and anyFormCount are how many forms memberLock and anyLock choose from. A seed
// uses only some of these, so that requests meet.
const (
	memberFormCount = 6
	anyFormCount    = 8
)

// memberLock returns a random lock that may be a member of a multi-lock.
func (p *process) memberLock(r *rand.Rand) access {
	l := p.locks
	form := pick(r, p.sim.plan.memberForms)
	if form == memberFormCount-1 && p.isClient { // a lock server does not know the rule
		form = r.IntN(form)
	}
	switch form {
	case 0:
		return accessTo(l.Mutex(root+"/m0"), 0, 1)
	case 1:
		return accessTo(l.Mutex(root+"/m1"), 0, 1)
	case 2:
		if r.IntN(2) == 0 {
			return accessTo(l.RWMutex(root+"/rw").Write(), 0, rwCapacity)
		}
		return accessTo(l.RWMutex(root+"/rw").Read(), 0, 1)
	case 3:
		return accessTo(l.Semaphore(root+"/s1", 1), 0, 1)
	case 4:
		return accessTo(l.Semaphore(root+"/s3", 3), 0, 1)
	default:
		kind := r.IntN(len(intentionKinds))
		return accessTo(l.Custom(root+"/custom", "intentions", intentions(), intentionKinds...).Kind(intentionKinds[kind]), kind, 1)
	}
}

// memberLockAt returns the lock at a path. It chooses at random between reading and writing.
func (p *process) memberLockAt(path string, r *rand.Rand) access {
	l := p.locks
	switch path {
	case root + "/m0", root + "/m1":
		return accessTo(l.Mutex(path), 0, 1)
	case root + "/rw":
		if r.IntN(2) == 0 {
			return accessTo(l.RWMutex(path).Write(), 0, rwCapacity)
		}
		return accessTo(l.RWMutex(path).Read(), 0, 1)
	}
	return access{}
}

// anyLock returns a random lock of any recipe.
func (p *process) anyLock(r *rand.Rand) access {
	l := p.locks
	local := p.sim.rand(p.name, 2) // all requests of a process need the same options
	if p.sim.plan.lockServers > 0 {
		local = p.sim.rand("local", 2) // and so do those of a lock server's clients
	}
	p.budget = uint32(1 + local.IntN(10))
	options := actors.LocalQueue(actors.LocalQueueConfig{Grants: int(p.budget), Time: time.Duration(1+local.IntN(2000)) * time.Millisecond,
		Linger: time.Duration(1+local.IntN(2000)) * time.Millisecond})
	switch pick(r, p.sim.plan.anyForms) {
	case 0:
		return accessTo(l.Mutex(root+"/local", options), 0, 1)
	case 1:
		return accessTo(l.Mutex(root+"/delay", actors.LockDelay(lockDelay)), 0, 1)
	case 2:
		return accessTo(l.RWMutex(root+"/rwlocal", options).Write(), 0, rwCapacity)
	case 3:
		return accessTo(l.RWMutex(root+"/rwlocal", options).Read(), 0, 1)
	case 4:
		acc := accessTo(l.Semaphore(root+"/s3", 3), 0, 1+r.IntN(3))
		acc.permits = acc.weight
		return acc
	case 5:
		return accessTo(l.SemaphoreMutex(root+"/sm"), 0, 1)
	case 6:
		acc := accessTo(l.Semaphore(root+"/shared", initialPermits, actors.SharedPermits(countPath)), 0, 1+r.IntN(2))
		acc.permits = acc.weight
		return acc
	default:
		return p.memberLock(r)
	}
}

const lockDelay = 2 * time.Second

// mayRemain reports whether a node may exist at the end of a run.
func (sim *simulation) mayRemain(path string) bool {
	if strings.HasSuffix(path, "/locks") || strings.HasSuffix(path, "/leases") {
		return true
	}
	if path == root+"/delay-__held__" { // after an unclean end the held marker stays until a holder releases
		_, unclean := sim.uncleanEnd[root+"/delay"] // perhaps by HoldAtMost
		return unclean || sim.lastFault > 0
	}
	return sim.specs[path] != nil || isGroupDirectory(path)
}
