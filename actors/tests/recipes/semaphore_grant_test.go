package recipes

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// A grant of several permits has a node for each, and ends with the deletion of any.
func TestSemaphoreGrantOfSeveral(t *testing.T) {
	locktest.NeedsZooKeeper(t, "transactions of the program's own")
	locktest.Each(t, func(b *locktest.Fixture) {
		s, conn := b.Semaphore(4), b.Client(b)
		for lost := range 3 {
			g := locktest.Lock(b, s, actors.Permits(3), actors.WithData([]byte("mine")))
			nodes := g.Nodes()
			names := b.Leases()
			if len(nodes) != 3 || nodes[0] != g.Node() || len(names) != 3 {
				b.Fatalf("nodes %v, first %s; leases %v", nodes, g.Node(), names)
			}
			_, stat, err := conn.Get(nodes[0])
			locktest.Must(b, err)
			if stat.Czxid != g.Token().Czxid {
				b.Errorf("token %v of %+v", g.Token(), stat)
			}
			locktest.Must(b, g.Verify(locktest.Within(b)))
			locktest.Must(b, b.Locks().VerifyToken(locktest.Within(b), g.Node(), g.Token()))
			if n := len(g.Guard(&zk.DeleteRequest{Path: "/x"})); n != 4 {
				b.Errorf("%d operations", n)
			}
			f := s.Acquire(locktest.Within(b), actors.Permits(4))
			b.WaitSemaphore(1, 7)
			locktest.Must(b, conn.Delete(nodes[lost], -1))
			// Verify reports it at once, and Done a little later.
			err = g.Verify(locktest.Within(b))
			locktest.Is(b, err, actors.ErrNodeDeleted)
			if g.Err() == nil && !strings.Contains(err.Error(), nodes[lost]) {
				b.Errorf("%v does not name %s", err, nodes[lost])
			}
			_, err = b.Locks().Multi(locktest.Within(b), g.Guard(&zk.CreateRequest{Path: b.LockPath + "/x"})...)
			var failed *zkbridge.OpError
			if !errors.As(err, &failed) || failed.Index != lost && g.Err() == nil { // a lost grant guards nothing
				b.Errorf("a guarded write: %v", err)
			}
			locktest.Closes(b, g.Done(), "the grant")
			locktest.Is(b, g.Err(), actors.ErrNodeDeleted)
			locktest.Is(b, locktest.Failure(b, g.Release()), actors.ErrNodeDeleted)
			locktest.Unlock(b, locktest.Result(b, f))
		}
	})
}

// An acquire takes two round trips. It does not wait for the deletion of its request node.
func TestSemaphoreRequests(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		conn, directories := b.Client(b), []string{b.LockPath, b.LockPath + "/locks", b.LockPath + "/leases"}
		for _, path := range directories { // which stay when they are empty
			_, err := conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
			locktest.Must(b, err)
		}
		defer func() {
			for _, path := range slices.Backward(directories) {
				locktest.Must(b, conn.Delete(path, -1))
			}
		}()
		d := &locktest.Network{}
		s := b.Semaphore(3, d.Config)
		for range 2 { // the first reads the names in the directories, and the second sets watches on these
			locktest.Unlock(b, locktest.Lock(b, s))
			b.WaitSemaphore(0, 0)
		}
		lists := 0 // the first tick lists the directory, once
		for _, n := range []int{1, 3} {
			since := time.Now()
			_, ops := d.During(func() {
				g := locktest.Lock(b, s, actors.Permits(n))
				locktest.Unlock(b, g)
				b.WaitSemaphore(0, 0)
			})
			// One for the request node, one for all leases, and at most one for each deletion.
			total := locktest.WithoutTickReads(ops, since, n)
			lists += ops[embedded.OpGetChildren2]
			if total-lists > 3+n || lists > 1 || ops[embedded.OpGetData] > 0 {
				b.Errorf("%d permits take %d requests: %v", n, total, ops)
			}
		}
		// While there is room no request reads the leases of others.
		g := locktest.Lock(b, b.Semaphore(3))
		b.WaitSemaphore(0, 1)
		locktest.Unlock(b, locktest.Lock(b, s)) // from now on the names are read with each create
		b.WaitSemaphore(0, 1)
		since := time.Now()
		_, ops := d.During(func() {
			locktest.Unlock(b, locktest.Lock(b, s, actors.Permits(2)))
			b.WaitSemaphore(0, 1)
		})
		total := locktest.WithoutTickReads(ops, since, 2)
		lists += ops[embedded.OpGetChildren2]
		if lists > 3 || ops[embedded.OpGetData] > 0 || total-lists > 5 {
			b.Errorf("beside others: %d requests: %v", total, ops)
		}
		locktest.Unlock(b, g)
		b.WaitSemaphore(0, 0)
	})
}

