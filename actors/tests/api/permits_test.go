package api

import (
	"fmt"
	"testing"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/actors/queue"
)

// Two processes use one path with different numbers of permits. The second logs that once, and
// Inspect shows both; what it cannot see, and what agrees, is not logged.
func TestDifferentPermits(t *testing.T) {
	t.Parallel()
	semaphore := func(n int) func(*actors.Locks, string) locktest.Handle {
		return func(l *actors.Locks, path string) locktest.Handle { return l.Semaphore(path, n) }
	}
	shared := func(n int) func(*actors.Locks, string) locktest.Handle {
		return func(l *actors.Locks, path string) locktest.Handle {
			return l.Semaphore(path, n, actors.SharedPermits(path+"-count"))
		}
	}
	custom := func(n int) func(*actors.Locks, string) locktest.Handle {
		return func(l *actors.Locks, path string) locktest.Handle {
			rule := queue.Rule{Permits: n, BlockedBy: []queue.KindSet{queue.Kinds(queue.Exclusive)}, Markers: []string{"-mine-"}}
			return l.Custom(path, "custom lock", rule, "mine").Kind("mine")
		}
	}
	mutex := func(l *actors.Locks, path string) locktest.Handle { return l.SemaphoreMutex(path) }
	for name, c := range map[string]struct {
		there, here func(*actors.Locks, string) locktest.Handle
		attributes  string // of the line; "" for none
		shown       string // by Inspect: the numbers of both, and of the queue
	}{
		"3 and 2":           {semaphore(3), semaphore(2), "here=2 there=3", "3 2 0"},
		"1 and 3":           {semaphore(1), semaphore(3), "here=3 there=1", "1 3 0"},
		"mutex and 3":       {mutex, semaphore(3), "here=3 there=1", "1 3 0"},
		"custom, 1 and 3":   {custom(1), custom(3), "here=3 there=1", "1 3 0"},
		"3 and 3":           {semaphore(3), semaphore(3), "", "3 3 3"},
		"custom, 3 and 3":   {custom(3), custom(3), "", "3 3 0"},
		"2^20 and 3":        {semaphore(1 << 20), semaphore(3), "", "0 3 3"},
		"2^20-1 and 3":      {semaphore(1<<20 - 1), semaphore(3), fmt.Sprintf("here=3 there=%d", 1<<20-1), "1048575 3 0"},
		"shared 3 and 2":    {shared(3), semaphore(2), "", "0 2 2"},
		"2 and shared of 3": {semaphore(2), shared(3), "", "2 0 2"},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.Each(t, func(b *locktest.Fixture) {
				var log locktest.Log
				there, here := b.Locks(func(cfg *actors.Config) { cfg.OmitHolder = true }), b.Locks(log.Config)
				first, mu := locktest.Lock(b, c.there(there, b.LockPath)), c.here(here, b.LockPath)
				for range 2 {
					g := locktest.Lock(b, mu) // it knows all leases ahead of its own
					q := locktest.Inspect(b, there, b.LockPath)
					if got := fmt.Sprint(q.Participants[0].Permits, q.Participants[1].Permits, q.Permits); got != c.shown {
						b.Errorf("Inspect shows %s, want %s", got, c.shown)
					}
					locktest.Unlock(b, g)
				}
				lines := log.With("level=ERROR", "different numbers of permits")
				switch {
				case c.attributes == "" && len(lines) != 0, c.attributes != "" && len(lines) != 1:
					b.Errorf("%q", lines)
				case c.attributes != "":
					locktest.ExpectParts(b, lines[0], "path="+b.LockPath+" "+c.attributes+" node="+first.Node())
				}
				locktest.Unlock(b, first)
				locktest.Must(b, there.Close()) // ends the watch of a shared number
				locktest.Must(b, here.Close())
				b.Cleanups = append(b.Cleanups, func() { // the containers of a semaphore stay for a while
					conn := b.Client(b)
					for _, end := range []string{"-count", "/locks", "/leases"} {
						conn.Delete(b.LockPath+end, -1)
					}
				})
			})
		})
	}
}
