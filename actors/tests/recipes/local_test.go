package recipes

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// The owners of one process hand one node on, each with a token of its own, without a request to
// ZooKeeper.
func TestLocalQueue(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		d := &locktest.Network{}
		mu, other := b.LocalMutex(locktest.LongLinger, d.Config), b.Mutex()
		since := time.Now()
		first := locktest.Lock(b, mu, actors.WithData([]byte("the first's")))
		data, stat, err := b.Client(b).Get(first.Node())
		if err != nil || string(data) != "the first's" || stat.Czxid != first.Token().Czxid {
			b.Errorf("%q, %+v, %v; token %v", data, stat, err, first.Token())
		}
		last := first.Token()
		d.WaitIdle(b)
		if _, ops := d.During(func() {
			for range 20 {
				f := mu.Acquire(locktest.Within(b), actors.WithData([]byte("in no node")))
				locktest.Unlock(b, first)
				first = locktest.Result(b, f)
				if first.Token().Compare(last) <= 0 || first.Token().Czxid != last.Czxid {
					b.Errorf("token %v after %v", first.Token(), last)
				}
				last = first.Token()
				locktest.Unlock(b, first)
				first = locktest.Lock(b, mu)
				_, err := mu.Lock(locktest.Within(b), actors.Try())
				locktest.Is(b, err, actors.ErrNotAcquired)
				_, err = mu.Lock(locktest.Within(b), actors.WithTimeout(time.Millisecond))
				locktest.Is(b, err, actors.ErrTimedOut)
			}
		}); locktest.WithoutTickReads(ops, since, 1) > 0 {
			b.Errorf("requests to ZooKeeper: %v", ops)
		}
		locktest.Must(b, first.Verify(locktest.Within(b)))
		locktest.Unlock(b, first)
		if n := b.LockNodes(); len(n) != 1 {
			b.Errorf("nodes %v", n)
		}
		locktest.Unlock(b, locktest.Lock(b, mu, actors.Try()))
		// Another process waits: the local queue releases its node.
		g := locktest.Lock(b, other)
		locktest.ExpectIncreasing(b, last, g.Token())
		_, err = mu.Lock(locktest.Within(b), actors.Try())
		locktest.Is(b, err, actors.ErrNotAcquired)
		f := mu.Acquire(locktest.Within(b))
		b.WaitNodes(2)
		locktest.Unlock(b, g)
		h := locktest.Result(b, f)
		locktest.ExpectIncreasing(b, g.Token(), h.Token())
		locktest.Unlock(b, h)
		locktest.Unlock(b, locktest.Lock(b, other)) // so that the local queue keeps no node
	})
}

// A local queue keeps an unused node for its Linger after the last release.
func TestLocalLinger(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		locks := v.Locks(locktest.IdleTimeout(time.Second))
		mu := locks.Mutex("/lock", actors.LocalQueue(actors.LocalQueueConfig{Linger: time.Minute}))
		g := locktest.Lock(v, mu)
		node := g.Node()
		<-time.After(time.Hour)
		locktest.Unlock(v, g)
		for range 10 {
			<-time.After(59 * time.Second)
			if g = locktest.Lock(v, mu); g.Node() != node {
				v.Fatalf("node %s, was %s", g.Node(), node)
			}
			locktest.Unlock(v, g)
		}
		<-time.After(59 * time.Second)
		if len(v.LockNodes()) != 1 {
			v.Error("the node is gone before a minute has passed")
		}
		<-time.After(62 * time.Second)
		if len(v.LockNodes()) != 0 {
			v.Error("the node is there after two minutes")
		}
		v.Clean()
		locktest.Unlock(v, locktest.Lock(v, mu))
		v.Clean()
	})
}

// Requests leave the local queue in each way while others come.
func TestLocalCancel(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		mu, other := b.LocalMutex(locktest.ShortLinger), b.Mutex()
		// The only request is cancelled: the process leaves the lock's queue.
		g := locktest.Lock(b, other)
		f := mu.Acquire(locktest.Within(b))
		b.WaitNodes(2)
		f.Cancel()
		locktest.Is(b, locktest.Failure(b, f), actors.ErrCancelled)
		b.WaitNodes(1)
		ctx, cancel := context.WithCancel(b.Context())
		ended, timed, stays := mu.Acquire(ctx), mu.Acquire(locktest.Within(b), actors.WithTimeout(20*time.Millisecond)), mu.Acquire(locktest.Within(b))
		b.WaitNodes(2)
		cancel()
		locktest.Is(b, locktest.Failure(b, ended), context.Canceled)
		locktest.Is(b, locktest.Failure(b, timed), actors.ErrTimedOut)
		locktest.Pending(b, stays)
		locktest.Unlock(b, g)
		h := locktest.Result(b, stays)
		// Requests are cancelled at the moment of their grant.
		var wg sync.WaitGroup
		for range 50 {
			f := mu.Acquire(locktest.Within(b))
			wg.Go(func() {
				f.Cancel()
				if g, err := f.Result(); err == nil {
					g.Release()
				}
			})
			wg.Go(func() {
				if g, err := mu.Lock(locktest.Within(b)); err != nil {
					b.Error(err)
				} else {
					g.Release()
				}
			})
		}
		locktest.Unlock(b, h)
		wg.Wait()
	})
}

