package actors_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// A grant of several permits has a node for each, and ends with the deletion of any.
func TestSemaphoreGrantOfSeveral(t *testing.T) {
	each(t, func(b *testLock) {
		s, conn := b.semaphore(4), b.Client(b)
		for lost := range 3 {
			g := lock(b, s, actors.Permits(3), actors.WithData([]byte("mine")))
			nodes := g.Nodes()
			names := b.leases()
			if len(nodes) != 3 || nodes[0] != g.Node() || len(names) != 3 {
				b.Fatalf("nodes %v, first %s; leases %v", nodes, g.Node(), names)
			}
			_, stat, err := conn.Get(nodes[0])
			must(b, err)
			if stat.Czxid != g.Token().Czxid {
				b.Errorf("token %v of %+v", g.Token(), stat)
			}
			must(b, g.Verify(within(b)))
			must(b, b.locks().VerifyToken(within(b), g.Node(), g.Token()))
			if n := len(g.Guard(&zk.DeleteRequest{Path: "/x"})); n != 4 {
				b.Errorf("%d operations", n)
			}
			f := s.Acquire(within(b), actors.Permits(4))
			b.waitSemaphore(1, 7)
			must(b, conn.Delete(nodes[lost], -1))
			// Verify reports it at once, and Done a little later.
			err = g.Verify(within(b))
			is(b, err, actors.ErrNodeDeleted)
			if g.Err() == nil && !strings.Contains(err.Error(), nodes[lost]) {
				b.Errorf("%v does not name %s", err, nodes[lost])
			}
			_, err = b.locks().Multi(within(b), g.Guard(&zk.CreateRequest{Path: b.path + "/x"})...)
			var failed *zkbridge.OpError
			if !errors.As(err, &failed) || failed.Index != lost && g.Err() == nil { // a lost grant guards nothing
				b.Errorf("a guarded write: %v", err)
			}
			closes(b, g.Done(), "the grant")
			is(b, g.Err(), actors.ErrNodeDeleted)
			is(b, failure(b, g.Release()), actors.ErrNodeDeleted)
			unlock(b, result(b, f))
		}
	})
}

func TestSemaphoreTokens(t *testing.T) {
	each(t, func(b *testLock) {
		ss := []*actors.Semaphore{b.semaphore(2), b.semaphore(2)}
		var last actors.Token
		var held []*actors.Grant
		for i := range 10 {
			g := lock(b, ss[i%2], actors.Permits(1+i%2))
			expectIncreasing(b, last, g.Token())
			last = g.Token()
			if held = append(held, g); i%2 == 0 {
				for _, g := range held {
					unlock(b, g)
				}
				held = nil
				continue
			}
			unlock(b, g)
			held = nil
		}
	})
}

// An acquire takes two round trips. It does not wait for the deletion of its request node.
func TestSemaphoreRequests(t *testing.T) {
	each(t, func(b *testLock) {
		conn, directories := b.Client(b), []string{b.path, b.path + "/locks", b.path + "/leases"}
		for _, path := range directories { // which stay when they are empty
			_, err := conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
			must(b, err)
		}
		defer func() {
			for _, path := range slices.Backward(directories) {
				must(b, conn.Delete(path, -1))
			}
		}()
		d := &dialer{}
		s := b.semaphore(3, d.config)
		unlock(b, lock(b, s)) // which reads the directories
		b.waitSemaphore(0, 0)
		lists := 0 // the first tick lists the directory, once
		for _, n := range []int{1, 3} {
			total, ops := d.during(func() {
				g := lock(b, s, actors.Permits(n))
				unlock(b, g)
				b.waitSemaphore(0, 0)
			})
			// One for the request node, one for all leases, and at most one for each deletion.
			lists += ops[embedded.OpGetChildren2]
			if total-lists > 3+n || lists > 1 || ops[embedded.OpGetData] > 0 {
				b.Errorf("%d permits take %d requests: %v", n, total, ops)
			}
		}
		// While there is room no request reads the leases of others.
		g := lock(b, b.semaphore(3))
		b.waitSemaphore(0, 1)
		total, ops := d.during(func() {
			unlock(b, lock(b, s, actors.Permits(2)))
			b.waitSemaphore(0, 1)
		})
		lists += ops[embedded.OpGetChildren2]
		if lists > 1 || ops[embedded.OpGetData] > 0 || total-lists > 5 {
			b.Errorf("beside others: %d requests: %v", total, ops)
		}
		unlock(b, g)
		b.waitSemaphore(0, 0)
	})
}

