package actors_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

func TestMultiLock(t *testing.T) {
	each(t, func(b *testLock) {
		locks, others := b.locks(), b.locks()
		multi := locks.MultiLock(b.threeMembers(locks)...)
		conn := b.Client(b)
		for range 2 {
			g := lock(b, multi)
			nodes := g.Nodes()
			if len(nodes) != 3 {
				b.Fatalf("nodes %v", nodes)
			}
			for _, node := range nodes {
				exists, stat, err := conn.Exists(node)
				if err != nil || !exists || stat.Czxid != g.Token().Czxid {
					b.Errorf("%s: %v, made by %#x, the token is %v", node, err, stat.Czxid, g.Token())
				}
			}
			must(b, g.Verify(within(b)))
			for _, m := range b.threeMembers(others)[:2] {
				_, err := m.(handle).Lock(within(b), actors.Try())
				is(b, err, actors.ErrNotAcquired)
			}
			unlock(b, lock(b, others.RWMutex(b.path+"-c").Read(), actors.Try())) // read by several
			unlock(b, g)
			is(b, g.Unlock(within(b)), actors.ErrNotHeld)
		}
		b.waitNodes(0, "-a", "-b", "-c")
	})
}

// Another owner holds one member. The multi-lock's nodes in the other members wait, too, and are
// deleted when the request ends.
func TestMultiLockWaits(t *testing.T) {
	each(t, func(b *testLock) {
		locks, others := b.locks(), b.locks()
		multi := locks.MultiLock(b.threeMembers(locks)...)
		held := lock(b, others.RWMutex(b.path+"-b").Read())
		_, err := multi.Lock(within(b), actors.Try())
		is(b, err, actors.ErrNotAcquired)
		_, err = multi.Lock(within(b), actors.WithTimeout(50*time.Millisecond))
		is(b, err, actors.ErrTimedOut)
		b.waitNodes(0, "-a", "-c")
		b.waitNodes(1, "-b")
		f := multi.Acquire(within(b))
		f.Cancel()
		is(b, failure(b, f), actors.ErrCancelled)
		unlock(b, lock(b, locks.Mutex(b.path+"-a"))) // so that the create of f's nodes is answered
		b.waitNodes(0, "-a", "-c")
		b.waitNodes(1, "-b")
		f = multi.Acquire(within(b))
		b.waitNodes(1, "-a")
		behind := others.Mutex(b.path + "-a").Acquire(within(b))
		pending(b, f, behind)
		unlock(b, held)
		unlock(b, result(b, f))
		unlock(b, result(b, behind))
		b.waitNodes(0, "-a", "-b", "-c")
	})
}

// Two multi-locks of the same members in opposite orders, of one process and of several,
// never wait for each other.
func TestMultiLocksDoNotDeadlock(t *testing.T) {
	each(t, func(b *testLock) {
		inside := map[string]*int{"-a": new(int), "-b": new(int)}
		one, two := b.locks(), b.locks()
		b.turns(4, 30, func(i int) turn {
			locks, ends := []*actors.Locks{one, two}[i/2], []string{"-a", "-b"}
			if i%2 == 1 {
				ends = []string{"-b", "-a"}
			}
			multi := locks.MultiLock(locks.Mutex(b.path+ends[0]), locks.Mutex(b.path+ends[1]))
			return turn{lock: multi, inside: func(*actors.Grant) {
				for _, n := range inside { // the race detector checks this
					if *n++; *n != 1 {
						b.Errorf("%d inside", *n)
					}
				}
				for _, n := range inside {
					*n--
				}
			}}
		})
		b.waitNodes(0, "-a", "-b", "-c")
	})
}

// A request that waits at the loss of the session queues again, in all members by one transaction.
func TestMultiLockOutlivesSessions(t *testing.T) {
	each(t, func(b *testLock) {
		locks, others := b.locks(), b.locks()
		multi := locks.MultiLock(b.threeMembers(locks)...)
		held := lock(b, others.Mutex(b.path+"-a"))
		f := multi.Acquire(within(b))
		b.waitNodes(1, "-c")
		b.expire(locks)
		pending(b, f)
		unlock(b, held)
		g := result(b, f)
		if g.Session() != locks.Session().ID {
			b.Error("the grant is of another session")
		}
		// One of its nodes is deleted while it waits: the others are deleted, too, and it queues
		// again.
		w := others.Mutex(b.path + "-a").Acquire(within(b))
		b.waitNodes(2, "-a")
		next := multi.Acquire(within(b))
		b.waitNodes(2, "-b")
		var waiting string
		for _, name := range b.Nodes(b, b.path+"-b") {
			if b.path+"-b/"+name != g.Nodes()[1] {
				waiting = name
			}
		}
		must(b, b.Client(b).Delete(b.path+"-b/"+waiting, -1))
		zktest.Eventually(b, timeLimit, func() bool {
			names := b.Nodes(b, b.path+"-b")
			return len(names) == 2 && !slices.Contains(names, waiting)
		}, "the next queues again")
		unlock(b, g)
		unlock(b, result(b, w))
		unlock(b, result(b, next))
		b.waitNodes(0, "-a", "-b", "-c")
	})
}

