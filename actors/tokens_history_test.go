package actors_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// access is what one request wants of one lock: weight of its room. Two accesses conflict
// if both do not fit.
type access struct {
	actors.Member
	room, weight int
	permits      bool // each request has its own; there is no re-entry
}

func (a access) conflicts(weight int) bool { return a.weight+weight > a.room }

// shop is the locks of one connection.
type shop struct {
	locks *actors.Locks
	path  string
}

const manyReaders = 1000

func (s shop) mutex(i int) access {
	return access{Member: s.locks.Mutex(fmt.Sprint(s.path, "-m", i)), room: 1, weight: 1}
}

func (s shop) readWrite(write bool) access {
	rw := s.locks.RWMutex(s.path + "-rw")
	if write {
		return access{Member: rw.Write(), room: manyReaders, weight: manyReaders}
	}
	return access{Member: rw.Read(), room: manyReaders, weight: 1}
}

func (s shop) semaphore(room, weight int) access {
	return access{Member: s.locks.Semaphore(fmt.Sprint(s.path, "-s", room), room), room: room, weight: weight, permits: true}
}

func (s shop) local() access {
	return access{Member: s.locks.Mutex(s.path+"-local", fewGrants), room: 1, weight: 1}
}

// members are all that may be in a multi-lock, each of another path, in a random order.
func (s shop) members() []access {
	all := []access{s.mutex(0), s.mutex(1), s.readWrite(rand.N(2) == 0), s.semaphore(1, 1), s.semaphore(2, 1)}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

func (s shop) multi(all []access) *actors.MultiLock {
	var members []actors.Member
	for _, a := range all {
		members = append(members, a.Member)
	}
	return s.locks.MultiLock(members...)
}

// ledger keeps who holds what, and the greatest tokens of those who did: what a resource
// behind each lock would remember.
type ledger struct {
	mu     sync.Mutex
	books  map[string]*book // by path
	grants int
	errs   []string
}

type book struct {
	holders []holder
	newest  map[int]actors.Token // of grants, by weight
}

type holder struct {
	owner string
	grant *actors.Grant
	access
}

// enter notes a grant, by which owner has all of the accesses.
func (l *ledger) enter(owner string, g *actors.Grant, all ...access) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.grants++
	for _, a := range all {
		b := l.books[a.Path()]
		if b == nil {
			b = &book{newest: map[int]actors.Token{}}
			l.books[a.Path()] = b
		}
		again, used := false, map[string]int{}
		b.holders = slices.DeleteFunc(b.holders, func(h holder) bool { return h.grant.Err() != nil }) // its owner has been told
		b.holders = append(b.holders, holder{owner, g, a})
		for i, h := range b.holders {
			mine := h.owner == owner && !a.permits
			again = again || mine && h.grant != g && h.grant.Token() == g.Token()
			key := h.owner
			if a.permits {
				key = fmt.Sprint(i)
			}
			used[key] = max(used[key], h.weight)
		}
		total := 0
		for _, n := range used {
			total += n
		}
		if total > a.room {
			l.errs = append(l.errs, fmt.Sprintf("%s is held by %d of %d: %v", a.Path(), total, a.room, b.holders))
		}
		for weight, newest := range b.newest {
			if !again && a.conflicts(weight) && g.Token().Compare(newest) <= 0 {
				l.errs = append(l.errs, fmt.Sprintf("%s: token %v of %s for %s comes after %v", a.Path(), g.Token(), owner, g.Path(), newest))
			}
		}
		if g.Token().Compare(b.newest[a.weight]) > 0 {
			b.newest[a.weight] = g.Token()
		}
	}
}

func (l *ledger) leave(g *actors.Grant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range l.books {
		b.holders = slices.DeleteFunc(b.holders, func(h holder) bool { return h.grant == g })
	}
}

// visitor is a client of a shop.
type visitor struct {
	*bed
	shop shop
	*ledger
	name  string
	n     int
	lossy bool          // sessions may be lost
	holds time.Duration // at most, in virtual time
}

func (v *visitor) lost(err error) bool {
	return v.lossy && (errors.Is(err, actors.ErrSessionLost) || errors.Is(err, actors.ErrSuspended))
}