// Waiters of the same process are granted before ZooKeeper has answered the release.
func TestSemaphoreHandOffWithoutAnswer(t *testing.T) {
	t.Parallel()
	bubble(t, func(b *virtual) { // in which no proof of a node becomes too old
		s := b.semaphore(3)
		g := lock(b, s, actors.Permits(3))
		var fs []*actors.Future[*actors.Grant]
		for range 3 {
			fs = append(fs, s.Acquire(within(b)))
		}
		b.waitSemaphore(3, 6)
		late := s.Acquire(within(b), actors.Permits(2)) // still in the queue
		b.waitSemaphore(4, 8)
		_, err := s.Lock(within(b), actors.Try())
		is(b, err, actors.ErrNotAcquired)
		b.Pause()
		release := g.Release()
		for _, f := range fs {
			result(b, f).Release()
		}
		if isClosed(release.Done()) {
			b.Error("a release is confirmed by a server that does not answer")
		}
		h := result(b, late)
		b.Resume()
		unlock(b, h)
	})
}

func TestSemaphoreOwners(t *testing.T) {
	each(t, func(b *testLock) {
		s, me := b.semaphore(3), actors.WithOwner("me")
		g, h := lock(b, s, me), lock(b, s, me)
		if g.Node() == h.Node() {
			b.Error("two requests of one owner share a permit")
		}
		begun := time.Now()
		_, err := s.Lock(within(b), me, actors.Permits(2))
		is(b, err, actors.ErrDeadlock)
		if took := time.Since(begun); took > timeLimit/2 || !strings.Contains(err.Error(), `owner "me"`) {
			b.Errorf("after %v: %v", took, err)
		}
		k := lock(b, s, me)
		_, err = s.Lock(within(b), me, actors.Try())
		is(b, err, actors.ErrDeadlock)
		_, err = s.Lock(within(b), actors.WithOwner("other"), actors.Try())
		is(b, err, actors.ErrNotAcquired)
		other := s.Acquire(within(b), actors.WithOwner("other"), actors.Permits(2))
		unlock(b, g)
		pending(b, other)
		go k.Release() // by another goroutine
		unlock(b, result(b, other))
		unlock(b, h)
		unlock(b, lock(b, s, actors.Permits(3), me))
	})
}

func TestSemaphoreInvalid(t *testing.T) {
	each(t, func(b *testLock) {
		locks := b.locks()
		g := lock(b, locks.Semaphore(b.path, 3))
		tooMany := int64(1) << 31 // no constant: an int may have 32 bits, and then this is negative
		for _, c := range []struct {
			err   error
			texts []string
		}{
			{errOf(locks.Semaphore(b.path, 3).Lock(within(b), actors.Permits(4))), []string{"4 permits", "semaphore of 3"}},
			{errOf(locks.Semaphore(b.path, 3).Lock(within(b), actors.Permits(0))), []string{"permits 0", "from 1"}},
			{errOf(locks.Semaphore(b.path, 3).Lock(within(b), actors.Permits(-1))), []string{"permits -1", "from 1"}},
			{errOf(locks.Semaphore(b.path, 0).Lock(within(b))), []string{"semaphore of 0 permits", "from 1"}},
			{errOf(locks.Semaphore(b.path, -7).Lock(within(b))), []string{"semaphore of -7 permits"}},
			{errOf(locks.Semaphore(b.path, 4).Lock(within(b))), []string{"in use as a semaphore of 3", "semaphore of 4"}},
			{errOf(locks.Mutex(b.path).Lock(within(b))), []string{"in use as a semaphore of 3", "asked for as a mutex"}},
			{errOf(locks.Mutex(b.path + "/locks").Lock(within(b))), []string{"in use as a semaphore of 3", "asked for as a mutex"}},
			{errOf(locks.Mutex(b.path+"-m").Lock(within(b), actors.Permits(2))), []string{"2 permits", "mutex"}},
			{errOf(locks.Mutex(b.path+"-m", actors.SharedPermits("/count")).Lock(within(b))), []string{"SharedPermits", "a mutex has no permits"}},
			{errOf(locks.Semaphore(b.path+"-m", 1, actors.SharedPermits("count")).Lock(within(b))), []string{`count path "count" must begin with /`}},
			{errOf(locks.Semaphore(b.path+"-m", 1, actors.SharedPermits("/")).Lock(within(b))), []string{`count path "/"`}},
			{errOf(locks.Semaphore("/", 1).Lock(within(b))), []string{`path "/"`}},
			{errOf(locks.Semaphore("no", 1).PID()), []string{`path "no"`}},
			{errOf(locks.Semaphore("/no", 0).Remaining(within(b))), []string{"semaphore of 0 permits"}},
			{errOf(locks.SharedCount("count", 1).Get(within(b))), []string{`"count"`}},
			{locks.SharedCount("/count", 1).Set(within(b), int(tooMany)), []string{"2147483648", "2147483647"}},
			{locks.SharedCount("/", 1).Set(within(b), 1), []string{`count path "/"`}},
		} {
			is(b, c.err, actors.ErrInvalid)
			for _, text := range c.texts {
				if c.err == nil || !strings.Contains(c.err.Error(), text) {
					b.Errorf("%v does not say %q", c.err, text)
				}
			}
		}
		unlock(b, g)

		// Another lock is at the path of one of its directories before.
		for _, suffix := range []string{"/locks", "/leases"} {
			path := b.path + suffix[:3]
			other := locks.Mutex(path + suffix)
			g := lock(b, other)
			_, err := locks.Semaphore(path, 1).Lock(within(b))
			is(b, err, actors.ErrInvalid)
			if err == nil || !strings.Contains(err.Error(), other.Path()) {
				b.Errorf("%v does not name %s", err, other.Path())
			}
			unlock(b, g)
		}
	})
}

