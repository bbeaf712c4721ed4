package actors_test

import (
	"context"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
)

// The session ends: all grants of both kinds with it, and those who wait queue again.
func TestLocalReadWriteLosesSession(t *testing.T) {
	each(t, func(b *bed) {
		locks := b.locks()
		rw := locks.RWMutex(b.path, brief)
		w := lock(b, rw.Write(), actors.WithOwner(me))
		r := lock(b, rw.Read(), actors.WithOwner(me))
		waiting, behind := rw.Read().Acquire(within(b)), rw.Write().Acquire(within(b))
		b.expire(locks)
		for _, lost := range []*actors.Grant{w, r} {
			closes(b, lost.Done(), "the grant")
			is(b, lost.Err(), actors.ErrSessionLost)
		}
		h := result(b, waiting)
		if h.Token().Compare(w.Token()) <= 0 || h.Session() != locks.Session().ID {
			b.Errorf("token %v after %v, session %x of %x", h.Token(), w.Token(), h.Session(), locks.Session().ID)
		}
		for _, lost := range []*actors.Grant{w, r} {
			_, err := rw.Read().Lock(within(b), actors.WithOwner(me))
			is(b, err, actors.ErrSessionLost)
			is(b, failure(b, lost.Release()), actors.ErrSessionLost)
		}
		f := rw.Read().Acquire(within(b), actors.WithOwner(me))
		unlock(b, h)
		unlock(b, result(b, behind))
		unlock(b, result(b, f))
	})
}

// Somebody deletes one of the nodes: those who hold hear of it, whoever waits gets others.
func TestLocalReadWriteNodeDeleted(t *testing.T) {
	for _, kind := range []string{"read", "write"} {
		t.Run(kind, func(t *testing.T) {
			each(t, func(b *bed) {
				rw := b.localRW(brief)
				w := lock(b, rw.Write(), actors.WithOwner(me))
				r := lock(b, rw.Read(), actors.WithOwner(me))
				waiting := rw.Write().Acquire(within(b))
				node := map[string]string{"read": r.Node(), "write": w.Node()}[kind]
				must(b, b.Client(b).Delete(node, -1))
				for _, g := range []*actors.Grant{w, r} {
					closes(b, g.Done(), "the grant")
					is(b, g.Err(), actors.ErrNodeDeleted)
					is(b, failure(b, g.Release()), actors.ErrNodeDeleted)
				}
				h := result(b, waiting)
				if h.Token().Compare(w.Token()) <= 0 {
					b.Errorf("token %v after %v", h.Token(), w.Token())
				}
				unlock(b, h)
			})
		})
	}
}

// The session is over by the clock while two nodes are held, and nobody has come to say
// so: nothing is lent any more.
func TestLocalReadWriteOverdue(t *testing.T) {
	bubble(t, func(v *virtual) {
		locks, bridge, end := v.withBridge()
		defer end()
		defer v.Resume()
		rw := locks.RWMutex("/lock", brief)
		w := lock(v, rw.Write(), actors.WithOwner(me))
		r := lock(v, rw.Read(), actors.WithOwner(me))
		next := rw.Read().Acquire(context.Background())
		<-time.After(time.Second)
		unblock := block(bridge)
		defer unblock()
		v.Pause()
		<-time.After(time.Until(locks.Session().Deadline))
		is(v, failure(v, w.Release()), actors.ErrSessionLost)
		is(v, failure(v, r.Release()), actors.ErrSessionLost)
		late := rw.Write().Acquire(context.Background(), actors.WithOwner(me))
		<-time.After(time.Minute)
		pending(v, next, late)
		v.Resume()
		unblock()
		unlock(v, result(v, next))
		unlock(v, result(v, late))
		v.expectClean()
	})
}

// The actor fails, or the one below it, or all is closed.
func TestLocalReadWriteEnds(t *testing.T) {
	for name, end := range map[string]struct {
		do  func(*actors.Locks, *actors.RWMutex)
		why error
	}{
		"front fails": {func(_ *actors.Locks, rw *actors.RWMutex) { actors.PoisonFront(rw.Read()) }, actors.ErrInternal},
		"below fails": {func(_ *actors.Locks, rw *actors.RWMutex) { actors.PoisonBelow(rw.Read()) }, actors.ErrInternal},
		"closed":      {func(locks *actors.Locks, _ *actors.RWMutex) { locks.Close() }, actors.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(b *bed) {
				locks, other := b.locks(), b.rw()
				rw := locks.RWMutex(b.path, brief)
				w := lock(b, rw.Write(), actors.WithOwner(me))
				r := lock(b, rw.Read(), actors.WithOwner(me))
				waiting := rw.Read().Acquire(within(b))
				behind := other.Write().Acquire(within(b))
				b.waitNodes(3)
				end.do(locks, rw)
				for _, g := range []*actors.Grant{w, r} {
					closes(b, g.Done(), "the grant")
					is(b, g.Err(), end.why)
					is(b, failure(b, g.Release()), end.why)
				}
				is(b, failure(b, waiting), end.why)
				unlock(b, result(b, behind))
				if end.why == actors.ErrInternal {
					unlock(b, lock(b, rw.Read()))
				}
			})
		})
	}
}
