package actors_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// Readers of one process share a node. After the first writer there are two nodes, one for each
// kind, and no request to ZooKeeper is needed.
func TestLocalReadWrite(t *testing.T) {
	each(t, func(b *testLock) {
		d := &dialer{}
		rw, other := b.localRW(longLinger, d.config), b.rw()
		r1, r2 := lock(b, rw.Read()), lock(b, rw.Read(), actors.Try())
		if r1.Node() != r2.Node() || !strings.Contains(r1.Node(), "__READ__") || r2.Token().Compare(r1.Token()) <= 0 {
			b.Errorf("readers by %s with %v, by %s with %v", r1.Node(), r1.Token(), r2.Node(), r2.Token())
		}
		w := rw.Write().Acquire(within(b))
		r3 := rw.Read().Acquire(within(b)) // behind the writer
		unlock(b, lock(b, other.Read()))
		unlock(b, r1)
		pending(b, w, r3)
		must(b, r2.Verify(within(b)))
		unlock(b, r2)
		writer := result(b, w)
		pending(b, r3)
		if !strings.Contains(writer.Node(), "__WRIT__") || writer.Token().Compare(r2.Token()) <= 0 {
			b.Errorf("the writer has %s with %v after %v", writer.Node(), writer.Token(), r2.Token())
		}
		unlock(b, writer)
		last := result(b, r3)
		if !rwName.MatchString(last.Node()[len(b.path)+1:]) || !strings.HasSuffix(last.Node(), "__READ__"+writer.Node()[len(writer.Node())-10:]) {
			b.Errorf("the reader's node is %s beside %s", last.Node(), writer.Node())
		}
		must(b, last.Verify(within(b)))
		must(b, b.locks().VerifyToken(within(b), last.Node(), last.Token()))
		d.waitIdle(b)
		if n, ops := d.during(func() {
			for range 20 {
				w := rw.Write().Acquire(within(b))
				unlock(b, last)
				g := result(b, w)
				for _, mode := range []*actors.ModeLock{rw.Read(), rw.Write()} {
					_, err := mode.Lock(within(b), actors.Try())
					is(b, err, actors.ErrNotAcquired)
				}
				r := rw.Read().Acquire(within(b))
				expectIncreasing(b, last.Token(), g.Token())
				unlock(b, g)
				last = result(b, r)
				expectIncreasing(b, g.Token(), last.Token())
			}
		}); n > ops[embedded.OpGetData] { // a node is read again now and then
			b.Errorf("requests to ZooKeeper: %v", ops)
		}
		unlock(b, last)
		b.waitNodes(2)
		// Another process waits: the local queue releases both nodes.
		g := lock(b, other.Write())
		_, err := rw.Read().Lock(within(b), actors.Try())
		is(b, err, actors.ErrNotAcquired)
		unlock(b, g)
	})
}

// Readers of one process do not block readers of another, however long they hold and whichever came
// first.
func TestLocalReadersShareWithOthers(t *testing.T) {
	each(t, func(b *testLock) {
		rw, other, third := b.localRW(longLinger), b.localRW(longLinger), b.rw()
		w := lock(b, rw.Write())
		held := rw.Read().Acquire(within(b))
		waiting := other.Read().Acquire(within(b))
		b.waitNodes(2)
		unlock(b, w)
		near, far := result(b, held), result(b, waiting)
		unlock(b, lock(b, third.Read()))
		again := lock(b, rw.Read())
		writer := third.Write().Acquire(within(b))
		for _, g := range []*actors.Grant{near, far, again} {
			must(b, g.Verify(within(b)))
			pending(b, writer)
			unlock(b, g)
		}
		unlock(b, result(b, writer))
	})
}

func TestLocalDowngrade(t *testing.T) {
	// With this local queue, requests of its process hold before others for an hour.
	longTime := actors.LocalQueue(actors.LocalQueueConfig{Linger: time.Hour, Time: time.Hour})
	each(t, func(b *testLock) {
		rw, far := b.localRW(longTime), b.rw()
		w := lock(b, rw.Write(), actors.WithOwner(me))
		r := lock(b, rw.Read(), actors.WithOwner(me), actors.Try())
		if !strings.HasSuffix(r.Node(), "__READ__"+w.Node()[len(w.Node())-10:]) || r.Token() != w.Token() {
			b.Errorf("the reader has %s with %v beside %s with %v", r.Node(), r.Token(), w.Node(), w.Token())
		}
		near, away := rw.Write().Acquire(within(b)), far.Write().Acquire(within(b))
		b.waitNodes(3)
		_, err := rw.Read().Lock(within(b), actors.WithOwner("you"), actors.Try())
		is(b, err, actors.ErrNotAcquired)
		unlock(b, w)
		_, err = rw.Write().Lock(within(b), actors.WithOwner(me))
		is(b, err, actors.ErrDeadlock)
		must(b, r.Verify(within(b)))
		pending(b, near, away)
		unlock(b, r)
		g := result(b, near)
		expectIncreasing(b, r.Token(), g.Token())
		pending(b, away)
		unlock(b, g)
		unlock(b, result(b, away))
		// The writer releases during the creation of the reader's node.
		w = lock(b, rw.Write(), actors.WithOwner(me))
		near = rw.Write().Acquire(within(b))
		f := rw.Read().Acquire(within(b), actors.WithOwner(me))
		released := w.Release()
		r = result(b, f)
		result(b, released)
		pending(b, near)
		unlock(b, lock(b, rw.Read(), actors.WithOwner(me)))
		unlock(b, r)
		unlock(b, result(b, near))
		unlock(b, lock(b, far.Write())) // so that the local queue keeps no node
	})
}

