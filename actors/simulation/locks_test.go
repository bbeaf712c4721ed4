package simulation

import (
	"context"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/queue"
)

// The locks are few, so that requests meet.
const (
	root       = "/t"
	allReaders = 1000
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

func specs() map[string]*spec {
	rule := intentions()
	excludes := make([][]bool, len(rule.BlockedBy))
	for i, by := range rule.BlockedBy {
		for j := range rule.BlockedBy {
			excludes[i] = append(excludes[i], by.Has(queue.Kind(j)))
		}
	}
	one := func() *spec { return &spec{room: 1} }
	many := func() *spec { return &spec{room: allReaders} }
	return map[string]*spec{
		root + "/m0": one(), root + "/m1": one(), root + "/local": one(), root + "/delay": {room: 1, delay: lockDelay},
		root + "/rw": many(), root + "/rwlocal": many(),
		root + "/s1": {room: 1, permits: true}, root + "/s3": {room: 3, permits: true},
		root + "/sm": {room: 1, permits: true}, root + "/custom": {excludes: excludes},
		root + "/shared": {permits: true, most: maxShared},
		root + "/simple": one(), root + "/simplerw": many(), root + "/election": one(),
	}
}

// access is a lock as one request wants it.
type access struct {
	actors.Member
	use
	permits int // of a semaphore
}

// locker is any handle.
type locker interface {
	Path() string
	Acquire(context.Context, ...actors.Option) *actors.Future[*actors.Grant]
}

// memberForms and aloneForms are how many forms member and alone choose from. Of these a
// seed has some, so that requests meet.
const (
	memberForms = 6
	aloneForms  = 10
)

func pickOne(r *rand.Rand, some []int) int { return some[r.IntN(len(some))] }

// member is a lock that may be part of a multi-lock.
func (p *process) member(r *rand.Rand) access {
	l := p.locks
	pick := func(m actors.Member, kind, weight int) access {
		return access{Member: m, use: use{m.Path(), kind, weight}, permits: 1}
	}
	switch pickOne(r, p.w.plan.members) {
	case 0:
		return pick(l.Mutex(root+"/m0"), 0, 1)
	case 1:
		return pick(l.Mutex(root+"/m1"), 0, 1)
	case 2:
		if r.IntN(2) == 0 {
			return pick(l.RWMutex(root+"/rw").Write(), 0, allReaders)
		}
		return pick(l.RWMutex(root+"/rw").Read(), 0, 1)
	case 3:
		return pick(l.Semaphore(root+"/s1", 1), 0, 1)
	case 4:
		return pick(l.Semaphore(root+"/s3", 3), 0, 1)
	default:
		kind := r.IntN(len(intentionKinds))
		return pick(l.Custom(root+"/custom", "intentions", intentions(), intentionKinds...).Kind(intentionKinds[kind]), kind, 1)
	}
}

// at is a member lock at a path, for reading or writing if it has both.
func (p *process) at(path string, r *rand.Rand) access {
	l := p.locks
	switch path {
	case root + "/m0", root + "/m1":
		return access{Member: l.Mutex(path), use: use{path, 0, 1}}
	case root + "/rw":
		if r.IntN(2) == 0 {
			return access{Member: l.RWMutex(path).Write(), use: use{path, 0, allReaders}}
		}
		return access{Member: l.RWMutex(path).Read(), use: use{path, 0, 1}}
	}
	return access{}
}

// alone is any lock.
func (p *process) alone(r *rand.Rand) access {
	l := p.locks
	pick := func(m actors.Member, kind, weight int) access {
		return access{Member: m, use: use{m.Path(), kind, weight}}
	}
	local := p.w.rand(p.name, 2) // the options are one for all requests of a process
	p.budget = uint32(1 + local.IntN(10))
	options := actors.LocalQueue(actors.LocalQueueConfig{Grants: int(p.budget), Time: time.Duration(1+local.IntN(2000)) * time.Millisecond,
		Linger: time.Duration(1+local.IntN(2000)) * time.Millisecond})
	switch pickOne(r, p.w.plan.alone) {
	case 0:
		return pick(l.Mutex(root+"/local", options), 0, 1)
	case 1:
		return pick(l.Mutex(root+"/delay", actors.LockDelay(lockDelay)), 0, 1)
	case 2:
		return pick(l.RWMutex(root+"/rwlocal", options).Write(), 0, allReaders)
	case 3:
		return pick(l.RWMutex(root+"/rwlocal", options).Read(), 0, 1)
	case 4:
		a := pick(l.Semaphore(root+"/s3", 3), 0, 1+r.IntN(3))
		a.permits = a.weight
		return a
	case 5:
		return pick(l.SemaphoreMutex(root+"/sm"), 0, 1)
	case 6:
		return access{Member: l.SimpleMutex(root + "/simple"), use: use{root + "/simple", 0, 1}}
	case 7:
		if r.IntN(2) == 0 {
			return access{Member: l.SimpleRWMutex(root + "/simplerw").Write(), use: use{root + "/simplerw", 0, allReaders}}
		}
		return access{Member: l.SimpleRWMutex(root + "/simplerw").Read(), use: use{root + "/simplerw", 0, 1}}
	case 8:
		a := pick(l.Semaphore(root+"/shared", firstShared, actors.SharedPermits(sharedCount)), 0, 1+r.IntN(2))
		a.permits = a.weight
		return a
	default:
		return p.member(r)
	}
}

const lockDelay = 2 * time.Second

func isSimple(path string) bool { return strings.HasPrefix(path, root+"/simple") }

// mayStay reports whether a node may be there when all is over.
func (w *world) mayStay(path string) bool {
	if strings.HasSuffix(path, "/locks") || strings.HasSuffix(path, "/leases") {
		return true
	}
	if path == root+"/delay-__held__" { // after an unclean end it stays until a holder releases
		return w.faulty > 0
	}
	return w.specs[path] != nil
}