// The requests of owners count towards the limits, and those of the semaphore's parts do not.
func TestSemaphoreLimits(t *testing.T) {
	each(t, func(b *testLock) {
		locks := b.locks(func(cfg *actors.Config) { cfg.MaxRequestsPerLock, cfg.MaxRequests, cfg.MaxNodeData = 2, 3, 4 })
		s := locks.Semaphore(b.path, 20)
		g, h := lock(b, s, actors.Permits(8), actors.WithData([]byte("four"))), lock(b, s, actors.Permits(8))
		_, err := s.Lock(within(b))
		is(b, err, actors.ErrLimit)
		k := lock(b, locks.Mutex(b.path+"-other"))
		_, err = locks.Mutex(b.path + "-third").Lock(within(b))
		is(b, err, actors.ErrLimit)
		unlock(b, h)
		_, err = s.Lock(within(b), actors.WithData([]byte("five.")))
		is(b, err, actors.ErrLimit)
		unlock(b, lock(b, s))
		unlock(b, k)
		unlock(b, g)
	})
}

func TestSemaphoreMessages(t *testing.T) {
	each(t, func(b *testLock) {
		config, all := testActors(b.T, 2)
		alice, bob := all[0], all[1]
		s := b.semaphore(3, config)
		lock, err := s.PID()
		must(b, err)
		alice.send(lock, &messages.Acquire{RequestId: 1, Permits: 2, Owner: "alice", Data: []byte("alice")})
		g := alice.granted(1)
		if g.GetPath() != b.path || len(g.GetParts()) != 2 || g.GetParts()[0].GetNode() != g.GetNode() || g.GetParts()[0].GetCzxid() != g.GetCzxid() {
			b.Errorf("%v", g)
		}
		names := []string{}
		for _, part := range g.GetParts() {
			names = append(names, strings.TrimPrefix(part.GetNode(), "leases/"))
		}
		slices.Sort(names)
		if !slices.Equal(names, b.leases()) {
			b.Errorf("parts %v, leases %v", names, b.leases())
		}
		bob.send(lock, &messages.Acquire{RequestId: 1})
		if one := bob.granted(1); len(one.GetParts()) != 0 || !strings.HasPrefix(one.GetNode(), "leases/_c_") {
			b.Errorf("%v", one)
		}
		for id, msg := range map[uint64]*messages.Acquire{
			2: {RequestId: 2, Try: true},
			3: {RequestId: 3, WaitNanos: int64(20 * time.Millisecond)},
			4: {RequestId: 4, Permits: 4},
			5: {RequestId: 5, Kind: 1},
		} {
			bob.send(lock, msg)
			bob.refused(id, map[uint64]messages.Reason{2: messages.Reason_NOT_ACQUIRED, 3: messages.Reason_TIMED_OUT,
				4: messages.Reason_INVALID, 5: messages.Reason_INVALID}[id])
		}
		bob.send(lock, &messages.Acquire{RequestId: 6, Permits: 3, Owner: "bob"})
		bob.send(lock, &messages.Acquire{RequestId: 7, Owner: "bob"})
		bob.refused(7, messages.Reason_WOULD_DEADLOCK)
		bob.send(lock, &messages.Cancel{RequestId: 6, Owner: "bob"})
		bob.refused(6, messages.Reason_CANCELLED)
		bob.send(lock, &messages.Release{RequestId: 9})
		bob.refused(9, messages.Reason_NOT_HELD)
		bob.send(lock, &messages.Release{RequestId: 1})
		bob.released(1, 0)
		must(b, b.Client(b).Delete(b.path+"/"+g.GetParts()[1].GetNode(), -1))
		if m := expectMessage[*messages.Lost](alice); m.GetRequestId() != 1 || m.GetReason() != messages.Reason_NODE_DELETED {
			b.Errorf("%v", m)
		}
		b.waitSemaphore(0, 0)
		// The named owner need not release the lost grant. Cancel releases a grant.
		alice.send(lock, &messages.Acquire{RequestId: 2, Permits: 3, Owner: "alice"})
		alice.granted(2)
		alice.send(lock, &messages.Release{RequestId: 1, Owner: "alice"})
		alice.refused(1, messages.Reason_NOT_HELD)
		alice.send(lock, &messages.Cancel{RequestId: 2, Owner: "alice"})
		alice.refused(2, messages.Reason_CANCELLED)
		b.waitSemaphore(0, 0)
	})
}

