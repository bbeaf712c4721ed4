package actors

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/actorlock/actorlock/zkbridge/embedded"

	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Without a session, an owner requests two members, then each member alone, and both members again, and
// cancels the first request. If different transactions create the nodes then, the last request is refused.
// Otherwise all requests get the nodes of one transaction.
func TestMultiLockCancelledWithoutSession(t *testing.T) {
	zktest.Bubble(t, func(t *testing.T) {
		s := embedded.Run(t, embedded.ServerConfig{MemoryOnly: true, TickTime: 100 * time.Millisecond, MaxSessionTimeout: time.Minute})
		locks, err := Connect(t.Context(), "embedded:1", Config{Dial: s.Dial})
		if err != nil {
			t.Fatal(err)
		}
		defer locks.Close()
		away := s.Inject(embedded.Fault{Op: embedded.OpDial, Action: embedded.CutBefore, Times: -1})
		s.DropConnections()
		<-time.After(30 * time.Second)
		me := WithOwner("me")
		x, y := locks.Mutex("/x"), locks.RWMutex("/y")
		first := locks.MultiLock(x, y.Read()).Acquire(t.Context(), me)
		synctest.Wait()
		one, two := locks.MultiLock(x).Acquire(t.Context(), me), locks.MultiLock(y.Read()).Acquire(t.Context(), me)
		synctest.Wait()
		first.Cancel()
		synctest.Wait()
		both := locks.MultiLock(y.Read(), x).Acquire(t.Context(), me)
		synctest.Wait()
		away.Remove()
		g, err := both.Wait(t.Context())
		if err != nil && !errors.Is(err, ErrDeadlock) {
			t.Error(err)
		}
		for _, f := range []*Future[*Grant]{one, two} {
			part, partErr := f.Wait(t.Context())
			if partErr != nil {
				t.Fatal(partErr)
			}
			if err == nil && part.Token() != g.Token() {
				t.Errorf("token %v of %s, and %v of all", part.Token(), part.Path(), g.Token())
			}
			if err := part.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if err == nil {
			if err := g.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}
