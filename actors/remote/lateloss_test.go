package remote_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/access"
	"github.com/actorlock/actorlock/actors/internal/lock"
	"github.com/actorlock/actorlock/actors/internal/recipes"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// busy keeps the actor of a lock busy until it is closed.
type busy chan struct{}

func (b busy) Tell(any)                            {}
func (b busy) RequestID() *requests.ID             { <-b; return new(requests.ID) }
func (b busy) Owner() string                       { return "" }
func (b busy) Context() context.Context            { return context.Background() }
func (b busy) IsElsewhere() bool                   { return false }
func (b busy) ArmLeakDetection(time.Time)          {}
func (b busy) OnGranted(*messages.Granted, uint32) {}

// A lock that hears late of the end of one lease and of the next asks once for each request: a second
// one would keep the lock from all others for as long as the client lives.
func TestLossHeardLate(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		w := newWorld(t, 1, "server")
		w.startServer("server")
		l := w.dial("client", w.names)
		other := w.dial("other", w.names)
		if err := lockOf(t, l.Mutex("/lock")).Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		entry, err := access.Manager(l).Find("/lock", recipes.Mutex)
		if err != nil {
			t.Fatal(err)
		}
		b := make(busy)
		entry.Self.Tell(lock.TakeBack{From: b})
		synctest.Wait()
		request := l.Mutex("/lock").Acquire(t.Context())
		w.startServer("server") // in place of the first, whose leases it does not know
		w.breakStreams("", "")
		<-time.After(leaseTime)
		close(b)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		g, err := request.Wait(ctx)
		if err == nil {
			err = g.Unlock(ctx)
		}
		if err != nil {
			t.Error(err)
		}
		if _, err := other.Mutex("/lock").Lock(ctx); err != nil {
			t.Errorf("another client: %v", err)
		}
		w.closeAll(l, other)
	})
}

// A lock that hears of a Cancel ahead of the end of the lease tells the server, though the client has
// let go by then: no lock-delay begins.
func TestCancelAheadOfALoss(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		w := newWorld(t, 1, "first", "second")
		for _, name := range w.names {
			w.startServer(name)
		}
		l, delayed := w.dial("client", w.names), actors.LockDelay(time.Minute)
		w.cut("first", "client", time.Hour)
		pending := l.Mutex("/lock", delayed).Acquire(t.Context())
		<-time.After(100 * time.Millisecond) // the server has granted it
		b := make(busy)
		access.Manager(l).Open()[0].Entry.Self.Tell(lock.TakeBack{From: b})
		w.heal()
		<-time.After(200 * time.Millisecond)
		pending.Cancel()
		closed := make(chan error, 1)
		go func() { closed <- w.servers[0].server.Close() }()
		<-time.After(200 * time.Millisecond)
		close(b)
		if err := <-closed; err != nil {
			t.Error(err)
		}
		begun := time.Now()
		lockOf(t, l.Mutex("/lock", delayed))
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("a lock-delay has begun: the next acquire took %v", took)
		}
		w.closeAll(l)
	})
}

// A re-entry that waits when its owner loses the lock fails, as in a process with ZooKeeper: it would
// become a grant of its own otherwise.
func TestReentryOfALostGrant(t *testing.T) {
	t.Parallel()
	for name, second := range map[string]func(rw *actors.RWMutex) acquirable{
		"downgrade":  func(rw *actors.RWMutex) acquirable { return rw.Read() },
		"once again": func(rw *actors.RWMutex) acquirable { return rw.Write() },
	} {
		t.Run(name, func(t *testing.T) {
			zktest.Bubble(t, func(t *testing.T) {
				w := newWorld(t, 1, "server")
				w.startServer("server")
				l := w.dial("client", w.names)
				rw := l.RWMutex("/lock")
				g := lockOf(t, rw.Write(), actors.WithOwner("me"))
				w.cut("server", "client", 2*leaseTime)
				again := second(rw).Acquire(t.Context(), actors.WithOwner("me"))
				others := rw.Write().Acquire(t.Context(), actors.WithOwner("you"))
				if g, err := again.Wait(t.Context()); !errors.Is(err, actors.ErrSessionLost) {
					t.Error(g, err)
				}
				if !errors.Is(g.Err(), actors.ErrSessionLost) {
					t.Error(g.Err())
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if _, err := others.Wait(ctx); err != nil {
					t.Errorf("another owner that waits: %v", err)
				}
				w.closeAll(l)
			})
		})
	}
}