// ---- the tests of InterProcessSemaphoreMutex

func TestSemaphoreMutex(t *testing.T) {
	each(t, func(b *testLock) {
		locks := b.locks()
		mu, other := locks.SemaphoreMutex(b.path), b.locks().SemaphoreMutex(b.path)
		me := actors.WithOwner("me")
		g, err := mu.Lock(within(b), me)
		must(b, err)
		if b.waitSemaphore(0, 1); mu.Path() != b.path || g.Node() != b.path+"/leases/"+b.leases()[0] {
			b.Errorf("%s holds by %s", mu.Path(), g.Node())
		}
		for range 3 {
			_, err = mu.Lock(within(b), me)
			is(b, err, actors.ErrDeadlock)
		}
		waiting := mu.Acquire(within(b), actors.WithOwner("waiter"))
		is(b, failure(b, mu.Acquire(within(b), actors.WithOwner("waiter"))), actors.ErrDeadlock)
		b.waitSemaphore(1, 2)               // which is ahead of the next request
		far := other.Acquire(within(b), me) // an owner of that name in another process
		b.waitSemaphore(2, 2)
		released := make(chan error)
		go func() { released <- g.Unlock(within(b)) }() // by another goroutine
		must(b, <-released)
		is(b, failure(b, g.Release()), actors.ErrNotHeld)
		h := result(b, waiting)
		pending(b, far)
		expectIncreasing(b, g.Token(), h.Token())
		unlock(b, h)
		unlock(b, result(b, far))
		g, err = mu.Lock(within(b), me)
		must(b, err)
		unlock(b, g)
	})
}

func TestSemaphoreMutex2Clients(t *testing.T) {
	each(t, func(b *testLock) { contendForPermits(b, 1, 12, 15, func() int { return 1 }) })
}

func TestSemaphoreMutexWithNamespace(t *testing.T) {
	each(t, func(b *testLock) {
		locks := b.chroot()
		g, err := locks.SemaphoreMutex("/below").Lock(within(b))
		must(b, err)
		if names := b.Nodes(b, b.path+"/below/leases"); len(names) != 1 || g.Node() != "/below/leases/"+names[0] {
			b.Errorf("%v; holds by %s", names, g.Node())
		}
		unlock(b, g)
	})
}

func TestSemaphoreMutexContainerCleanup(t *testing.T) {
	each(t, func(b *testLock) {
		locks := b.locks()
		for i := range 10 {
			mu := locks.SemaphoreMutex(b.path + fmt.Sprint("/", i))
			g, err := mu.Lock(within(b))
			must(b, err)
			unlock(b, g)
		}
	}) // each waits until no node is left
}
