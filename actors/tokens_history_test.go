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

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// lockUse is a lock, and what a request wants of it.
type lockUse struct {
	handle
	share
	alone bool // it is in no multi-lock
}

func wholeOf(l handle) lockUse { return lockUse{handle: l, share: whole(l.Path())} }

// processLocks is the locks of one connection.
type processLocks struct {
	locks *actors.Locks
	path  string

	deadBefore int64 // czxid: what was created before is of a session that is lost
}

func (s *processLocks) mutex(i int) lockUse {
	return wholeOf(s.locks.Mutex(fmt.Sprint(s.path, "-m", i)))
}

func readOrWrite(read, write handle, writes bool) lockUse {
	if writes {
		return wholeOf(write)
	}
	return lockUse{handle: read, share: reader(read.Path())}
}

func (s *processLocks) readWrite(writes bool) lockUse {
	rw := s.locks.RWMutex(s.path + "-rw")
	return readOrWrite(rw.Read(), rw.Write(), writes)
}

// custom is a read-write lock by a rule of its own, in which no kind re-enters another.
func (s *processLocks) custom(writes bool) lockUse {
	rule := queue.Rule{Permits: 1, BlockedBy: []queue.KindSet{queue.Kinds(1), queue.Kinds(0, 1)}, Markers: []string{"-look-", "-edit-"},
		Reenter: []queue.KindSet{queue.Kinds(0), queue.Kinds(1)}}
	c := s.locks.Custom(s.path+"-custom", "document", rule, "look", "edit")
	return readOrWrite(c.Kind("look"), c.Kind("edit"), writes)
}

func (s *processLocks) semaphore(room, weight int) lockUse {
	path := fmt.Sprint(s.path, "-s", room)
	return lockUse{handle: s.locks.Semaphore(path, room), share: share{path, room, weight, true}}
}

// single is a lock that is in no multi-lock.
func (s *processLocks) single() lockUse {
	rw := s.locks.SimpleRWMutex(s.path + "-simple-rw")
	a := []lockUse{
		wholeOf(s.locks.Mutex(s.path+"-local", fewGrants)),
		wholeOf(s.locks.Mutex(s.path+"-delayed", actors.LockDelay(100*time.Millisecond))),
		wholeOf(s.locks.SimpleMutex(s.path + "-simple")),
		readOrWrite(rw.Read(), rw.Write(), rand.N(2) == 0),
	}[rand.N(4)]
	a.alone = true
	return a
}

// members are all that may be in a multi-lock, each of another path, in a random order.
func (s *processLocks) members() []lockUse {
	path := s.path + "-c" // a semaphore whose permits a node tells
	counted := lockUse{handle: s.locks.Semaphore(path, 1, actors.SharedPermits(s.path+"-count")), share: share{path, 1, 1, true}}
	all := []lockUse{s.mutex(0), s.mutex(1), s.readWrite(rand.N(2) == 0), s.custom(rand.N(2) == 0), s.semaphore(1, 1), s.semaphore(2, 1), counted}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

func (s *processLocks) multi(all []lockUse) *actors.MultiLock {
	var members []actors.Member
	for _, a := range all {
		members = append(members, a.handle.(actors.Member))
	}
	return s.locks.MultiLock(members...)
}

// visitor is a client of the locks of one connection.
type visitor struct {
	*testLock
	processLocks *processLocks
	*ledger
	name  string
	n     int
	away  bool          // it may be away for so long that nothing is granted in time
	holds time.Duration // at most, in virtual time
}

// take acquires all of the accesses, by one lock or a multi-lock. It returns nil if the
// request may fail and does.
func (v *visitor) take(owner string, may error, all []lockUse, options ...actors.Option) *actors.Grant {
	g, err := v.ask(owner, all, options...)
	// A try does not wait for a connection.
	if err != nil && (may == nil || !errors.Is(err, may) && !errors.Is(err, actors.ErrSuspended)) && !v.lost(err) {
		v.Error(err)
	}
	return g
}

// takeAgain is take for the owner of held, which may be nil, to enter what that has. After the loss
// of a multi-lock the members that were not lost are still being released for a moment: until then
// a request for them is one that waits for its own owner.
func (v *visitor) takeAgain(held *actors.Grant, all []lockUse) *actors.Grant {
	g, err := v.ask(v.name, all)
	switch {
	case errors.Is(err, actors.ErrDeadlock) && held != nil:
		select {
		case <-held.Done():
		case <-within(v).Done():
			v.Errorf("%v, and nothing is lost", err)
		}
	case err != nil && !errors.Is(err, actors.ErrDeadlock) && !v.lost(err):
		v.Error(err)
	}
	return g
}

// ask acquires all of the accesses.
func (v *visitor) ask(owner string, all []lockUse, options ...actors.Option) (*actors.Grant, error) {
	var lock handle
	if len(all) == 1 && (all[0].weight == 2 || rand.N(2) == 0 || all[0].alone) {
		lock = all[0].handle
		if all[0].permits {
			options = append(options, actors.Permits(all[0].weight))
		}
	} else {
		lock = v.processLocks.multi(all)
	}
	if owner != "" {
		options = append(options, actors.WithOwner(actors.Owner(owner)))
	} else {
		v.n++
		owner = fmt.Sprint(v.name, "-", v.n)
	}
	wait := patience
	if v.away {
		wait *= 10 // of virtual time: outages of all processes in turn may take more than a minute
	}
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	g, err := lock.Lock(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", owner, lock.Path(), err)
	}
	var shares []share
	for _, a := range all {
		shares = append(shares, a.share)
	}
	v.enterAll(v.processLocks, owner, g, shares...)
	return g, nil
}

// lost reports whether an error is what a lost session means, a node that another client has
// deleted, or an outage.
func (v *visitor) lost(err error) bool {
	return isLoss(err) || v.away && errors.Is(err, actors.ErrSuspended)
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
		if v.away {
			ctx = context.Background()
		}
		if _, err := r.Wait(ctx); err != nil && !v.lost(err) {
			v.Errorf("%s: %v", v.name, err)
		}
	}
}

