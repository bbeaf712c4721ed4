package failures

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
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// lockUse is a handle, and the share of the lock that a request for it gets.
type lockUse struct {
	locktest.Handle
	locktest.Share
	single bool // the lock cannot be a member of a multi-lock
}

func wholeOf(l locktest.Handle) lockUse { return lockUse{Handle: l, Share: locktest.Whole(l.Path())} }

// processLocks are the locks of one connection.
type processLocks struct {
	locktest.Connection
	path string
}

func (p *processLocks) mutex(i int) lockUse {
	return wholeOf(p.Locks.Mutex(fmt.Sprint(p.path, "-m", i)))
}

func readOrWrite(read, write locktest.Handle, writes bool) lockUse {
	if writes {
		return wholeOf(write)
	}
	return lockUse{Handle: read, Share: locktest.Reader(read.Path())}
}

func (p *processLocks) readWrite(writes bool) lockUse {
	rw := p.Locks.RWMutex(p.path + "-rw")
	return readOrWrite(rw.Read(), rw.Write(), writes)
}

// custom is a read-write lock by a rule of its own, in which no kind re-enters another.
func (p *processLocks) custom(writes bool) lockUse {
	rule := queue.Rule{Permits: 1, BlockedBy: []queue.KindSet{queue.Kinds(1), queue.Kinds(0, 1)}, Markers: []string{"-view-", "-edit-"},
		Reenter: []queue.KindSet{queue.Kinds(0), queue.Kinds(1)}}
	c := p.Locks.Custom(p.path+"-custom", "document", rule, "view", "edit")
	return readOrWrite(c.Kind("view"), c.Kind("edit"), writes)
}

func (p *processLocks) semaphore(room, weight int) lockUse {
	path := fmt.Sprint(p.path, "-s", room)
	return lockUse{Handle: p.Locks.Semaphore(path, room), Share: locktest.Share{LockPath: path, Room: room, Weight: weight, Permits: true}}
}

// single returns a random lock that cannot be a member of a multi-lock.
func (p *processLocks) single() lockUse {
	u := []lockUse{
		wholeOf(p.Locks.Mutex(p.path+"-local", fewGrants)),
		wholeOf(p.Locks.Mutex(p.path+"-delayed", actors.LockDelay(100*time.Millisecond))),
	}[rand.N(2)]
	u.single = true
	return u
}

