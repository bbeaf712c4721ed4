package actors_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Tests of other lock libraries that are in no other file. README.md maps all such tests.

// Curator's testWithNamespace.
func TestWithNamespace(t *testing.T) {
	each(t, func(b *testLock) {
		locks := b.chroot()
		for name, l := range map[string]handle{"mutex": locks.Mutex("/mutex"), "rw": locks.RWMutex("/rw").Read()} {
			g := lock(b, l)
			if names := b.Nodes(b, b.path+"/"+name); len(names) != 1 || g.Node() != "/"+name+"/"+names[0] {
				b.Errorf("%v; holds by %s", names, g.Node())
			}
			unlock(b, g)
		}
	})
}

// Curator's TestLockACLs: the lock's node, its directory and those above have the ACL.
func TestLockACLs(t *testing.T) {
	each(t, func(b *testLock) {
		mine := func(cfg *actors.Config) {
			cfg.Auth = []zkbridge.Auth{{Scheme: "digest", Credential: "me:secret"}}
			cfg.ACL = zkbridge.CreatorAll()
		}
		locks, others := b.locks(mine), b.locks()
		top := b.path + "-closed" // to other identities
		path := top + "/above/lock"
		g := lock(b, locks.Mutex(path))
		conn := b.Client(b)
		must(b, conn.AddAuth("digest", []byte("me:secret")))
		for _, node := range []string{g.Node(), path, top + "/above", top} {
			acl, _, err := conn.GetACL(node)
			must(b, err)
			if len(acl) != 1 || acl[0].Scheme != "digest" || !strings.HasPrefix(acl[0].ID, "me:") || acl[0].Perms != zk.PermAll {
				b.Errorf("%s has ACL %v", node, acl)
			}
		}
		_, err := others.Mutex(path).Lock(within(b))
		is(b, err, actors.ErrNoAuth)
		unlock(b, g)
		left, _, err := conn.Children(path)
		if err != nil && !errors.Is(err, zk.ErrNoNode) || len(left) > 0 {
			b.Errorf("%v is left; %v", left, err)
		}
	})
}

// Curator's testGetParticipantNodes: readers and writers are counted apart.
func TestReadWriteGetParticipantNodes(t *testing.T) {
	const readers, writers = 20, 8
	each(t, func(b *testLock) {
		rw := b.rw()
		var all []*actors.Future[*actors.Grant]
		for range readers {
			all = append(all, rw.Read().Acquire(within(b)))
		}
		for range writers {
			all = append(all, rw.Write().Acquire(within(b)))
		}
		b.waitNodes(readers + writers)
		participants, err := rw.Read().Participants(within(b))
		must(b, err)
		seen := map[string]int{}
		for _, p := range participants {
			seen[fmt.Sprint(p.Kind, " ", p.Holds)]++
		}
		if want := "map[read true:20 write false:8]"; fmt.Sprint(seen) != want {
			b.Errorf("%v, want %s", seen, want)
		}
		for _, f := range all {
			unlock(b, result(b, f))
		}
	})
}

// Curator's testSetNodeData: a change of the data by the caller after the request has no effect.
func TestSetNodeData(t *testing.T) {
	each(t, func(b *testLock) {
		conn, rw := b.Client(b), b.rw()
		for _, mode := range []*actors.ModeLock{rw.Read(), rw.Write()} {
			data := []byte("owner data")
			f := mode.Acquire(within(b), actors.WithData(data))
			data[0] = 'X'
			g := result(b, f)
			if got, _, err := conn.Get(g.Node()); err != nil || string(got) != "owner data" {
				b.Errorf("%s has %q, %v", g.Node(), got, err)
			}
			unlock(b, g)
		}
	})
}

// Curator's testLockPath, and Redisson's about readers that died: a holder whose session is over
// blocks no contender.
func TestLockPath(t *testing.T) {
	each(t, func(b *testLock) {
		conn := b.Client(b)
		for _, mode := range []string{"write", "read"} {
			locks, other := b.locks(), b.rw()
			rw, write, next := locks.RWMutex(b.path), other.Write(), other.Read()
			first := rw.Write()
			if mode == "read" {
				first, next = rw.Read(), write
			}
			g := lock(b, first)
			b.expire(locks)
			closes(b, g.Done(), "the grant")
			if there, _, err := conn.Exists(g.Node()); err != nil || there {
				b.Errorf("%s still exists: %v", g.Node(), err)
			}
			unlock(b, lock(b, next))
		}
	})
}

