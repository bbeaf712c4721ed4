package actors_test

import (
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
)

// Observe knows since when a participant holds if it has come to hold meanwhile, and claims it of
// no other.
func TestObserveHeldSince(t *testing.T) {
	each(t, func(b *testLock) {
		locks := b.locks()
		first := lock(b, b.mutex())
		second := b.mutex().Acquire(within(b))
		b.waitNodes(2)
		queues := b.observe(locks, b.path)
		if q := expectQueue(b, queues, "mutex: exclusive! exclusive"); !q.Participants[0].HeldSince.IsZero() || !q.Participants[1].HeldSince.IsZero() {
			b.Errorf("at first: %v", q.Participants)
		}
		before := time.Now()
		unlock(b, first)
		q := expectQueue(b, queues, "mutex: exclusive!")
		since := q.Participants[0].HeldSince
		if since.Before(before) || since.After(time.Now()) {
			b.Errorf("held since %v, after %v", since, before)
		}
		third := b.mutex().Acquire(within(b))
		if q := expectQueue(b, queues, "mutex: exclusive! exclusive"); !q.Participants[0].HeldSince.Equal(since) || !q.Participants[1].HeldSince.IsZero() {
			b.Errorf("with a waiter: %v, not since %v", q.Participants, since)
		}
		if q := inspect(b, locks, b.path); !q.Participants[0].HeldSince.IsZero() {
			b.Errorf("Inspect: %v", q.Participants)
		}
		unlock(b, result(b, second))
		unlock(b, result(b, third))
	})
}

// A process knows since when its own owners hold, in each recipe.
func TestHeldSinceOfOwnHolders(t *testing.T) {
	each(t, func(b *testLock) {
		locks, other := b.locks(), b.locks()
		for name, c := range map[string]struct {
			lock    func(path string) handle
			options []actors.Option
		}{
			"mutex":       {func(path string) handle { return locks.Mutex(path) }, nil},
			"read":        {func(path string) handle { return locks.RWMutex(path).Read() }, nil},
			"local-queue": {func(path string) handle { return locks.Mutex(path, actors.LocalQueue(actors.LocalQueueConfig{})) }, nil},
			"semaphore":   {func(path string) handle { return locks.Semaphore(path, 3) }, []actors.Option{actors.Permits(2)}},
			"multi-lock":  {func(path string) handle { return locks.MultiLock(locks.Mutex(path), locks.Mutex(path+"-2")) }, nil},
		} {
			path := b.path + "-" + name
			before := time.Now()
			g := lock(b, c.lock(path), c.options...)
			for _, l := range []*actors.Locks{locks, other} {
				q := inspect(b, l, path)
				if len(q.Participants) == 0 {
					b.Errorf("%s has no participant", name)
				}
				for _, p := range q.Participants {
					if l == other && !p.HeldSince.IsZero() || l == locks && (p.HeldSince.Before(before) || p.HeldSince.After(time.Now())) {
						b.Errorf("%s: %v, since %v", name, p, before)
					}
				}
			}
			unlock(b, g)
		}
	})
}
