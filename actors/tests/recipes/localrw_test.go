package recipes

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Readers of one process share a node. After the first writer there are two nodes, one for each
// kind, and no request to ZooKeeper is needed.
func TestLocalReadWrite(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		d := &locktest.Network{}
		rw, other := b.LocalRWMutex(locktest.LongLinger, d.Config), b.RWMutex()
		r1, r2 := locktest.Lock(b, rw.Read()), locktest.Lock(b, rw.Read(), actors.Try())
		if r1.Node() != r2.Node() || !strings.Contains(r1.Node(), "__READ__") || r2.Token().Compare(r1.Token()) <= 0 {
			b.Errorf("readers by %s with %v, by %s with %v", r1.Node(), r1.Token(), r2.Node(), r2.Token())
		}
		w := rw.Write().Acquire(locktest.Within(b))
		r3 := rw.Read().Acquire(locktest.Within(b)) // behind the writer
		locktest.Unlock(b, locktest.Lock(b, other.Read()))
		locktest.Unlock(b, r1)
		locktest.Pending(b, w, r3)
		locktest.Must(b, r2.Verify(locktest.Within(b)))
		locktest.Unlock(b, r2)
		writer := locktest.Result(b, w)
		locktest.Pending(b, r3)
		if !strings.Contains(writer.Node(), "__WRIT__") || writer.Token().Compare(r2.Token()) <= 0 {
			b.Errorf("the writer has %s with %v after %v", writer.Node(), writer.Token(), r2.Token())
		}
		locktest.Unlock(b, writer)
		last := locktest.Result(b, r3)
		if !rwName.MatchString(last.Node()[len(b.LockPath)+1:]) || !strings.HasSuffix(last.Node(), "__READ__"+writer.Node()[len(writer.Node())-10:]) {
			b.Errorf("the reader's node is %s beside %s", last.Node(), writer.Node())
		}
		locktest.Must(b, last.Verify(locktest.Within(b)))
		locktest.Must(b, b.Locks().VerifyToken(locktest.Within(b), last.Node(), last.Token()))
		d.WaitIdle(b)
		if n, ops := d.During(func() {
			for range 20 {
				w := rw.Write().Acquire(locktest.Within(b))
				locktest.Unlock(b, last)
				g := locktest.Result(b, w)
				for _, mode := range []*actors.ModeLock{rw.Read(), rw.Write()} {
					_, err := mode.Lock(locktest.Within(b), actors.Try())
					locktest.Is(b, err, actors.ErrNotAcquired)
				}
				r := rw.Read().Acquire(locktest.Within(b))
				locktest.ExpectIncreasing(b, last.Token(), g.Token())
				locktest.Unlock(b, g)
				last = locktest.Result(b, r)
				locktest.ExpectIncreasing(b, g.Token(), last.Token())
			}
		}); n > ops[embedded.OpGetData] { // a node is read again now and then
			b.Errorf("requests to ZooKeeper: %v", ops)
		}
		locktest.Unlock(b, last)
		b.WaitNodes(2)
		// Another process waits: the local queue releases both nodes.
		g := locktest.Lock(b, other.Write())
		_, err := rw.Read().Lock(locktest.Within(b), actors.Try())
		locktest.Is(b, err, actors.ErrNotAcquired)
		locktest.Unlock(b, g)
	})
}

// Readers of one process do not block readers of another, however long they hold and whichever came
// first.
func TestLocalReadersShareWithOthers(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		rw, other, third := b.LocalRWMutex(locktest.LongLinger), b.LocalRWMutex(locktest.LongLinger), b.RWMutex()
		w := locktest.Lock(b, rw.Write())
		held := rw.Read().Acquire(locktest.Within(b))
		waiting := other.Read().Acquire(locktest.Within(b))
		b.WaitNodes(2)
		locktest.Unlock(b, w)
		near, far := locktest.Result(b, held), locktest.Result(b, waiting)
		locktest.Unlock(b, locktest.Lock(b, third.Read()))
		again := locktest.Lock(b, rw.Read())
		writer := third.Write().Acquire(locktest.Within(b))
		for _, g := range []*actors.Grant{near, far, again} {
			locktest.Must(b, g.Verify(locktest.Within(b)))
			locktest.Pending(b, writer)
			locktest.Unlock(b, g)
		}
		locktest.Unlock(b, locktest.Result(b, writer))
	})
}

