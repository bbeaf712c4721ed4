package actors_test

import (
	"context"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// The session ends: all grants with it, and those who wait queue again in the next.
func TestLocalLosesSession(t *testing.T) {
	each(t, func(b *bed) {
		locks := b.locks()
		mu, me := locks.Mutex(b.path, brief), actors.WithOwner("me")
		g, again := lock(b, mu, me), lock(b, mu, me)
		ctx := g.Context(b.Context())
		waiting := mu.Acquire(within(b))
		b.expire(locks)
		for _, lost := range []*actors.Grant{g, again} {
			closes(b, lost.Done(), "the grant")
			is(b, lost.Err(), actors.ErrSessionLost)
		}
		closes(b, ctx.Done(), "its context")
		h := result(b, waiting)
		if h.Token().Compare(g.Token()) <= 0 || h.Session() != locks.Session().ID {
			b.Errorf("token %v after %v, session %x of %x", h.Token(), g.Token(), h.Session(), locks.Session().ID)
		}
		_, err := mu.Lock(within(b), me)
		is(b, err, actors.ErrSessionLost)
		is(b, failure(b, g.Release()), actors.ErrSessionLost)
		is(b, failure(b, again.Release()), actors.ErrSessionLost)
		f := mu.Acquire(within(b), me)
		unlock(b, h)
		unlock(b, result(b, f))
	})
}

// Somebody deletes the node: the holder hears of it, the next gets another node.
func TestLocalNodeDeleted(t *testing.T) {
	each(t, func(b *bed) {
		mu := b.local(brief)
		g := lock(b, mu)
		f := mu.Acquire(within(b))
		must(b, b.Client(b).Delete(g.Node(), -1))
		closes(b, g.Done(), "the grant")
		is(b, g.Err(), actors.ErrNodeDeleted)
		h := result(b, f)
		if h.Token().Compare(g.Token()) <= 0 {
			b.Errorf("token %v after %v", h.Token(), g.Token())
		}
		unlock(b, h)
	})
}

// The actor fails, or the one below it: all are told, nothing is left, and the next
// request is served by others.
func TestLocalPanic(t *testing.T) {
	for name, poison := range map[string]func(*actors.Mutex){
		"front": func(mu *actors.Mutex) { actors.PoisonFront(mu) }, "below": func(mu *actors.Mutex) { actors.PoisonBelow(mu) }} {
		t.Run(name, func(t *testing.T) {
			each(t, func(b *bed) {
				mu := b.local(brief)
				for range 3 {
					g := lock(b, mu)
					waiting := mu.Acquire(within(b))
					poison(mu)
					closes(b, g.Done(), "the grant")
					is(b, g.Err(), actors.ErrInternal)
					is(b, failure(b, waiting), actors.ErrInternal)
					is(b, failure(b, g.Release()), actors.ErrInternal)
					unlock(b, lock(b, mu))
				}
				poison(mu)                                   // while nobody wants anything
				zktest.Eventually(b, patience, func() bool { // a grant may be made just before the news
					g, err := mu.Lock(within(b))
					return err == nil && g.Unlock(within(b)) == nil
				}, "the lock works again")
			})
		})
	}
}

func TestLocalClose(t *testing.T) {
	each(t, func(b *bed) {
		locks, other := b.locks(), b.locks()
		mu := locks.Mutex(b.path, lasting)
		g := lock(b, mu)
		waiting := mu.Acquire(within(b))
		behind := other.Mutex(b.path, brief).Acquire(within(b))
		b.waitNodes(2)
		must(b, locks.Close())
		is(b, g.Err(), actors.ErrClosed)
		is(b, failure(b, waiting), actors.ErrClosed)
		_, err := mu.Lock(within(b))
		is(b, err, actors.ErrClosed)
		unlock(b, result(b, behind))
	})
}

// The connection is away while somebody else comes.
func TestLocalSuspended(t *testing.T) {
	besides(t, func(b *bed) {
		proxy := zktest.Proxy(b, b.Addr())
		locks := connect(b.T, proxy.Addr(), func(cfg *actors.Config) { cfg.StopOnSuspended = true })
		mu, other := locks.Mutex(b.path, lasting), b.mutex()
		g := lock(b, mu)
		ctx := g.Context(b.Context())
		proxy.Refuse(true)
		proxy.Cut()
		closes(b, ctx.Done(), "the context")
		is(b, context.Cause(ctx), actors.ErrSuspended)
		f := other.Acquire(within(b)) // it comes while the holder cannot see it
		b.waitNodes(2)
		proxy.Refuse(false)
		state(b, locks, messages.SessionState_CONNECTED)
		if g.Err() != nil {
			b.Errorf("the grant does not outlive a cut connection: %v", g.Err())
		}
		unlock(b, g)
		unlock(b, result(b, f))
	})
}

// The session is over by the clock, and nobody has come to say so: nothing is lent any
// more.
func TestLocalOverdue(t *testing.T) {
	bubble(t, func(v *virtual) {
		locks, bridge, end := v.withBridge()
		defer end()
		defer v.Resume()
		mu := locks.Mutex("/lock", brief)
		g := lock(v, mu)
		next := mu.Acquire(context.Background())
		<-time.After(time.Second)
		unblock := block(bridge)
		defer unblock()
		v.Pause()
		<-time.After(time.Until(locks.Session().Deadline))
		is(v, failure(v, g.Release()), actors.ErrSessionLost)
		late := mu.Acquire(context.Background())
		<-time.After(time.Minute)
		pending(v, next, late)
		v.Resume()
		unblock()
		h := result(v, next)
		if h.Token().Compare(g.Token()) <= 0 {
			v.Errorf("token %v after %v", h.Token(), g.Token())
		}
		unlock(v, h)
		unlock(v, result(v, late))
		v.expectClean()
	})
}