// take acquires all of the accesses, by one lock or a multi-lock. It returns nil if the
// request may fail and does.
func (v *visitor) take(owner string, may error, all []access, options ...actors.Option) *actors.Grant {
	var lock locker = v.shop.multi(all)
	if len(all) == 1 && (all[0].weight == 2 || rand.N(2) == 0 || all[0].Path() == v.shop.local().Path()) {
		lock = all[0].Member.(locker)
		if all[0].permits {
			options = append(options, actors.Permits(all[0].weight))
		}
	}
	if owner != "" {
		options = append(options, actors.WithOwner(actors.Owner(owner)))
	} else {
		v.n++
		owner = fmt.Sprint(v.name, "-", v.n)
	}
	wait := patience
	if v.lossy {
		wait = time.Hour
	}
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	g, err := lock.Lock(ctx, options...)
	if err != nil {
		if v.lost(err) {
			return nil
		}
		if may == nil || !errors.Is(err, may) && !errors.Is(err, actors.ErrSuspended) { // a try does not wait for a connection
			v.Errorf("%s: %v", owner, err)
		}
		return nil
	}
	v.enter(owner, g, all...)
	return g
}

func (v *visitor) giveBack(grants ...*actors.Grant) {
	var releases []*actors.Future[struct{}]
	if v.holds > 0 {
		<-time.After(rand.N(v.holds))
	}
	for _, g := range grants {
		if g == nil {
			continue
		}
		v.leave(g)
		if err := g.Err(); err != nil && !v.lost(err) {
			v.Errorf("%s: %v", v.name, err)
		}
		releases = append(releases, g.Release()) // the next may come at any moment
	}
	for _, r := range releases { // what its owner asks for next is no re-entry
		ctx := within(v)
		if v.lossy {
			ctx = context.Background()
		}
		if _, err := r.Wait(ctx); err != nil && !v.lost(err) {
			v.Errorf("%s: %v", v.name, err)
		}
	}
}

// visit is one turn.
func (v *visitor) visit() {
	all := v.shop.members()
	some := all[:2+rand.N(2)]
	switch rand.N(8) {
	case 0:
		v.giveBack(v.take("", nil, []access{v.shop.local()}))
	case 1:
		v.giveBack(v.take("", nil, []access{v.shop.semaphore(2, 2)}))
	case 2:
		v.giveBack(v.take("", nil, all[:1]))
	case 3:
		v.giveBack(v.take("", actors.ErrNotAcquired, some, actors.Try()))
	case 4:
		v.giveBack(v.take("", actors.ErrTimedOut, some, actors.WithTimeout(rand.N(10*time.Millisecond)+1)))
	case 5: // re-entry: of all, of a part, and to read what is held to write
		some = slices.DeleteFunc(some, func(a access) bool { return a.permits })
		if len(some) == 0 {
			return
		}
		g := v.take(v.name, nil, some)
		again := slices.Clone(some)
		for i := range again {
			if again[i].weight == manyReaders {
				again[i] = v.shop.readWrite(false)
			}
		}
		h := v.take(v.name, nil, again)
		v.giveBack(g, v.take(v.name, nil, again[:1]), h)
	case 6: // it has one of several: that must not go wrong
		one := slices.DeleteFunc(slices.Clone(some), func(a access) bool { return a.permits })
		if len(one) == 0 {
			return
		}
		g := v.take(v.name, nil, one[:1])
		h := v.take(v.name, actors.ErrDeadlock, some, actors.WithTimeout(time.Second))
		v.giveBack(h, g)
	default:
		v.giveBack(v.take("", nil, some))
	}
}

// TestHistoryOfTokens has clients of several processes take mutexes, read-write locks,
// semaphores and multi-locks of all of them, while connections are cut. At no moment do
// conflicting grants overlap, and each has a greater token than all those before it that
// it conflicts with, by whichever recipe they came.
func TestHistoryOfTokens(t *testing.T) {
	t.Parallel()
	onEmbedded(t, func(b *bed) {
		l := &ledger{books: map[string]*book{}}
		var proxies []*zktest.TCPProxy
		var wg sync.WaitGroup
		for i := range 3 {
			proxy := zktest.Proxy(b, b.Addr())
			proxies = append(proxies, proxy)
			s := shop{connect(b.T, proxy.Addr()), b.path}
			for j := range 6 {
				v := &visitor{bed: b, shop: s, ledger: l, name: fmt.Sprint("client ", i, ".", j)}
				wg.Go(func() {
					for range 25 {
						v.visit()
					}
				})
			}
		}
		over := make(chan struct{})
		go func() { wg.Wait(); close(over) }()
		for !isClosed(over) {
			select {
			case <-over:
			case <-time.After(100*time.Millisecond + rand.N(time.Second)):
				proxies[rand.N(len(proxies))].Cut()
			}
		}
		for i, err := range l.errs {
			if i < 10 {
				b.Error(err)
			}
		}
		b.Logf("%d grants, %d errors", l.grants, len(l.errs))
		for _, end := range []string{"-m0", "-m1", "-rw", "-local", "-s1/locks", "-s1/leases", "-s2/locks", "-s2/leases"} {
			zktest.Eventually(b, patience, func() bool { return len(b.Nodes(b, b.path+end)) == 0 }, "no node is left under %s", b.path+end)
		}
	})
}