// kazoo's test_rw_lock (#649): while a writer holds, a reader and a writer queue, which hold in
// this order.
func TestReadWriteInOrder(t *testing.T) {
	each(t, func(b *testLock) {
		w := lock(b, b.rw().Write())
		r := b.rw().Read().Acquire(within(b))
		b.waitNodes(2)
		next := b.rw().Write().Acquire(within(b))
		b.waitNodes(3)
		pending(b, r, next)
		unlock(b, w)
		reader := result(b, r)
		pending(b, next)
		unlock(b, reader)
		unlock(b, result(b, next))
	})
}

// kazoo's test_lock_reacquire and similar tests: a handle can acquire again after each way in which
// a request ends.
func TestLockReacquire(t *testing.T) {
	each(t, func(b *testLock) {
		mu, other := b.mutex(), b.mutex()
		for range 2 {
			unlock(b, lock(b, mu))
			held := lock(b, other)
			_, err := mu.Lock(within(b), actors.Try())
			is(b, err, actors.ErrNotAcquired)
			_, err = mu.Lock(within(b), actors.WithTimeout(1))
			is(b, err, actors.ErrTimedOut)
			f := mu.Acquire(within(b))
			f.Cancel()
			is(b, failure(b, f), actors.ErrCancelled)
			ctx, cancel := context.WithCancel(b.Context())
			cancel()
			_, err = mu.Lock(ctx)
			is(b, err, context.Canceled)
			unlock(b, held)
		}
	})
}

// etcd's TestMutexWaitsOnCurrentHolder: the session of the second contender ends, and the third one
// does not hold while the first holds.
func TestMutexWaitsOnCurrentHolder(t *testing.T) {
	each(t, func(b *testLock) {
		g := lock(b, b.mutex())
		middle := b.locks()
		second := middle.Mutex(b.path).Acquire(within(b))
		b.waitNodes(2)
		third := b.mutex().Acquire(within(b))
		b.waitNodes(3)
		must(b, middle.Close())
		is(b, failure(b, second), actors.ErrClosed)
		zktest.Eventually(b, timeLimit, func() bool { return b.watches() >= 2 && len(b.nodes()) == 2 }, "the third contender watches again")
		pending(b, third)
		unlock(b, g)
		unlock(b, result(b, third))
	})
}

// Consul's LockDeleteKey: the node is deleted by an operator, ten times.
func TestLockDeleteKey(t *testing.T) {
	each(t, func(b *testLock) {
		conn, mu := b.Client(b), b.mutex()
		for range 10 {
			g := lock(b, mu, actors.Revocable())
			zktest.Eventually(b, timeLimit, func() bool { return b.watches() > 0 }, "the holder watches its node")
			must(b, conn.Delete(g.Node(), -1))
			closes(b, g.Done(), "the grant")
			is(b, g.Err(), actors.ErrNodeDeleted)
			is(b, g.Unlock(within(b)), actors.ErrNodeDeleted)
		}
		unlock(b, lock(b, mu))
	})
}

// Curator's testSomeLocksFailToLock: one member cannot be acquired, so the multi-lock holds none.
func TestSomeLocksFailToLock(t *testing.T) {
	each(t, func(b *testLock) {
		locks, conn := b.locks(), b.Client(b)
		members := b.threeMembers(locks)
		closed := members[1].Path()
		_, err := conn.Create(closed, nil, 0, zk.WorldACL(zk.PermRead|zk.PermAdmin))
		must(b, err)
		multi := locks.MultiLock(members...)
		_, err = multi.Lock(within(b))
		is(b, err, actors.ErrNoAuth)
		b.waitNodes(0, "-a", "-b", "-c")
		for _, i := range []int{0, 2} {
			unlock(b, lock(b, b.threeMembers(b.locks())[i].(handle), actors.Try()))
		}
		_, err = conn.SetACL(closed, zk.WorldACL(zk.PermAll), -1)
		must(b, err)
		g := lock(b, multi)
		if !slices.ContainsFunc(g.Nodes(), func(node string) bool { return strings.HasPrefix(node, closed) }) {
			b.Errorf("nodes %v", g.Nodes())
		}
		unlock(b, g)
		b.waitNodes(0, "-a", "-b", "-c")
		must(b, conn.Delete(closed, -1))
	})
}
