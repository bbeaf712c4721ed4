package actors_test

import (
	"fmt"
	"testing"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/queue"
)

// Two processes use one path with different numbers of permits. The second logs that once, and
// Inspect shows both; what it cannot see, and what agrees, is not logged.
func TestDifferentPermits(t *testing.T) {
	t.Parallel()
	semaphore := func(n int) func(*actors.Locks, string) handle {
		return func(l *actors.Locks, path string) handle { return l.Semaphore(path, n) }
	}
	shared := func(n int) func(*actors.Locks, string) handle {
		return func(l *actors.Locks, path string) handle {
			return l.Semaphore(path, n, actors.SharedPermits(path+"-count"))
		}
	}
	custom := func(n int) func(*actors.Locks, string) handle {
		return func(l *actors.Locks, path string) handle {
			rule := queue.Rule{Permits: n, BlockedBy: []queue.KindSet{queue.Kinds(queue.Exclusive)}, Markers: []string{"-mine-"}}
			return l.Custom(path, "custom lock", rule, "mine").Kind("mine")
		}
	}
	mutex := func(l *actors.Locks, path string) handle { return l.SemaphoreMutex(path) }
	for name, c := range map[string]struct {
		there, here func(*actors.Locks, string) handle
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
			each(t, func(b *testLock) {
				var log logs
				there, here := b.locks(func(cfg *actors.Config) { cfg.OmitHolder = true }), b.locks(log.config)
				first, mu := lock(b, c.there(there, b.path)), c.here(here, b.path)
				for range 2 {
					g := lock(b, mu) // it knows all leases ahead of its own
					q := inspect(b, there, b.path)
					if got := fmt.Sprint(q.Participants[0].Permits, q.Participants[1].Permits, q.Permits); got != c.shown {
						b.Errorf("Inspect shows %s, want %s", got, c.shown)
					}
					unlock(b, g)
				}
				lines := log.with("level=ERROR", "different numbers of permits")
				switch {
				case c.attributes == "" && len(lines) != 0, c.attributes != "" && len(lines) != 1:
					b.Errorf("%q", lines)
				case c.attributes != "":
					contains(b, lines[0], "path="+b.path+" "+c.attributes+" node="+first.Node())
				}
				unlock(b, first)
				must(b, there.Close()) // ends the watch of a shared number
				must(b, here.Close())
				b.cleanups = append(b.cleanups, func() { // the containers of a semaphore stay for a while
					conn := b.Client(b)
					for _, end := range []string{"-count", "/locks", "/leases"} {
						conn.Delete(b.path+end, -1)
					}
				})
			})
		})
	}
}