// members returns a lock of each recipe that may be a member of a multi-lock, in a random order.
func (p *processLocks) members() []lockUse {
	path := p.path + "-c" // of a semaphore with shared permits
	counted := lockUse{Handle: p.Locks.Semaphore(path, 1, actors.SharedPermits(p.path+"-count")), Share: locktest.Share{LockPath: path, Room: 1, Weight: 1, Permits: true}}
	all := []lockUse{p.mutex(0), p.mutex(1), p.readWrite(rand.N(2) == 0), p.custom(rand.N(2) == 0), p.semaphore(1, 1), p.semaphore(2, 1), counted}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

func (p *processLocks) multi(all []lockUse) *actors.MultiLock {
	var members []actors.Member
	for _, u := range all {
		members = append(members, u.Handle.(actors.Member))
	}
	return p.Locks.MultiLock(members...)
}

// randomClient acquires random locks of one connection.
type randomClient struct {
	*locktest.Fixture
	processLocks *processLocks
	*locktest.Ledger
	name     string
	requests int
	outages  bool          // the connection may be lost for longer than a request waits
	maxHold  time.Duration // of virtual time
}

// acquire acquires all of the locks, by one handle or a multi-lock. It returns nil if the request
// fails. The request may fail with the error allowed.
func (c *randomClient) acquire(owner string, allowed error, all []lockUse, options ...actors.Option) *actors.Grant {
	g, err := c.request(owner, all, options...)
	// A try does not wait for a connection.
	if err != nil && (allowed == nil || !errors.Is(err, allowed) && !errors.Is(err, actors.ErrSuspended)) && !c.isLoss(err) {
		c.Error(err)
	}
	return g
}

// reenter has the owner of held, which may be nil, enter again what it has. After the loss of a
// multi-lock the release of its other members takes a moment: until then a request for them would
// wait for its own owner.
func (c *randomClient) reenter(held *actors.Grant, all []lockUse) *actors.Grant {
	g, err := c.request(c.name, all)
	switch {
	case errors.Is(err, actors.ErrDeadlock) && held != nil:
		select {
		case <-held.Done():
		case <-locktest.Within(c).Done():
			c.Errorf("%v, and no grant is lost", err)
		}
	case err != nil && !errors.Is(err, actors.ErrDeadlock) && !c.isLoss(err):
		c.Error(err)
	}
	return g
}

// request acquires all of the locks.
func (c *randomClient) request(owner string, all []lockUse, options ...actors.Option) (*actors.Grant, error) {
	var lock locktest.Handle
	if len(all) == 1 && (all[0].Weight == 2 || rand.N(2) == 0 || all[0].single) {
		lock = all[0].Handle
		if all[0].Permits {
			options = append(options, actors.Permits(all[0].Weight))
		}
	} else {
		lock = c.processLocks.multi(all)
	}
	if owner != "" {
		options = append(options, actors.WithOwner(actors.Owner(owner)))
	} else {
		c.requests++
		owner = fmt.Sprint(c.name, "-", c.requests)
	}
	wait := zktest.TimeLimit
	if c.outages {
		wait *= 10 // of virtual time: outages of all processes in turn may take more than a minute
	}
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	g, err := lock.Lock(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", owner, lock.Path(), err)
	}
	var shares []locktest.Share
	for _, u := range all {
		shares = append(shares, u.Share)
	}
	c.EnterAll(&c.processLocks.Connection, owner, g, shares...)
	return g, nil
}

// isLoss reports whether an error is the result of a lost session, of the deletion of a node by
// another client, or of an outage.
func (c *randomClient) isLoss(err error) bool {
	return isLoss(err) || c.outages && errors.Is(err, actors.ErrSuspended)
}

// release releases the grants that are not nil, after a while in virtual time.
func (c *randomClient) release(grants ...*actors.Grant) {
	var releases []*actors.Future[struct{}]
	if c.maxHold > 0 {
		<-time.After(rand.N(c.maxHold))
	}
	for _, g := range grants {
		if g == nil {
			continue
		}
		c.Leave(g)
		if err := g.Err(); err != nil && !c.isLoss(err) {
			c.Errorf("%s: %v", c.name, err)
		}
		releases = append(releases, g.Release()) // the next grant may come at any moment
	}
	for _, r := range releases { // so that the owner's next request is no re-entry
		ctx := locktest.Within(c)
		if c.outages {
			ctx = context.Background()
		}
		if _, err := r.Wait(ctx); err != nil && !c.isLoss(err) {
			c.Errorf("%s: %v", c.name, err)
		}
	}
}

// acquireOnce acquires and releases random locks in a random way.
func (c *randomClient) acquireOnce() {
	all := c.processLocks.members()
	some := all[:2+rand.N(2)]
	switch rand.N(8) {
	case 0:
		c.release(c.acquire("", nil, []lockUse{c.processLocks.single()}))
	case 1:
		c.release(c.acquire("", nil, []lockUse{c.processLocks.semaphore(2, 2)}))
	case 2:
		c.release(c.acquire("", nil, all[:1]))
	case 3:
		c.release(c.acquire("", actors.ErrNotAcquired, some, actors.Try()))
	case 4:
		c.release(c.acquire("", actors.ErrTimedOut, some, actors.WithTimeout(rand.N(10*time.Millisecond)+1)))
	case 5: // re-entry: of a multi-lock, or of one lock, also to read what is held to write
		some = slices.DeleteFunc(some, func(u lockUse) bool { return u.Permits })
		if len(some) == 0 {
			return
		}
		some[0].single = len(some) == 1 // both requests are for the lock itself
		g := c.acquire(c.name, nil, some)
		if some[0].single && some[0].Path() == c.processLocks.path+"-rw" {
			// If another client deletes the node to write, the owner reads on beside other readers.
			some[0] = c.processLocks.readWrite(false)
			some[0].single = true
		}
		h := c.reenter(g, some)
		if len(some) > 1 { // one of what the multi-lock holds
			c.release(c.acquire(c.name, actors.ErrDeadlock, some[:1]))
		}
		c.release(g, h)
	case 6: // a request for several, of which the owner holds one
		one := slices.DeleteFunc(slices.Clone(some), func(u lockUse) bool { return u.Permits })
		if len(one) == 0 {
			return
		}
		g := c.acquire(c.name, nil, one[:1])
		h, err := c.request(c.name, some, actors.WithTimeout(time.Second))
		waits := g == nil || g.Err() != nil // the owner has lost what it would be refused for
		if err != nil && !errors.Is(err, actors.ErrDeadlock) && !c.isLoss(err) && !(waits && errors.Is(err, actors.ErrTimedOut)) {
			c.Error(err)
		}
		c.release(h, g)
	default:
		c.release(c.acquire("", nil, some))
	}
}

// TestHistoryOfTokens has clients of several processes acquire locks of all recipes, and
// multi-locks of them, while connections are cut, sessions end and other clients delete nodes.
// Conflicting grants never overlap, and each grant has a greater token than all earlier grants that
// it conflicts with, of whichever recipe. Grants that are about to be lost do not count.
func TestHistoryOfTokens(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		b.NeedsResumption() // a lost session holds its locks for a minute
		l := locktest.NewLedger(b)
		directories := []string{"-m0", "-m1", "-rw", "-custom", "-local", "-delayed", "-s1/locks", "-s1/leases", "-s2/locks", "-s2/leases", "-c/locks", "-c/leases"}
		var proxies []*zktest.TCPProxy
		var processes []*processLocks
		var wg sync.WaitGroup
		enough := make(chan struct{})
		for i := range 3 {
			proxies = append(proxies, zktest.Proxy(b, b.Addr()))
			processes = append(processes, &processLocks{locktest.Connection{Locks: locktest.Connect(b.T, proxies[i].Addr())}, b.LockPath})
			for j := range 6 {
				c := &randomClient{Fixture: b, processLocks: processes[i], Ledger: l, name: fmt.Sprint("client ", i, ".", j)}
				wg.Go(func() {
					for !locktest.IsClosed(enough) {
						c.acquireOnce()
					}
				})
			}
		}
		conn := b.Client(b)
		for fault := range 24 {
			for range 10 + rand.N(40) {
				locktest.Closes(b, l.Granted, "the wait for a grant")
			}
			switch i := rand.N(len(processes)); fault % 8 {
			case 7:
				l.Expire(b, conn, &processes[i].Connection)
			case 1, 4:
				proxies[i].Cut()
			default:
				l.DeleteNode(b, conn, directories)
			}
		}
		close(enough)
		wg.Wait()
		b.Logf("%v grants, %d of them lost at once, %d nodes deleted, %d errors", l.Grants, l.Lost, len(l.Deleted), l.Errs)
		for _, end := range directories {
			b.WaitNodes(0, end)
		}
		for _, p := range processes { // a semaphore in use watches its count
			locktest.Must(b, p.Locks.Close())
		}
		locktest.Must(b, conn.Delete(b.LockPath+"-count", -1))
	})
}