func TestLocalDowngrade(t *testing.T) {
	// With this local queue, requests of its process hold before others for an hour.
	longTime := actors.LocalQueue(actors.LocalQueueConfig{Linger: time.Minute, Time: time.Minute})
	locktest.Each(t, func(b *locktest.Fixture) {
		rw, far := b.LocalRWMutex(longTime), b.RWMutex()
		w := locktest.Lock(b, rw.Write(), actors.WithOwner("me"))
		r := locktest.Lock(b, rw.Read(), actors.WithOwner("me"), actors.Try())
		if !strings.HasSuffix(r.Node(), "__READ__"+w.Node()[len(w.Node())-10:]) || r.Token() != w.Token() {
			b.Errorf("the reader has %s with %v beside %s with %v", r.Node(), r.Token(), w.Node(), w.Token())
		}
		near, away := rw.Write().Acquire(locktest.Within(b)), far.Write().Acquire(locktest.Within(b))
		b.WaitNodes(3)
		_, err := rw.Read().Lock(locktest.Within(b), actors.WithOwner("you"), actors.Try())
		locktest.Is(b, err, actors.ErrNotAcquired)
		locktest.Unlock(b, w)
		_, err = rw.Write().Lock(locktest.Within(b), actors.WithOwner("me"))
		locktest.Is(b, err, actors.ErrDeadlock)
		locktest.Must(b, r.Verify(locktest.Within(b)))
		locktest.Pending(b, near, away)
		locktest.Unlock(b, r)
		g := locktest.Result(b, near)
		locktest.ExpectIncreasing(b, r.Token(), g.Token())
		locktest.Pending(b, away)
		locktest.Unlock(b, g)
		locktest.Unlock(b, locktest.Result(b, away))
		// The writer releases during the creation of the reader's node.
		w = locktest.Lock(b, rw.Write(), actors.WithOwner("me"))
		near = rw.Write().Acquire(locktest.Within(b))
		f := rw.Read().Acquire(locktest.Within(b), actors.WithOwner("me"))
		released := w.Release()
		r = locktest.Result(b, f)
		locktest.Result(b, released)
		locktest.Pending(b, near)
		locktest.Unlock(b, locktest.Lock(b, rw.Read(), actors.WithOwner("me")))
		locktest.Unlock(b, r)
		locktest.Unlock(b, locktest.Result(b, near))
		locktest.Unlock(b, locktest.Lock(b, far.Write())) // so that the local queue keeps no node
	})
}

// Both kinds share the budget. A local queue that has used its time releases the write node though
// a reader holds on.
func TestLocalReadWriteBudget(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		locks := v.Locks()
		others := v.Locks()
		rw := locks.RWMutex("/lock", actors.LocalQueue(actors.LocalQueueConfig{Time: 100 * time.Millisecond}))
		other := others.RWMutex("/lock")
		w := locktest.Lock(v, rw.Write())
		long, next := rw.Read().Acquire(context.Background()), rw.Write().Acquire(context.Background())
		locktest.Unlock(v, w)
		reader := locktest.Result(v, long)
		begun := time.Now()
		locktest.Unlock(v, locktest.Lock(v, other.Read())) // the waiting writer keeps the write node for a while
		if took := time.Since(begun); took < 50*time.Millisecond || took > 110*time.Millisecond {
			v.Errorf("the other process reads after %v", took)
		}
		far := other.Write().Acquire(context.Background())
		<-time.After(time.Hour)
		locktest.Pending(v, far, next)
		locktest.Unlock(v, reader)
		locktest.Unlock(v, locktest.Result(v, far))
		locktest.Unlock(v, locktest.Result(v, next))
		v.Clean()
	})
}

// An actor that holds by two nodes gets one request to release for each of its requests.
func TestLocalReadWriteMessages(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		config, all := locktest.OwnerActors(b.T, 1)
		alice := all[0]
		locks := b.Locks(config)
		rw := locks.RWMutex(b.LockPath, locktest.ShortLinger)
		lock := locktest.PID(b, rw.Write())
		acquire := func(id uint64, kind messages.Kind) *messages.Granted {
			alice.Send(lock, &messages.Acquire{RequestId: id, Owner: "alice", Kind: uint32(kind), NotifyContended: true})
			return alice.Granted(id)
		}
		w, r, again := acquire(1, messages.Kind_WRITE), acquire(2, messages.Kind_READ), acquire(3, messages.Kind_READ)
		if w.Czxid != r.Czxid || w.Step != r.Step || r.Step != again.Step || r.Node != again.Node || w.Node == r.Node {
			b.Errorf("%v, %v, %v", w, r, again)
		}
		f := b.RWMutex().Write().Acquire(locktest.Within(b))
		for range 3 {
			locktest.ExpectMessage[*messages.Contended](alice)
		}
		broken := make(chan error)
		go func() {
			_, err := rw.Read().RevokeHolders(locktest.Within(b), zktest.TimeLimit)
			broken <- err
		}()
		revoked := map[uint64]bool{}
		for range 3 {
			revoked[locktest.ExpectMessage[*messages.RevokeRequested](alice).RequestId] = true
		}
		if len(revoked) != 3 {
			b.Errorf("requests to release: %v", revoked)
		}
		for i, still := range []uint32{0, 1, 0} {
			locktest.Pending(b, f)
			alice.Send(lock, &messages.Release{RequestId: uint64(i + 1), Owner: "alice"})
			alice.Released(uint64(i+1), still)
		}
		locktest.Must(b, <-broken)
		locktest.Unlock(b, locktest.Result(b, f))
	})
}