// Waiters of the same process are granted before ZooKeeper has answered the release.
func TestSemaphoreHandOffWithoutAnswer(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(b *locktest.Virtual) { // in which no proof of a node becomes too old
		s := b.Semaphore(3)
		g := locktest.Lock(b, s, actors.Permits(3))
		var fs []*actors.Future[*actors.Grant]
		for range 3 {
			fs = append(fs, s.Acquire(locktest.Within(b)))
		}
		b.WaitSemaphore(3, 6)
		late := s.Acquire(locktest.Within(b), actors.Permits(2)) // still in the queue
		b.WaitSemaphore(4, 8)
		_, err := s.Lock(locktest.Within(b), actors.Try())
		locktest.Is(b, err, actors.ErrNotAcquired)
		b.Pause()
		release := g.Release()
		for _, f := range fs {
			locktest.Result(b, f).Release()
		}
		if locktest.IsClosed(release.Done()) {
			b.Error("a release is confirmed by a server that does not answer")
		}
		h := locktest.Result(b, late)
		b.Resume()
		locktest.Unlock(b, h)
	})
}

func TestSemaphoreOwners(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		s, me := b.Semaphore(3), actors.WithOwner("me")
		g, h := locktest.Lock(b, s, me), locktest.Lock(b, s, me)
		if g.Node() == h.Node() {
			b.Error("two requests of one owner share a permit")
		}
		begun := time.Now()
		_, err := s.Lock(locktest.Within(b), me, actors.Permits(2))
		locktest.Is(b, err, actors.ErrDeadlock)
		if took := time.Since(begun); took > zktest.TimeLimit/2 || !strings.Contains(err.Error(), `owner "me"`) {
			b.Errorf("after %v: %v", took, err)
		}
		k := locktest.Lock(b, s, me)
		_, err = s.Lock(locktest.Within(b), me, actors.Try())
		locktest.Is(b, err, actors.ErrDeadlock)
		_, err = s.Lock(locktest.Within(b), actors.WithOwner("other"), actors.Try())
		locktest.Is(b, err, actors.ErrNotAcquired)
		other := s.Acquire(locktest.Within(b), actors.WithOwner("other"), actors.Permits(2))
		locktest.Unlock(b, g)
		locktest.Pending(b, other)
		go k.Release() // by another goroutine
		locktest.Unlock(b, locktest.Result(b, other))
		locktest.Unlock(b, h)
		locktest.Unlock(b, locktest.Lock(b, s, actors.Permits(3), me))
	})
}

// The requests of owners count towards the limits, and those of the semaphore's parts do not.
func TestSemaphoreLimits(t *testing.T) {
	locktest.NeedsZooKeeper(t, "the records of holders, which the server's limit counts")
	locktest.Each(t, func(b *locktest.Fixture) {
		locks := b.Locks(func(cfg *actors.Config) { cfg.MaxRequestsPerLock, cfg.MaxRequests, cfg.MaxNodeData = 2, 3, 4 })
		s := locks.Semaphore(b.LockPath, 20)
		g, h := locktest.Lock(b, s, actors.Permits(8), actors.WithData([]byte("four"))), locktest.Lock(b, s, actors.Permits(8))
		_, err := s.Lock(locktest.Within(b))
		locktest.Is(b, err, actors.ErrLimit)
		k := locktest.Lock(b, locks.Mutex(b.LockPath+"-other"))
		_, err = locks.Mutex(b.LockPath + "-third").Lock(locktest.Within(b))
		locktest.Is(b, err, actors.ErrLimit)
		locktest.Unlock(b, h)
		_, err = s.Lock(locktest.Within(b), actors.WithData([]byte("five.")))
		locktest.Is(b, err, actors.ErrLimit)
		locktest.Unlock(b, locktest.Lock(b, s))
		locktest.Unlock(b, k)
		locktest.Unlock(b, g)
	})
}

