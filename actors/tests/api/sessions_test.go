package api

import (
	"context"
	"fmt"
	"testing"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// expectState waits for the next state.
func expectState(t testing.TB, states <-chan zkbridge.Session, want messages.SessionState, epoch uint64) {
	t.Helper()
	if s, open := locktest.Receive(t, states, fmt.Sprintf("%v of epoch %d", want, epoch)); !open || s.State != want || s.Epoch != epoch {
		t.Errorf("the state is %+v (%v), want %v of epoch %d", s, open, want, epoch)
	}
}

func expectStatesEnd(t testing.TB, states <-chan zkbridge.Session) {
	t.Helper()
	if s, open := locktest.Receive(t, states, "the end of the states"); open {
		t.Errorf("the state is %+v, want the end", s)
	}
}

func TestSessions(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		b.NeedsResumption()
		const connected, suspended, lost = messages.SessionState_CONNECTED, messages.SessionState_SUSPENDED, messages.SessionState_LOST
		proxy := zktest.Proxy(b, b.Addr())
		locks := locktest.Connect(b.T, proxy.Addr())
		ctx, cancel := context.WithCancel(b.Context())
		// The bridge tells states last: what has reached it, the others have been told, too.
		slow, unread, states := locks.Sessions(b.Context()), locks.Sessions(b.Context()), locks.Sessions(ctx)
		expectState(b, states, connected, 1)
		expectState(b, slow, connected, 1)
		proxy.Refuse(true)
		proxy.Cut()
		expectState(b, states, suspended, 1)
		proxy.Refuse(false)
		expectState(b, states, connected, 1)
		b.Expire(b, locks.Session().ID)
		for s := range states { // perhaps after a reconnection
			if s.State == lost {
				break
			}
		}
		expectState(b, states, connected, 2)
		expectState(b, slow, connected, 2) // after a loss that slow has missed
		cancel()
		expectStatesEnd(b, states)
		locktest.Must(b, locks.Close())
		expectState(b, slow, messages.SessionState_ENDED, 2)
		expectStatesEnd(b, slow)
		expectState(b, unread, messages.SessionState_ENDED, 2)
		expectStatesEnd(b, unread)
		late := locks.Sessions(b.Context())
		expectState(b, late, messages.SessionState_ENDED, 2)
		expectStatesEnd(b, late)
	})
}

// The channel ends with its context or its Locks, also where the bridge goes on.
func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		locks, bridge := v.OnBridge()
		over, cancel := context.WithCancel(v.Context())
		cancel()
		for range 100 {
			states := locks.Sessions(over)
			expectState(v, states, messages.SessionState_CONNECTED, 1)
			expectStatesEnd(v, states)
		}
		states, others := locks.Sessions(v.Context()), bridge.Sessions(v.Context())
		expectState(v, states, messages.SessionState_CONNECTED, 1)
		expectState(v, others, messages.SessionState_CONNECTED, 1)
		locktest.Must(v, locks.Close())
		expectStatesEnd(v, states)
		v.Expire(locks.Session().ID)
		expectState(v, others, messages.SessionState_SUSPENDED, 1)
	})
}

// A slow reader of Sessions blocks neither the bridge nor the end of a lost grant.
func TestSessionsUnread(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		locks := v.Locks()
		mu := locks.Mutex(v.LockPath)
		states := locks.Sessions(v.Context())
		for epoch := uint64(1); epoch <= 5; epoch++ {
			g := locktest.Lock(v, mu)
			v.Expire(g.Session())
			locktest.Closes(v, g.Done(), "the grant")
			locktest.Is(v, locktest.Failure(v, g.Release()), actors.ErrSessionLost)
		}
		locktest.Unlock(v, locktest.Lock(v, mu))
		expectState(v, states, messages.SessionState_CONNECTED, 6)
		v.Clean()
	})
}
