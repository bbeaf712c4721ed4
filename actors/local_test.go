package actors_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// The owners of one process hand one node on, each with a token of its own, without a request to
// ZooKeeper.
func TestLocalQueue(t *testing.T) {
	each(t, func(b *testLock) {
		d := &dialer{}
		mu, other := b.local(longLinger, d.config), b.mutex()
		first := lock(b, mu, actors.WithData([]byte("the first's")))
		data, stat, err := b.Client(b).Get(first.Node())
		if err != nil || string(data) != "the first's" || stat.Czxid != first.Token().Czxid {
			b.Errorf("%q, %+v, %v; token %v", data, stat, err, first.Token())
		}
		last := first.Token()
		d.waitIdle(b)
		if n, ops := d.during(func() {
			for range 20 {
				f := mu.Acquire(within(b), actors.WithData([]byte("in no node")))
				unlock(b, first)
				first = result(b, f)
				if first.Token().Compare(last) <= 0 || first.Token().Czxid != last.Czxid {
					b.Errorf("token %v after %v", first.Token(), last)
				}
				last = first.Token()
				unlock(b, first)
				first = lock(b, mu)
				_, err := mu.Lock(within(b), actors.Try())
				is(b, err, actors.ErrNotAcquired)
				_, err = mu.Lock(within(b), actors.WithTimeout(time.Millisecond))
				is(b, err, actors.ErrTimedOut)
			}
		}); n > 0 {
			b.Errorf("requests to ZooKeeper: %v", ops)
		}
		must(b, first.Verify(within(b)))
		unlock(b, first)
		if n := b.nodes(); len(n) != 1 {
			b.Errorf("nodes %v", n)
		}
		unlock(b, lock(b, mu, actors.Try()))
		// Another process waits: the local queue releases its node.
		g := lock(b, other)
		expectIncreasing(b, last, g.Token())
		_, err = mu.Lock(within(b), actors.Try())
		is(b, err, actors.ErrNotAcquired)
		f := mu.Acquire(within(b))
		b.waitNodes(2)
		unlock(b, g)
		h := result(b, f)
		expectIncreasing(b, g.Token(), h.Token())
		unlock(b, h)
		unlock(b, lock(b, other)) // so that the local queue keeps no node
	})
}

// A local queue keeps an unused node for its Linger after the last release.
func TestLocalLinger(t *testing.T) {
	t.Parallel()
	bubble(t, func(v *virtual) {
		locks := v.locks(idle(time.Second))
		mu := locks.Mutex("/lock", actors.LocalQueue(actors.LocalQueueConfig{Linger: time.Minute}))
		g := lock(v, mu)
		node := g.Node()
		<-time.After(time.Hour)
		unlock(v, g)
		for range 10 {
			<-time.After(59 * time.Second)
			if g = lock(v, mu); g.Node() != node {
				v.Fatalf("node %s, was %s", g.Node(), node)
			}
			unlock(v, g)
		}
		<-time.After(59 * time.Second)
		if len(v.nodes()) != 1 {
			v.Error("the node is gone before a minute has passed")
		}
		<-time.After(62 * time.Second)
		if len(v.nodes()) != 0 {
			v.Error("the node is there after two minutes")
		}
		v.clean()
		if paths := actors.Paths(locks); len(paths) != 0 {
			v.Errorf("actors %v", paths)
		}
		unlock(v, lock(v, mu))
		v.clean()
	})
}

func TestLocalReentrant(t *testing.T) {
	each(t, func(b *testLock) {
		mu, me := b.local(shortLinger), actors.WithOwner("me")
		first, second := lock(b, mu, me), lock(b, mu, me)
		third := lock(b, mu, me, actors.Try())
		if first.Token() != second.Token() || first.Token() != third.Token() {
			b.Errorf("tokens %v, %v, %v", first.Token(), second.Token(), third.Token())
		}
		waiting := mu.Acquire(within(b))
		unlock(b, first)
		is(b, first.Unlock(within(b)), actors.ErrNotHeld)
		unlock(b, third)
		pending(b, waiting)
		unlock(b, second)
		unlock(b, result(b, waiting))
	})
}

// Requests leave the local queue in each way while others come.
func TestLocalCancel(t *testing.T) {
	each(t, func(b *testLock) {
		mu, other := b.local(shortLinger), b.mutex()
		// The only request is cancelled: the process leaves the lock's queue.
		g := lock(b, other)
		f := mu.Acquire(within(b))
		b.waitNodes(2)
		f.Cancel()
		is(b, failure(b, f), actors.ErrCancelled)
		b.waitNodes(1)
		ctx, cancel := context.WithCancel(b.Context())
		ended, timed, stays := mu.Acquire(ctx), mu.Acquire(within(b), actors.WithTimeout(20*time.Millisecond)), mu.Acquire(within(b))
		b.waitNodes(2)
		cancel()
		is(b, failure(b, ended), context.Canceled)
		is(b, failure(b, timed), actors.ErrTimedOut)
		pending(b, stays)
		unlock(b, g)
		h := result(b, stays)
		// Requests are cancelled at the moment of their grant.
		var wg sync.WaitGroup
		for range 50 {
			f := mu.Acquire(within(b))
			wg.Go(func() {
				f.Cancel()
				if g, err := f.Result(); err == nil {
					g.Release()
				}
			})
			wg.Go(func() {
				if g, err := mu.Lock(within(b)); err != nil {
					b.Error(err)
				} else {
					g.Release()
				}
			})
		}
		unlock(b, h)
		wg.Wait()
	})
}

