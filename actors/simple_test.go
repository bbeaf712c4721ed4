package actors_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Two processes hold in turn, by the lock node, whose czxid is the token.
func TestSimpleMutex(t *testing.T) {
	each(t, func(b *testLock) {
		elsewhere, conn := b.locks(), b.Client(b)
		mu, other := b.locks().SimpleMutex(b.path), elsewhere.SimpleMutex(b.path)
		g := lock(b, mu, actors.WithData([]byte("mine")), actors.WithOwner("me"))
		_, lockNode, err := conn.Get(b.path + "/lock")
		must(b, err)
		data, ownerNode, err := conn.Get(g.Node())
		if err != nil || string(data) != "mine" || g.Token() != (actors.Token{Czxid: lockNode.Czxid}) || ownerNode.Czxid != lockNode.Czxid ||
			lockNode.EphemeralOwner != g.Session() || !strings.HasPrefix(g.Node(), b.path+"/lock-") {
			b.Errorf("%s: %q, %v; lockNode %+v, ownerNode %+v", g.Node(), data, g.Token(), lockNode, ownerNode)
		}
		must(b, g.Verify(within(b)))
		must(b, elsewhere.VerifyToken(within(b), g.Node(), g.Token()))
		unlock(b, lock(b, mu, actors.WithOwner("me")))
		for _, m := range []*actors.SimpleMutex{mu, other} {
			_, err = m.Lock(within(b), actors.Try())
			is(b, err, actors.ErrNotAcquired)
			_, err = m.Lock(within(b), actors.WithTimeout(time.Millisecond))
			is(b, err, actors.ErrTimedOut)
		}
		cancelled := other.Acquire(within(b))
		waiting := other.Acquire(within(b))
		cancelled.Cancel()
		is(b, failure(b, cancelled), actors.ErrCancelled)
		pending(b, waiting)
		unlock(b, g)
		h := result(b, waiting)
		expectIncreasing(b, g.Token(), h.Token())
		is(b, g.Verify(within(b)), actors.ErrNotHeld)
		unlock(b, h)
		unlock(b, lock(b, mu))
	})
}

// Owners of one process hold in the order of their requests, each by a node of its own.
func TestSimpleMutexLocalOrder(t *testing.T) {
	each(t, func(b *testLock) {
		mu := b.locks().SimpleMutex(b.path)
		g := lock(b, mu)
		var futures []*actors.Future[*actors.Grant]
		for range 5 {
			futures = append(futures, mu.Acquire(within(b)))
		}
		for i, f := range futures {
			pending(b, futures[i:]...)
			unlock(b, g)
			next := result(b, f)
			if next.Node() == g.Node() || next.Token().Czxid <= g.Token().Czxid {
				b.Errorf("%d: %s after %s", i, next.Node(), g.Node())
			}
			g = next
		}
		unlock(b, g)
	})
}

// Each release wakes all waiting processes. Each tries to create the lock node, and all but one watch it
// again.
func TestSimpleMutexHerd(t *testing.T) {
	const waiters = 8
	each(t, func(b *testLock) {
		holder := lock(b, b.locks().SimpleMutex(b.path))
		type granted struct {
			to    *dialer
			grant *actors.Grant
		}
		grants := make(chan granted, waiters)
		waiting := map[*dialer]bool{}
		for range waiters {
			d := &dialer{}
			waiting[d] = true
			mu := b.locks(d.config).SimpleMutex(b.path)
			go func() {
				g, err := mu.Lock(within(b))
				if err != nil {
					b.Error(err)
				}
				grants <- granted{d, g}
			}()
		}
		b.waitWatching(waiting, nil)
		for len(waiting) > 0 {
			for d := range waiting {
				d.takeRequests()
			}
			unlock(b, holder)
			next := <-grants
			delete(waiting, next.to)
			b.waitWatching(waiting, next.to)
			holder = next.grant
			// Between two holders the directory is empty. If ZooKeeper collects it, it is made and the multi repeated.
			for d := range waiting {
				if ops := d.takeRequests(); count(ops, embedded.OpMulti) != 1+count(ops, embedded.OpCreateContainer) {
					b.Errorf("one of %d that wait on has sent %v", len(waiting), ops)
				}
			}
			if ops := next.to.takeRequests(); count(ops, embedded.OpMulti) != 1+count(ops, embedded.OpCreateContainer) {
				b.Errorf("the next holder has sent %v", ops)
			}
		}
		unlock(b, holder)
	})
}

// waitWatching waits until all waiting processes have read and watch the lock. The process of the holder may
// have a watch, too, after a while.
func (b *testLock) waitWatching(waiting map[*dialer]bool, holder *dialer) {
	b.Helper()
	zktest.Eventually(b, timeLimit, func() bool {
		own := 0
		if holder != nil && count(holder.requests(), embedded.OpGetData) > 0 {
			own = 1
		}
		for d := range waiting {
			if count(d.requests(), embedded.OpGetData) == 0 {
				return false
			}
		}
		return b.watches() >= len(waiting)+own
	}, "all waiting processes watch the lock")
}

func count(ops []embedded.Op, of embedded.Op) (n int) {
	for _, op := range ops {
		if op == of {
			n++
		}
	}
	return n
}

