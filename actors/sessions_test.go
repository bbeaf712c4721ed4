package actors_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// nextState reads one state that must come.
func nextState(t testing.TB, states <-chan zkbridge.Session, want messages.SessionState, epoch uint64) {
	t.Helper()
	if s, open := receive(t, states, fmt.Sprintf("%v of epoch %d", want, epoch)); !open || s.State != want || s.Epoch != epoch {
		t.Errorf("the state is %+v (%v), want %v of epoch %d", s, open, want, epoch)
	}
}

func statesEnd(t testing.TB, states <-chan zkbridge.Session) {
	t.Helper()
	if s, open := receive(t, states, "the end of the states"); open {
		t.Errorf("the state is %+v, want the end", s)
	}
}

func TestSessions(t *testing.T) {
	besides(t, func(b *testLock) {
		const connected, suspended, lost = messages.SessionState_CONNECTED, messages.SessionState_SUSPENDED, messages.SessionState_LOST
		proxy := zktest.Proxy(b, b.Addr())
		locks := connect(b.T, proxy.Addr())
		ctx, cancel := context.WithCancel(b.Context())
		states, slow, unread := locks.Sessions(ctx), locks.Sessions(b.Context()), locks.Sessions(b.Context())
		nextState(b, states, connected, 1)
		nextState(b, slow, connected, 1)
		proxy.Refuse(true)
		proxy.Cut()
		nextState(b, states, suspended, 1)
		proxy.Refuse(false)
		nextState(b, states, connected, 1)
		b.Expire(b, locks.Session().ID)
		for s := range states { // the loss may be told by a server that was asked again
			if s.State == lost {
				break
			}
		}
		nextState(b, states, connected, 2)
		nextState(b, slow, connected, 2) // a loss has been in between
		cancel()
		statesEnd(b, states)
		must(b, locks.Close())
		nextState(b, slow, messages.SessionState_ENDED, 2)
		statesEnd(b, slow)
		nextState(b, unread, messages.SessionState_ENDED, 2)
		statesEnd(b, unread)
		late := locks.Sessions(b.Context())
		nextState(b, late, messages.SessionState_ENDED, 2)
		statesEnd(b, late)
	})
}

// The channel ends with its context or its Locks, also where the bridge goes on.
func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	bubble(t, func(v *virtual) {
		locks, bridge := v.onBridge()
		over, cancel := context.WithCancel(v.Context())
		cancel()
		for range 100 {
			states := locks.Sessions(over)
			nextState(v, states, messages.SessionState_CONNECTED, 1)
			statesEnd(v, states)
		}
		states, others := locks.Sessions(v.Context()), bridge.Sessions(v.Context())
		nextState(v, states, messages.SessionState_CONNECTED, 1)
		nextState(v, others, messages.SessionState_CONNECTED, 1)
		must(v, locks.Close())
		statesEnd(v, states)
		v.Expire(locks.Session().ID)
		nextState(v, others, messages.SessionState_SUSPENDED, 1)
	})
}

// A slow reader of Sessions blocks neither the bridge nor the news of a loss to a holder.
func TestSessionsUnread(t *testing.T) {
	t.Parallel()
	bubble(t, func(v *virtual) {
		locks := v.locks()
		mu := locks.Mutex(v.path)
		states := locks.Sessions(v.Context())
		for epoch := uint64(1); epoch <= 5; epoch++ {
			g := lock(v, mu)
			v.Expire(g.Session())
			closes(v, g.Done(), "the grant")
			is(v, failure(v, g.Release()), actors.ErrSessionLost)
		}
		unlock(v, lock(v, mu))
		nextState(v, states, messages.SessionState_CONNECTED, 6)
		v.clean()
	})
}
