package actors_test

import (
	"sync/atomic"
	"testing"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Requests to a lock's actor by a typed reference, for which the actor sends no request to
// ZooKeeper: re-entries and refused tries.
func BenchmarkAsk(b *testing.B) {
	s := zktest.Embedded(b)
	locks, err := actors.Connect(b.Context(), s.Addr(), actors.Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer locks.Close()
	mu := locks.Mutex(s.Path(b))
	if _, err := mu.Lock(b.Context(), actors.WithOwner("me")); err != nil {
		b.Fatal(err)
	}
	_, err = mu.PID()
	if err != nil {
		b.Fatal(err)
	}
	lock := messages.LockRef{To: actors.LockRecipient(mu)}
	var id atomic.Uint64
	b.Run("re-entry and release", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			n := id.Add(1)
			if _, err := lock.Acquire(&messages.Acquire{RequestId: n, Owner: "me"}).Result(); err != nil {
				b.Fatal(err)
			}
			if _, err := lock.Release(&messages.Release{RequestId: n, Owner: "me"}).Result(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("refused try", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := lock.Acquire(&messages.Acquire{RequestId: id.Add(1), Owner: "you", Try: true}).Result(); err == nil {
				b.Fatal("granted")
			}
		}
	})
}