// Another client has made a persistent lock node. Contenders wait for it as for any other.
func TestSimpleMutexForeignNode(t *testing.T) {
	each(t, func(b *testLock) {
		conn, mu := b.Client(b), b.locks().SimpleMutex(b.path)
		unlock(b, lock(b, mu))
		r := b.foreignNode(conn, "other-")
		_, err := conn.Create(b.path+"/lock", nil, 0, zk.WorldACL(zk.PermAll))
		if errors.Is(err, zk.ErrNodeExists) { // the release was not executed yet
			b.waitNodes(1)
			_, err = conn.Create(b.path+"/lock", nil, 0, zk.WorldACL(zk.PermAll))
		}
		must(b, err)
		f := mu.Acquire(within(b))
		pending(b, f)
		must(b, conn.Delete(b.path+"/lock", -1))
		unlock(b, result(b, f))
		r.leave()
	})
}

// Readers of all processes hold beside each other, and writers alone. A waiting writer blocks new readers, but not
// the readers of its own process that came before it.
func TestSimpleRWMutex(t *testing.T) {
	each(t, func(b *testLock) {
		rw, other := b.locks().SimpleRWMutex(b.path), b.locks().SimpleRWMutex(b.path)
		r1, r2, r3 := lock(b, rw.Read()), lock(b, rw.Read()), lock(b, other.Read(), actors.WithOwner("me"))
		again := lock(b, other.Read(), actors.WithOwner("me"))
		_, err := other.Write().Lock(within(b), actors.WithOwner("me"))
		is(b, err, actors.ErrDeadlock)
		_, err = rw.Write().Lock(within(b), actors.Try())
		is(b, err, actors.ErrNotAcquired)
		third := b.locks().SimpleRWMutex(b.path)
		_, err = third.Write().Lock(within(b), actors.Try())
		is(b, err, actors.ErrNotAcquired)
		b.waitNodes(2) // two readers': those of the refused writer are deleted
		w := third.Write().Acquire(within(b))
		b.waitNodes(4) // the lock node and the owner node, too
		fourth := b.locks().SimpleRWMutex(b.path)
		_, err = fourth.Read().Lock(within(b), actors.Try())
		is(b, err, actors.ErrNotAcquired)
		late := fourth.Read().Acquire(within(b))
		unlock(b, r1)
		unlock(b, r2)
		pending(b, w, late)
		unlock(b, r3)
		b.waitNodes(3)
		pending(b, w, late)
		unlock(b, again)
		g := result(b, w)
		pending(b, late)
		unlock(b, g)
		g = result(b, late)
		expectIncreasing(b, result(b, w).Token(), g.Token())
		unlock(b, g)
	})
}

// Readers and writers of several processes contend, and some of them cancel. No reader or writer holds
// beside a writer, tokens grow from writer to writer, and all requests end.
func TestSimpleRWMutexHistory(t *testing.T) {
	each(t, func(b *testLock) {
		var readers, writers atomic.Int32
		var mu sync.Mutex
		var last actors.Token
		var all errgroup.Group
		for i := range 6 {
			rw := b.locks().SimpleRWMutex(b.path)
			for j := range 2 {
				all.Go(func() error {
					for k := range 12 {
						if (i+j+k)%5 == 0 {
							f := rw.Write().Acquire(within(b), actors.WithTimeout(time.Duration(k)*time.Millisecond+1))
							if g, err := f.Wait(context.Background()); err == nil {
								g.Release()
							}
							continue
						}
						mode, own, writing := rw.Read(), &readers, &writers
						if (i+j+k)%3 == 0 {
							mode, own = rw.Write(), &writers
						}
						g, err := mode.Lock(within(b))
						if err != nil {
							return err
						}
						n := own.Add(1)
						if own == writing && (n > 1 || readers.Load() > 0) || own != writing && writing.Load() > 0 {
							return fmt.Errorf("%d writers beside %d readers", writers.Load(), readers.Load())
						}
						if own == writing {
							mu.Lock()
							if g.Token().Compare(last) <= 0 {
								err = fmt.Errorf("token %v after %v", g.Token(), last)
							}
							last = g.Token()
							mu.Unlock()
						}
						own.Add(-1)
						if err := errors.Join(err, g.Unlock(within(b))); err != nil {
							return err
						}
					}
					return nil
				})
			}
		}
		must(b, all.Wait())
	})
}

// Actors acquire a simple lock by messages, as any lock.
func TestSimpleMessages(t *testing.T) {
	each(t, func(b *testLock) {
		config, all := testActors(b.T, 1)
		mu := b.locks(config).SimpleMutex(b.path)
		lock, err := mu.PID()
		must(b, err)
		all[0].send(lock, &messages.Acquire{RequestId: 1})
		all[0].granted(1)
		all[0].send(lock, &messages.Release{RequestId: 1})
		all[0].released(1, 0)
	})
}

// A simple lock refuses with a reason what it cannot do.
func TestSimpleInvalid(t *testing.T) {
	onEmbedded(t, func(b *testLock) {
		locks := b.locks()
		mu := locks.SimpleMutex(b.path)
		g := lock(b, mu)
		_, err := locks.Mutex(b.path).Lock(within(b))
		is(b, err, actors.ErrInvalid)
		_, err = mu.Participants(within(b))
		is(b, err, actors.ErrInvalid)
		_, err = mu.RevokeHolders(within(b), 0)
		is(b, err, actors.ErrInvalid)
		_, err = locks.MultiLock(mu).Lock(within(b))
		is(b, err, actors.ErrInvalid)
		_, err = locks.SimpleMutex("no path").Lock(within(b))
		is(b, err, actors.ErrInvalid)
		unlock(b, g)
	})
}