func TestSemaphoreMessages(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		config, all := locktest.OwnerActors(b.T, 2)
		alice, bob := all[0], all[1]
		s := b.Semaphore(3, config)
		lock, err := s.PID()
		locktest.Must(b, err)
		alice.Send(lock, &messages.Acquire{RequestId: 1, Permits: 2, Owner: "alice", Data: []byte("alice")})
		g := alice.Granted(1)
		if g.GetPath() != b.LockPath || len(g.GetParts()) != 2 || g.GetParts()[0].GetNode() != g.GetNode() || g.GetParts()[0].GetCzxid() != g.GetCzxid() {
			b.Errorf("%v", g)
		}
		names := []string{}
		for _, part := range g.GetParts() {
			names = append(names, strings.TrimPrefix(part.GetNode(), "leases/"))
		}
		slices.Sort(names)
		if !slices.Equal(names, b.Leases()) {
			b.Errorf("parts %v, leases %v", names, b.Leases())
		}
		bob.Send(lock, &messages.Acquire{RequestId: 1})
		if one := bob.Granted(1); len(one.GetParts()) != 0 || !strings.HasPrefix(one.GetNode(), "leases/_c_") {
			b.Errorf("%v", one)
		}
		for id, msg := range map[uint64]*messages.Acquire{
			2: {RequestId: 2, Try: true},
			3: {RequestId: 3, WaitNanos: int64(20 * time.Millisecond)},
			4: {RequestId: 4, Permits: 4},
			5: {RequestId: 5, Kind: 1},
		} {
			bob.Send(lock, msg)
			bob.Refused(id, map[uint64]messages.Reason{2: messages.Reason_NOT_ACQUIRED, 3: messages.Reason_TIMED_OUT,
				4: messages.Reason_INVALID, 5: messages.Reason_INVALID}[id])
		}
		bob.Send(lock, &messages.Acquire{RequestId: 6, Permits: 3, Owner: "bob"})
		bob.Send(lock, &messages.Acquire{RequestId: 7, Owner: "bob"})
		bob.Refused(7, messages.Reason_WOULD_DEADLOCK)
		bob.Send(lock, &messages.Cancel{RequestId: 6, Owner: "bob"})
		bob.Refused(6, messages.Reason_CANCELLED)
		bob.Send(lock, &messages.Release{RequestId: 9})
		bob.Refused(9, messages.Reason_NOT_HELD)
		bob.Send(lock, &messages.Release{RequestId: 1})
		bob.Released(1, 0)
		locktest.Must(b, b.Client(b).Delete(b.LockPath+"/"+g.GetParts()[1].GetNode(), -1))
		if m := locktest.ExpectMessage[*messages.Lost](alice); m.GetRequestId() != 1 || m.GetReason() != messages.Reason_NODE_DELETED {
			b.Errorf("%v", m)
		}
		b.WaitSemaphore(0, 0)
		// The named owner need not release the lost grant. Cancel releases a grant.
		alice.Send(lock, &messages.Acquire{RequestId: 2, Permits: 3, Owner: "alice"})
		alice.Granted(2)
		alice.Send(lock, &messages.Release{RequestId: 1, Owner: "alice"})
		alice.Refused(1, messages.Reason_NOT_HELD)
		alice.Send(lock, &messages.Cancel{RequestId: 2, Owner: "alice"})
		alice.Refused(2, messages.Reason_CANCELLED)
		b.WaitSemaphore(0, 0)
	})
}

// ---- the tests of InterProcessSemaphoreMutex

func TestSemaphoreMutex(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		locks := b.Locks()
		mu, other := locks.SemaphoreMutex(b.LockPath), b.Locks().SemaphoreMutex(b.LockPath)
		me := actors.WithOwner("me")
		g, err := mu.Lock(locktest.Within(b), me)
		locktest.Must(b, err)
		if b.WaitSemaphore(0, 1); mu.Path() != b.LockPath || g.Node() != b.LockPath+"/leases/"+b.Leases()[0] {
			b.Errorf("%s holds by %s", mu.Path(), g.Node())
		}
		for range 3 {
			_, err = mu.Lock(locktest.Within(b), me)
			locktest.Is(b, err, actors.ErrDeadlock)
		}
		waiting := mu.Acquire(locktest.Within(b), actors.WithOwner("waiter"))
		locktest.Is(b, locktest.Failure(b, mu.Acquire(locktest.Within(b), actors.WithOwner("waiter"))), actors.ErrDeadlock)
		b.WaitSemaphore(1, 2)                        // which is ahead of the next request
		far := other.Acquire(locktest.Within(b), me) // an owner of that name in another process
		b.WaitSemaphore(2, 2)
		released := make(chan error)
		go func() { released <- g.Unlock(locktest.Within(b)) }() // by another goroutine
		locktest.Must(b, <-released)
		locktest.Is(b, locktest.Failure(b, g.Release()), actors.ErrNotHeld)
		h := locktest.Result(b, waiting)
		locktest.Pending(b, far)
		locktest.ExpectIncreasing(b, g.Token(), h.Token())
		locktest.Unlock(b, h)
		locktest.Unlock(b, locktest.Result(b, far))
		g, err = mu.Lock(locktest.Within(b), me)
		locktest.Must(b, err)
		locktest.Unlock(b, g)
	})
}