// visit is one turn.
func (v *visitor) visit() {
	all := v.processLocks.members()
	some := all[:2+rand.N(2)]
	switch rand.N(8) {
	case 0:
		v.giveBack(v.take("", nil, []lockUse{v.processLocks.single()}))
	case 1:
		v.giveBack(v.take("", nil, []lockUse{v.processLocks.semaphore(2, 2)}))
	case 2:
		v.giveBack(v.take("", nil, all[:1]))
	case 3:
		v.giveBack(v.take("", actors.ErrNotAcquired, some, actors.Try()))
	case 4:
		v.giveBack(v.take("", actors.ErrTimedOut, some, actors.WithTimeout(rand.N(10*time.Millisecond)+1)))
	case 5: // re-entry: of all, of a part, and to read what is held to write
		some = slices.DeleteFunc(some, func(a lockUse) bool { return a.permits })
		if len(some) == 0 {
			return
		}
		g := v.take(v.name, nil, some)
		again := slices.Clone(some)
		for i := range again {
			if again[i].Path() == v.processLocks.path+"-rw" {
				again[i] = v.processLocks.readWrite(false)
			}
		}
		h := v.takeAgain(g, again)
		v.giveBack(g, v.takeAgain(g, again[:1]), h)
	case 6: // it has one of several: that must not go wrong
		one := slices.DeleteFunc(slices.Clone(some), func(a lockUse) bool { return a.permits })
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

// expire ends the session of the locks, whose grants are about to be lost.
func (l *ledger) expire(b *testLock, conn *zk.Conn, s *processLocks) {
	l.mu.Lock()
	defer l.mu.Unlock()
	session := s.locks.Session()
	if session.State != messages.SessionState_CONNECTED {
		return
	}
	b.Expire(b, session.ID)
	node, err := conn.Create(b.path+"-now-", nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
	must(b, err)
	_, stat, err := conn.Exists(node)
	must(b, err)
	must(b, conn.Delete(node, -1))
	s.deadBefore = stat.Czxid
	l.bury()
}

// meddle deletes a node in one of the directories.
func (l *ledger) meddle(b *testLock, conn *zk.Conn, directories []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, i := range rand.Perm(len(directories)) {
		directory := b.path + directories[i]
		nodes := b.Nodes(b, directory)
		if len(nodes) == 0 {
			continue
		}
		node := directory + "/" + nodes[rand.N(len(nodes))]
		if err := conn.Delete(node, -1); err == nil {
			l.gone[node] = true
			l.bury()
		}
		return
	}
}

// TestHistoryOfTokens has clients of several processes take locks of all recipes, and
// multi-locks of them, while connections are cut, sessions end and other clients delete nodes.
// At no moment do conflicting grants overlap, and each has a greater token than all those
// before it that it conflicts with, by whichever recipe they came. Grants that are about to
// be lost do not count.
func TestHistoryOfTokens(t *testing.T) {
	besides(t, func(b *testLock) {
		l := newLedger(b)
		directories := []string{"-m0", "-m1", "-rw", "-custom", "-local", "-delayed", "-s1/locks", "-s1/leases", "-s2/locks", "-s2/leases", "-c/locks", "-c/leases"}
		var proxies []*zktest.TCPProxy
		var shops []*processLocks
		var wg sync.WaitGroup
		enough := make(chan struct{})
		for i := range 3 {
			proxies = append(proxies, zktest.Proxy(b, b.Addr()))
			shops = append(shops, &processLocks{locks: connect(b.T, proxies[i].Addr()), path: b.path})
			for j := range 6 {
				v := &visitor{testLock: b, processLocks: shops[i], ledger: l, name: fmt.Sprint("client ", i, ".", j)}
				wg.Go(func() {
					for !isClosed(enough) {
						v.visit()
					}
				})
			}
		}
		conn := b.Client(b)
		for trouble := range 24 {
			for range 10 + rand.N(40) {
				closes(b, l.news, "the wait for a grant")
			}
			switch i := rand.N(len(shops)); trouble % 8 {
			case 7:
				l.expire(b, conn, shops[i])
			case 1, 4:
				proxies[i].Cut()
			default:
				l.meddle(b, conn, directories)
			}
		}
		close(enough)
		wg.Wait()
		b.Logf("%v grants, %d of them lost at once, %d nodes deleted, %d errors", l.grants, l.lost, len(l.gone), l.errs)
		for _, end := range append(directories, "-simple", "-simple-rw") {
			b.waitNodes(0, end)
		}
		for _, s := range shops { // a semaphore in use watches its count
			must(b, s.locks.Close())
		}
		must(b, conn.Delete(b.path+"-count", -1))
	})
}
