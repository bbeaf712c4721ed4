package actors_test

import (
	"context"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// The lock's actor fails: waiters and holders are told, its nodes go, the log tells,
// and a new actor serves the path.
func TestPanic(t *testing.T) {
	each(t, func(b *bed) {
		var log logs
		locks, other := b.locks(log.config), b.mutex()
		mu, elsewhere := locks.Mutex(b.path), locks.Mutex(b.path+"-other")
		g, again := lock(b, mu, actors.WithOwner("me")), lock(b, mu, actors.WithOwner("me"))
		h := lock(b, elsewhere)
		ctx := g.Context(b.Context())
		waiting, timed := mu.Acquire(within(b)), mu.Acquire(within(b), actors.WithTimeout(time.Hour))
		b.waitNodes(3)
		foreign := other.Acquire(within(b))
		b.waitNodes(4)
		actors.Poison(mu)
		creating := mu.Acquire(within(b), actors.WithData([]byte("perhaps too late")))
		closes(b, g.Done(), "the grant")
		closes(b, again.Done(), "the re-entered grant")
		closes(b, ctx.Done(), "its context")
		for _, err := range []error{failure(b, waiting), failure(b, timed), g.Err(), again.Err(), context.Cause(ctx)} {
			is(b, err, actors.ErrInternal)
		}
		unlock(b, result(b, foreign))
		if k, err := creating.Result(); err == nil { // by the new actor
			unlock(b, k)
		} else {
			is(b, err, actors.ErrInternal)
		}
		if h.Err() != nil {
			b.Errorf("another lock: %v", h.Err())
		}
		if len(log.with("actor failed")) == 0 {
			b.Error("the log does not tell")
		}
		is(b, failure(b, again.Release()), actors.ErrInternal)
		unlock(b, lock(b, mu, actors.WithOwner("me")))
		g.Release()
		unlock(b, h)
	})
}

// What is on its way when the actor fails leaves no node.
func TestPanicWhileCreating(t *testing.T) {
	bubble(t, func(v *virtual) {
		_, mu := v.mutex()
		unlock(v, lock(v, mu))
		fault := v.Inject(embedded.Fault{Op: embedded.OpMulti, Action: embedded.DelayReply, Delay: 200 * time.Millisecond})
		f := mu.Acquire(within(v))
		closes(v, fault.Fired(), "the request")
		actors.Poison(mu)
		is(v, failure(v, f), actors.ErrInternal)
		v.expectClean()
		unlock(v, lock(v, mu))
	})
}

// A release that is not confirmed yet ends, too.
func TestPanicDuringRelease(t *testing.T) {
	bubble(t, func(v *virtual) {
		_, mu := v.mutex()
		g := lock(v, mu)
		fault := v.Inject(embedded.Fault{Op: embedded.OpDelete, Action: embedded.DelayRequest, Delay: 300 * time.Millisecond})
		f := g.Release()
		closes(v, fault.Fired(), "the request")
		actors.Poison(mu)
		if _, err := f.Wait(within(v)); err != nil {
			is(v, err, actors.ErrInternal)
		}
		v.expectClean()
	})
}

func TestPanicTellsActors(t *testing.T) {
	each(t, func(b *bed) {
		config, all := parties(b.T, 2)
		alice, bob := all[0], all[1]
		mu := b.mutex(config)
		lock := pid(b, mu)
		alice.send(lock, &messages.Acquire{RequestId: 1, Owner: "alice"})
		alice.granted(1)
		bob.send(lock, &messages.Acquire{RequestId: 1})
		b.waitNodes(2)
		actors.Poison(mu)
		if m := hear[*messages.Lost](alice); m.GetReason() != messages.Reason_INTERNAL || m.GetRequestId() != 1 {
			b.Errorf("%v", m)
		}
		bob.refused(1, messages.Reason_INTERNAL)
		// Its PID is nobody's any more; either the actor itself says so, or protoactor.
		bob.send(lock, &messages.Acquire{RequestId: 2})
		select {
		case msg := <-bob.inbox:
			if m, ok := msg.(*messages.Refused); ok && m.GetReason() != messages.Reason_STOPPED {
				b.Errorf("%v", m)
			}
		case <-within(b).Done():
			b.Fatal("no answer")
		}
		lock = pid(b, mu)
		bob.send(lock, &messages.Acquire{RequestId: 3})
		bob.granted(3)
		bob.send(lock, &messages.Release{RequestId: 3})
		bob.released(3, 0)
	})
}
