package actors_test

import (
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// The server collects the empty directory while the lock's actor lives. Sequence numbers begin anew in
// the next directory. The actor must not let a second contender hold because of its knowledge of the
// earlier directory.
func TestDirectoryIsMadeAgain(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		sharesServer(t, s)
		path, client := s.Path(t), s.Client(t)
		connect := func() *actors.Mutex {
			locks, err := actors.Connect(t.Context(), s.Addr(), actors.Config{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { locks.Close() })
			return locks.Mutex(path)
		}
		first, second := connect(), connect()
		for range 3 {
			grant, err := first.Lock(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := grant.Unlock(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		zktest.Eventually(t, timeLimit, func() bool {
			exists, _, _ := client.Exists(path)
			return !exists
		}, "the empty directory goes")

		holder, err := second.Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		pending := first.Acquire(t.Context())
		select {
		case <-pending.Done():
			grant, err := pending.Result()
			t.Fatalf("while the lock is held (%v), it is given to %v, %v", holder.Err(), grant, err)
		case <-time.After(300 * time.Millisecond):
		}
		if err := holder.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		grant, err := pending.Result()
		if err != nil {
			t.Fatal(err)
		}
		if grant.Token().Compare(holder.Token()) <= 0 {
			t.Errorf("token %v after %v", grant.Token(), holder.Token())
		}
		if err := grant.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}
