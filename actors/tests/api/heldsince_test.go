package api

import (
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
)

// Observe knows since when a participant holds if it has come to hold meanwhile, and claims it of
// no other.
func TestObserveHeldSince(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		locks := b.Locks()
		first := locktest.Lock(b, b.Mutex())
		second := b.Mutex().Acquire(locktest.Within(b))
		b.WaitNodes(2)
		queues := observe(b, locks, b.LockPath)
		if q := expectQueue(b, queues, "mutex: exclusive! exclusive"); !q.Participants[0].HeldSince.IsZero() || !q.Participants[1].HeldSince.IsZero() {
			b.Errorf("at first: %v", q.Participants)
		}
		before := time.Now()
		locktest.Unlock(b, first)
		q := expectQueue(b, queues, "mutex: exclusive!")
		since := q.Participants[0].HeldSince
		if since.Before(before) || since.After(time.Now()) {
			b.Errorf("held since %v, after %v", since, before)
		}
		third := b.Mutex().Acquire(locktest.Within(b))
		if q := expectQueue(b, queues, "mutex: exclusive! exclusive"); !q.Participants[0].HeldSince.Equal(since) || !q.Participants[1].HeldSince.IsZero() {
			b.Errorf("with a waiter: %v, not since %v", q.Participants, since)
		}
		if q := locktest.Inspect(b, locks, b.LockPath); !q.Participants[0].HeldSince.IsZero() {
			b.Errorf("Inspect: %v", q.Participants)
		}
		locktest.Unlock(b, locktest.Result(b, second))
		locktest.Unlock(b, locktest.Result(b, third))
	})
}

// A process knows since when its own owners hold, in each recipe. The node by which a request for permits has waited may
// be there for a moment after the grant: it holds nothing.
func TestHeldSinceOfOwnHolders(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		locks, other := b.Locks(), b.Locks()
		for name, c := range map[string]struct {
			lock    func(path string) locktest.Handle
			options []actors.Option
		}{
			"mutex": {func(path string) locktest.Handle { return locks.Mutex(path) }, nil},
			"read":  {func(path string) locktest.Handle { return locks.RWMutex(path).Read() }, nil},
			"local-queue": {func(path string) locktest.Handle {
				return locks.Mutex(path, actors.LocalQueue(actors.LocalQueueConfig{}))
			}, nil},
			"semaphore":  {func(path string) locktest.Handle { return locks.Semaphore(path, 3) }, []actors.Option{actors.Permits(2)}},
			"multi-lock": {func(path string) locktest.Handle { return locks.MultiLock(locks.Mutex(path), locks.Mutex(path+"-2")) }, nil},
		} {
			path := b.LockPath + "-" + name
			before := time.Now()
			g := locktest.Lock(b, c.lock(path), c.options...)
			for _, l := range []*actors.Locks{locks, other} {
				q := locktest.Inspect(b, l, path)
				holders := 0
				for _, p := range q.Participants {
					known := !p.HeldSince.Before(before) && !p.HeldSince.After(time.Now())
					if own := p.Holds && l == locks; own && !known || !own && !p.HeldSince.IsZero() {
						b.Errorf("%s: %v, since %v", name, p, before)
					}
					if p.Holds {
						holders++
					}
				}
				if holders == 0 {
					b.Errorf("%s has no holder: %v", name, q.Participants)
				}
			}
			locktest.Unlock(b, g)
		}
	})
}