// The local queue answers owners that are actors.
func TestLocalMessages(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		config, all := locktest.OwnerActors(b.T, 2)
		alice, bob := all[0], all[1]
		locks, other := b.Locks(config), b.Mutex()
		// bob is granted while another process waits, within an hour.
		mu := locks.Mutex(b.LockPath, actors.LocalQueue(actors.LocalQueueConfig{Linger: 50 * time.Millisecond, Time: time.Minute}))
		lock := locktest.PID(b, mu)
		alice.Send(lock, &messages.Acquire{RequestId: 1, NotifyContended: true})
		g := alice.Granted(1)
		bob.Send(lock, &messages.Acquire{RequestId: 1, Owner: "bob"})
		bob.Send(lock, &messages.Acquire{RequestId: 2, Owner: "bob"})
		bob.Send(lock, &messages.Acquire{RequestId: 3, Try: true})
		bob.Refused(3, messages.Reason_NOT_ACQUIRED)
		bob.Send(lock, &messages.Release{RequestId: 1})
		bob.Refused(1, messages.Reason_NOT_HELD)
		f := other.Acquire(locktest.Within(b))
		if m := locktest.ExpectMessage[*messages.Contended](alice); m.RequestId != 1 {
			b.Errorf("got %v", m)
		}
		alice.Send(lock, &messages.Release{RequestId: 1})
		alice.Released(1, 0)
		for id := range uint64(2) {
			if m := bob.Granted(id + 1); m.Czxid != g.Czxid || m.Step != g.Step+1 || m.Node != g.Node || m.SessionId != locks.Session().ID || m.Path != b.LockPath {
				b.Errorf("%v after %v", m, g)
			}
		}
		for id := range uint64(2) {
			locktest.Pending(b, f)
			bob.Send(lock, &messages.Release{RequestId: id + 1, Owner: "bob"})
			bob.Released(id+1, uint32(1-id))
		}
		locktest.Unlock(b, locktest.Result(b, f))
	})
}

// Handles with the same settings share the lock, and others are refused.
func TestLocalInvalid(t *testing.T) {
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		locks := locktest.Connect(t, s.Addr())
		path := s.Path(t)
		g := locktest.Lock(t, locks.Mutex(path, actors.LocalQueue(actors.LocalQueueConfig{Linger: time.Millisecond})))
		f := locks.Mutex(path, actors.LocalQueue(actors.LocalQueueConfig{Linger: time.Millisecond, Grants: 1000})).Acquire(locktest.Within(t))
		for _, other := range []*actors.Mutex{locks.Mutex(path), locks.Mutex(path, actors.LocalQueue(actors.LocalQueueConfig{}))} {
			_, err := other.Lock(locktest.Within(t))
			locktest.Is(t, err, actors.ErrInvalid)
		}
		locktest.Unlock(t, g)
		locktest.Unlock(t, locktest.Result(t, f))
	})
}

// A local queue and a lock-delay: the held marker goes with a released node, and stays with a lost
// one.
func TestLocalDelay(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		const delay = 10 * time.Second
		locks := v.Locks()
		others := v.Locks()
		mu := locks.Mutex("/lock", locktest.LongLinger, actors.LockDelay(delay))
		same := locks.Mutex("/lock", actors.LockDelay(delay), locktest.LongLinger)
		other := others.Mutex("/lock", actors.LockDelay(delay))
		for _, mu := range []*actors.Mutex{mu, same, mu} {
			begun := time.Now()
			locktest.Unlock(v, locktest.Lock(v, mu))
			locktest.Unlock(v, locktest.Lock(v, other))
			if took := time.Since(begun); took > time.Second {
				v.Errorf("granted %v after a release", took)
			}
		}
		locktest.Unlock(v, locktest.Lock(v, mu))
		begun := time.Now()
		v.Expire(locks.Session().ID)
		f := other.Acquire(context.Background())
		locktest.Closes(v, f.Done(), "the future")
		locktest.Unlock(v, locktest.Result(v, f))
		if took := time.Since(begun); took < delay || took > delay+locktest.SessionTimeout {
			v.Errorf("granted %v after a loss, the delay is %v", took, delay)
		}
		v.Clean()
	})
}