// The local queue answers owners that are actors.
func TestLocalMessages(t *testing.T) {
	each(t, func(b *testLock) {
		config, all := testActors(b.T, 2)
		alice, bob := all[0], all[1]
		locks, other := b.locks(config), b.mutex()
		// bob is granted while another process waits, within an hour.
		mu := locks.Mutex(b.path, actors.LocalQueue(actors.LocalQueueConfig{Linger: 50 * time.Millisecond, Time: time.Hour}))
		lock := pid(b, mu)
		alice.send(lock, &messages.Acquire{RequestId: 1, NotifyContended: true})
		g := alice.granted(1)
		bob.send(lock, &messages.Acquire{RequestId: 1, Owner: "bob"})
		bob.send(lock, &messages.Acquire{RequestId: 2, Owner: "bob"})
		bob.send(lock, &messages.Acquire{RequestId: 3, Try: true})
		bob.refused(3, messages.Reason_NOT_ACQUIRED)
		bob.send(lock, &messages.Release{RequestId: 1})
		bob.refused(1, messages.Reason_NOT_HELD)
		f := other.Acquire(within(b))
		if m := expectMessage[*messages.Contended](alice); m.RequestId != 1 {
			b.Errorf("got %v", m)
		}
		alice.send(lock, &messages.Release{RequestId: 1})
		alice.released(1, 0)
		for id := range uint64(2) {
			if m := bob.granted(id + 1); m.Czxid != g.Czxid || m.Step != g.Step+1 || m.Node != g.Node || m.SessionId != locks.Session().ID || m.Path != b.path {
				b.Errorf("%v after %v", m, g)
			}
		}
		for id := range uint64(2) {
			pending(b, f)
			bob.send(lock, &messages.Release{RequestId: id + 1, Owner: "bob"})
			bob.released(id+1, uint32(1-id))
		}
		unlock(b, result(b, f))
	})
}

// The limits count the requests of users.
func TestLocalLimits(t *testing.T) {
	each(t, func(b *testLock) {
		mu := b.local(shortLinger, func(cfg *actors.Config) { cfg.MaxRequests, cfg.MaxRequestsPerLock = 2, 2 })
		for range 3 {
			g := lock(b, mu)
			f := mu.Acquire(within(b))
			_, err := mu.Lock(within(b))
			is(b, err, actors.ErrLimit)
			unlock(b, g)
			unlock(b, result(b, f))
		}
	})
}

func TestLocalInvalid(t *testing.T) {
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		locks := connect(t, s.Addr())
		path := s.Path(t)
		for value, local := range map[string]actors.LocalQueueConfig{
			"-1":   {Grants: -1},
			"-1ns": {Time: -1},
			"-1s":  {Linger: -time.Second},
		} {
			_, err := locks.Mutex(path, actors.LocalQueue(local)).Lock(within(t))
			isClear(t, err, value)
		}
		g := lock(t, locks.Mutex(path, actors.LocalQueue(actors.LocalQueueConfig{Linger: time.Millisecond})))
		// Handles with the same settings share the lock, and others are refused.
		f := locks.Mutex(path, actors.LocalQueue(actors.LocalQueueConfig{Linger: time.Millisecond, Grants: 1000})).Acquire(within(t))
		for _, other := range []*actors.Mutex{locks.Mutex(path), locks.Mutex(path, actors.LocalQueue(actors.LocalQueueConfig{}))} {
			_, err := other.Lock(within(t))
			is(t, err, actors.ErrInvalid)
		}
		unlock(t, g)
		unlock(t, result(t, f))
		_, err := locks.SemaphoreMutex(path, shortLinger).Lock(within(t))
		isClear(t, err, "semaphore")
	})
}

// A local queue and a lock-delay: the held marker goes with a released node, and stays with a lost
// one.
func TestLocalDelay(t *testing.T) {
	t.Parallel()
	bubble(t, func(v *virtual) {
		const delay = 10 * time.Second
		locks := v.locks()
		others := v.locks()
		mu := locks.Mutex("/lock", longLinger, actors.LockDelay(delay))
		same := locks.Mutex("/lock", actors.LockDelay(delay), longLinger)
		other := others.Mutex("/lock", actors.LockDelay(delay))
		for _, mu := range []*actors.Mutex{mu, same, mu} {
			begun := time.Now()
			unlock(v, lock(v, mu))
			unlock(v, lock(v, other))
			if took := time.Since(begun); took > time.Second {
				v.Errorf("granted %v after a release", took)
			}
		}
		unlock(v, lock(v, mu))
		begun := time.Now()
		v.Expire(locks.Session().ID)
		f := other.Acquire(context.Background())
		closes(v, f.Done(), "the future")
		unlock(v, result(v, f))
		if took := time.Since(begun); took < delay || took > delay+session {
			v.Errorf("granted %v after a loss, the delay is %v", took, delay)
		}
		v.clean()
	})
}
