package api

import (
	"strings"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/messages"
)

// An Acquire without a kind is refused by a lock with several kinds.
func TestKindMissing(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		config, all := locktest.OwnerActors(b.T, 2)
		alice, bob := all[0], all[1]
		locks := b.Locks(config)
		both := queue.Kinds(0, 1)
		rule := queue.Rule{Permits: 1, BlockedBy: []queue.KindSet{both, queue.Kinds(0)}, Markers: []string{"-one-", "-many-"}}
		at := func(end string) string { return b.LockPath + "-" + end }
		for name, c := range map[string]struct {
			lock        locktest.Handle
			write, read uint32
			text        string
		}{
			"read-write":  {locks.RWMutex(b.LockPath).Read(), 2, 1, "1 (read), 2 (write)"},
			"local queue": {locks.RWMutex(at("l"), actors.LocalQueue(actors.LocalQueueConfig{Linger: time.Millisecond})).Write(), 2, 1, "1 (read), 2 (write)"},
			"custom":      {locks.Custom(at("c"), "shared room", rule, "one", "many").Kind("many"), 1, 2, "1 (one), 2 (many)"},
		} {
			to := locktest.PID(b, c.lock)
			for id, kind := range []uint32{0, 3, 1 << 31} {
				alice.Send(to, &messages.Acquire{RequestId: uint64(id), Kind: kind})
				if m := alice.Refused(uint64(id), messages.Reason_INVALID); !strings.Contains(m.Detail, c.text) {
					b.Errorf("%s, kind %d: %v", name, kind, m)
				}
			}
			alice.Send(to, &messages.Acquire{RequestId: 1, Kind: c.read})
			alice.Granted(1)
			bob.Send(to, &messages.Acquire{RequestId: 1, Kind: c.read})
			bob.Granted(1)
			bob.Send(to, &messages.Acquire{RequestId: 2, Kind: c.write, Try: true})
			bob.Refused(2, messages.Reason_NOT_ACQUIRED)
			for _, p := range all {
				p.Send(to, &messages.Release{RequestId: 1})
				p.Released(1, 0)
			}
			alice.Send(to, &messages.Acquire{RequestId: 1, Kind: c.write})
			alice.Granted(1)
			bob.Send(to, &messages.Acquire{RequestId: 1, Kind: c.read, Try: true})
			bob.Refused(1, messages.Reason_NOT_ACQUIRED)
			alice.Send(to, &messages.Release{RequestId: 1})
			alice.Released(1, 0)
		}
	})
}

// The handles of one path have one PID; a lock with one kind takes EXCLUSIVE only.
func TestKindOfOne(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		config, all := locktest.OwnerActors(b.T, 1)
		locks := b.Locks(config)
		rw := locks.RWMutex(b.LockPath + "-rw")
		if read, write := locktest.PID(b, rw.Read()), locktest.PID(b, rw.Write()); !read.Equal(write) {
			b.Errorf("%v, %v", read, write)
		}
		to := locktest.PID(b, locks.Mutex(b.LockPath))
		all[0].Send(to, &messages.Acquire{RequestId: 1, Kind: uint32(messages.Kind_READ)})
		if m := all[0].Refused(1, messages.Reason_INVALID); !strings.Contains(m.Detail, "kind 1: a mutex has one kind, 0") {
			b.Error(m)
		}
		all[0].Send(to, &messages.Acquire{RequestId: 1, Kind: uint32(messages.Kind_EXCLUSIVE)})
		all[0].Granted(1)
		all[0].Send(to, &messages.Release{RequestId: 1})
		all[0].Released(1, 0)
	})
}
