package actors

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// connectTo returns Locks on a server, which the end of the test closes.
func connectTo(t *testing.T, s *embedded.Server) *Locks {
	t.Helper()
	locks, err := Connect(t.Context(), "embedded:1", Config{Dial: s.Dial})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { locks.Close() })
	return locks
}

// Without a session, two requests of an owner share what they wait for, and a multi-lock of one of
// the members is refused. The first request is cancelled, after which the second gets the lock.
func TestMultiLockCancelledWithoutSession(t *testing.T) {
	zktest.Bubble(t, func(t *testing.T) {
		s := embedded.Run(t, embedded.ServerConfig{MemoryOnly: true, TickTime: 100 * time.Millisecond, MaxSessionTimeout: time.Minute})
		locks := connectTo(t, s)
		away := s.Inject(embedded.Fault{Op: embedded.OpDial, Action: embedded.CutBefore, Times: -1})
		s.DropConnections()
		<-time.After(30 * time.Second)
		me := WithOwner("me")
		x, y := locks.Mutex("/x"), locks.RWMutex("/y")
		multi := locks.MultiLock(x, y.Read())
		first, second := multi.Acquire(t.Context(), me), multi.Acquire(t.Context(), me)
		synctest.Wait()
		for _, mu := range []interface {
			Lock(context.Context, ...Option) (*Grant, error)
		}{locks.MultiLock(x), locks.MultiLock(y.Read(), x), x, y.Read()} {
			if _, err := mu.Lock(t.Context(), me); !errors.Is(err, ErrDeadlock) {
				t.Errorf("%v, want %v", err, ErrDeadlock)
			}
		}
		first.Cancel()
		synctest.Wait()
		away.Remove()
		g, err := second.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A try and a request of the same owner that has entered it go to a server which does not answer.
// Another owner holds a member: the try is refused, also if it was cancelled before, and the
// request waits on.
func TestMultiLockEntersATry(t *testing.T) {
	for _, cancelled := range []bool{false, true} {
		zktest.Bubble(t, func(t *testing.T) {
			s := embedded.Run(t, embedded.ServerConfig{MemoryOnly: true, TickTime: 100 * time.Millisecond, MaxSessionTimeout: time.Minute})
			locks := connectTo(t, s)
			held, err := connectTo(t, s).Mutex("/x").Lock(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			multi, me := locks.MultiLock(locks.Mutex("/x"), locks.Mutex("/y")), WithOwner("me")
			s.Pause()
			try, waits := multi.Acquire(t.Context(), me, Try()), multi.Acquire(t.Context(), me)
			synctest.Wait()
			want := ErrNotAcquired
			if cancelled {
				want = ErrCancelled
				try.Cancel()
			}
			s.Resume()
			if _, err := try.Result(); !errors.Is(err, want) {
				t.Errorf("the try ended with %v, want %v", err, want)
			}
			<-time.After(time.Second)
			if err := held.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
			g, err := waits.Wait(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := g.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