func TestLocalUpgradingIsDisallowed(t *testing.T) {
	each(t, func(b *testLock) {
		rw := b.localRW(shortLinger)
		r := lock(b, rw.Read(), actors.WithOwner(me))
		_, err := rw.Write().Lock(within(b), actors.WithOwner(me))
		is(b, err, actors.ErrDeadlock)
		waiting := rw.Write().Acquire(within(b))
		again := lock(b, rw.Read(), actors.WithOwner(me))
		if again.Token() != r.Token() {
			b.Errorf("token %v of the second, %v of the first", again.Token(), r.Token())
		}
		unlock(b, r)
		pending(b, waiting)
		unlock(b, again)
		unlock(b, result(b, waiting))
	})
}

// Readers and writers of one process hold in the order of their requests, readers beside each
// other.
func TestLocalReadWriteFairness(t *testing.T) {
	each(t, func(b *testLock) {
		rw := b.localRW(shortLinger)
		g := lock(b, rw.Write())
		var order []int // of the requests
		var mu sync.Mutex
		var wg sync.WaitGroup
		for i, kind := range "rrwrwwrrrw" {
			mode := rw.Read()
			if kind == 'w' {
				mode = rw.Write()
			}
			f := mode.Acquire(within(b))
			wg.Go(func() {
				g := result(b, f)
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				unlock(b, g)
			})
		}
		unlock(b, g)
		wg.Wait()
		for at, group := range []string{"01", "01", "2", "3", "4", "5", "678", "678", "678", "9"} {
			if !strings.Contains(group, fmt.Sprint(order[at])) {
				b.Fatalf("order %v", order)
			}
		}
	})
}

// Both kinds share the budget. A local queue that has used its time releases the write node though
// a reader holds on.
func TestLocalReadWriteBudget(t *testing.T) {
	t.Parallel()
	bubble(t, func(v *virtual) {
		locks := v.locks()
		others := v.locks()
		rw := locks.RWMutex("/lock", actors.LocalQueue(actors.LocalQueueConfig{Time: 100 * time.Millisecond}))
		other := others.RWMutex("/lock")
		w := lock(v, rw.Write())
		long, next := rw.Read().Acquire(context.Background()), rw.Write().Acquire(context.Background())
		unlock(v, w)
		reader := result(v, long)
		begun := time.Now()
		unlock(v, lock(v, other.Read())) // the waiting writer keeps the write node for a while
		if took := time.Since(begun); took < 50*time.Millisecond || took > 110*time.Millisecond {
			v.Errorf("the other process reads after %v", took)
		}
		far := other.Write().Acquire(context.Background())
		<-time.After(time.Hour)
		pending(v, far, next)
		unlock(v, reader)
		unlock(v, result(v, far))
		unlock(v, result(v, next))
		v.clean()
	})
}

// The local queue keeps its nodes for its Linger. Then neither nodes nor actors are left.
func TestLocalReadWriteLinger(t *testing.T) {
	t.Parallel()
	bubble(t, func(v *virtual) {
		locks := v.locks(idle(time.Second))
		rw := locks.RWMutex("/lock", actors.LocalQueue(actors.LocalQueueConfig{Linger: time.Minute}))
		unlock(v, lock(v, rw.Write()))
		unlock(v, lock(v, rw.Read()))
		<-time.After(50 * time.Second)
		if n := v.nodes(); len(n) != 2 {
			v.Errorf("nodes %v", n)
		}
		<-time.After(80 * time.Second)
		if n := v.nodes(); len(n) != 0 {
			v.Errorf("nodes %v", n)
		}
		v.clean()
		if paths := actors.Paths(locks); len(paths) != 0 {
			v.Errorf("actors %v", paths)
		}
		unlock(v, lock(v, rw.Read()))
		v.clean()
	})
}

// An actor that holds by two nodes gets one request to release for each of its requests.
func TestLocalReadWriteMessages(t *testing.T) {
	each(t, func(b *testLock) {
		config, all := testActors(b.T, 1)
		alice := all[0]
		locks := b.locks(config)
		rw := locks.RWMutex(b.path, shortLinger)
		lock := pid(b, rw.Write())
		acquire := func(id uint64, kind messages.Kind) *messages.Granted {
			alice.send(lock, &messages.Acquire{RequestId: id, Owner: "alice", Kind: uint32(kind), NotifyContended: true})
			return alice.granted(id)
		}
		w, r, again := acquire(1, messages.Kind_WRITE), acquire(2, messages.Kind_READ), acquire(3, messages.Kind_READ)
		if w.Czxid != r.Czxid || w.Step != r.Step || r.Step != again.Step || r.Node != again.Node || w.Node == r.Node {
			b.Errorf("%v, %v, %v", w, r, again)
		}
		f := b.rw().Write().Acquire(within(b))
		for range 3 {
			expectMessage[*messages.Contended](alice)
		}
		broken := make(chan error)
		go func() {
			_, err := rw.Read().RevokeHolders(within(b), timeLimit)
			broken <- err
		}()
		revoked := map[uint64]bool{}
		for range 3 {
			revoked[expectMessage[*messages.RevokeRequested](alice).RequestId] = true
		}
		if len(revoked) != 3 {
			b.Errorf("requests to release: %v", revoked)
		}
		for i, still := range []uint32{0, 1, 0} {
			pending(b, f)
			alice.send(lock, &messages.Release{RequestId: uint64(i + 1), Owner: "alice"})
			alice.released(uint64(i+1), still)
		}
		must(b, <-broken)
		unlock(b, result(b, f))
	})
}