// Curator's testSomeReleasesFail: the other members are released, and Unlock may return the error.
func TestSomeReleasesFail(t *testing.T) {
	each(t, func(b *testLock) {
		locks := b.locks()
		multi := locks.MultiLock(b.threeMembers(locks)...)
		g := lock(b, multi)
		must(b, b.Client(b).Delete(g.Nodes()[0], -1))
		if err := g.Unlock(within(b)); err != nil { // the process may not have noticed the deletion
			is(b, err, actors.ErrNodeDeleted)
		}
		b.waitNodes(0, "-a", "-b", "-c")
	})
}

func TestMultiLockMembers(t *testing.T) {
	each(t, func(b *testLock) {
		locks := b.locks()
		a := locks.Mutex(b.path + "-a")
		for text, members := range map[string][]actors.Member{
			"1 to 64":    {},
			"twice":      {a, locks.Mutex(b.path + "-a")},
			"nil":        {a, nil},
			"other":      {a, b.locks().Mutex(b.path + "-b")},
			"one itself": {locks.MultiLock(a)},
			"local":      {a, locks.Mutex(b.path+"-b", actors.LocalQueue(actors.LocalQueueConfig{}))},
			"relative":   {a, locks.Mutex("relative")},
		} {
			_, err := locks.MultiLock(members...).Lock(within(b))
			is(b, err, actors.ErrInvalid)
			if err == nil || !strings.Contains(err.Error(), text) {
				b.Errorf("%v does not say %q", err, text)
			}
		}
		b.waitNodes(0, "-a", "-b", "-c")
	})
}

// The bridge refuses a part of the request, which fails and is not repeated.
func TestMultiLockOverALimit(t *testing.T) {
	each(t, func(b *testLock) {
		locks := b.locks(func(cfg *actors.Config) { cfg.MaxOutstanding = 2 })
		_, err := locks.MultiLock(b.threeMembers(locks)...).Lock(within(b))
		is(b, err, actors.ErrLimit)
		unlock(b, lock(b, locks.Mutex(b.path+"-a")))
		b.waitNodes(0, "-a", "-b", "-c")
	})
}

// Actors acquire by messages, and Close ends their requests and grants.
func TestMultiLockByMessages(t *testing.T) {
	each(t, func(b *testLock) {
		config, all := testActors(b.T, 2)
		locks := b.locks(config)
		multi, err := locks.MultiLock(b.threeMembers(locks)...).PID()
		must(b, err)
		all[0].send(multi, &messages.Acquire{RequestId: 1})
		if g := expectMessage[*messages.Granted](all[0]); len(g.Parts) != 3 {
			b.Errorf("%v", g)
		}
		all[1].send(multi, &messages.Acquire{RequestId: 1, Owner: "you"})
		all[0].send(multi, &messages.Release{RequestId: 1})
		expectMessage[*messages.Released](all[0])
		expectMessage[*messages.Granted](all[1])
		all[0].send(multi, &messages.Acquire{RequestId: 2})
		b.waitNodes(2, "-b")
		must(b, locks.Close())
		if l := expectMessage[*messages.Lost](all[1]); l.Reason != messages.Reason_CLOSED {
			b.Error(l)
		}
		if r := expectMessage[*messages.Refused](all[0]); r.Reason != messages.Reason_CLOSED {
			b.Error(r)
		}
		b.waitNodes(0, "-a", "-b", "-c")
	})
}

// A semaphore is a member: its node in the request queue is created with the other nodes, and its
// lease later.
func TestMultiLockWithASemaphore(t *testing.T) {
	each(t, func(b *testLock) {
		one, two := b.locks(), b.locks()
		var g errgroup.Group
		inside := 0
		for i, locks := range []*actors.Locks{one, one, two, two} {
			members := []actors.Member{locks.Mutex(b.path + "-a"), locks.Semaphore(b.path+"-b", 1)}
			if i%2 == 1 {
				members[0], members[1] = members[1], members[0]
			}
			multi := locks.MultiLock(members...)
			g.Go(func() error {
				for range 15 {
					grant, err := multi.Lock(within(b))
					if err != nil {
						return err
					}
					if inside++; inside != 1 || len(grant.Nodes()) != 2 { // the race detector checks this
						return fmt.Errorf("%d inside, nodes %v", inside, grant.Nodes())
					}
					inside--
					if err := grant.Unlock(within(b)); err != nil {
						return err
					}
				}
				return nil
			})
		}
		must(b, g.Wait())
		held := lock(b, two.Semaphore(b.path+"-b", 1))
		_, err := one.MultiLock(one.Mutex(b.path+"-a"), one.Semaphore(b.path+"-b", 1)).Lock(within(b), actors.WithTimeout(50*time.Millisecond))
		is(b, err, actors.ErrTimedOut)
		unlock(b, lock(b, two.Mutex(b.path+"-a")))
		unlock(b, held)
		b.waitNodes(0, "-a", "-b/locks", "-b/leases")
	})
}
