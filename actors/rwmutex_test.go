package actors_test

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

var rwName = regexp.MustCompile(`^_c_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-__(READ|WRIT)__\d{10}$`)

func TestReadersShare(t *testing.T) {
	each(t, func(b *testLock) {
		one, two := b.rw(), b.rw()
		r1, r2, r3 := lock(b, one.Read()), lock(b, two.Read()), lock(b, two.Read())
		for _, name := range b.nodes() {
			if !rwName.MatchString(name) {
				b.Errorf("%s is not as Curator names it", name)
			}
		}
		w := two.Write().Acquire(within(b))
		b.waitNodes(4)
		r4 := one.Read().Acquire(within(b)) // behind the writer
		b.waitNodes(5)
		unlock(b, r1)
		unlock(b, r3)
		pending(b, w, r4)
		unlock(b, r2)
		writer := result(b, w)
		pending(b, r4)
		if writer.Token().Compare(r2.Token()) <= 0 {
			b.Error("the writer's token is not greater than the readers'")
		}
		unlock(b, writer)
		unlock(b, result(b, r4))
	})
}

func TestTryReadAndWrite(t *testing.T) {
	each(t, func(b *testLock) {
		one, two := b.rw(), b.rw()
		r := lock(b, one.Read(), actors.Try())
		_, err := two.Write().Lock(within(b), actors.Try())
		is(b, err, actors.ErrNotAcquired)
		unlock(b, lock(b, two.Read(), actors.Try()))
		unlock(b, r)
		w := lock(b, two.Write(), actors.Try())
		for _, mode := range []*actors.ModeLock{one.Read(), one.Write(), two.Read(), two.Write()} {
			_, err = mode.Lock(within(b), actors.Try())
			is(b, err, actors.ErrNotAcquired)
		}
		unlock(b, w)
	})
}

// A reader cannot become a writer: the request is refused at once, and the reader goes on to hold.
func TestThatUpgradingIsDisallowed(t *testing.T) {
	each(t, func(b *testLock) {
		rw := b.rw()
		r := lock(b, rw.Read(), actors.WithOwner("me"))
		_, err := rw.Write().Lock(within(b), actors.WithOwner("me"))
		is(b, err, actors.ErrDeadlock)
		must(b, r.Verify(within(b)))
		unlock(b, r)
		unlock(b, lock(b, rw.Write(), actors.WithOwner("me")))
	})
}

func TestDowngrading(t *testing.T) {
	each(t, func(b *testLock) {
		rw, other := b.rw(), b.rw()
		w := lock(b, rw.Write(), actors.WithOwner("me"))
		r := lock(b, rw.Read(), actors.WithOwner("me"))
		if !rwName.MatchString(r.Node()[len(b.path)+1:]) || !strings.HasSuffix(r.Node(), "__READ__"+w.Node()[len(w.Node())-10:]) {
			b.Errorf("downgraded reader's node is %s beside %s", r.Node(), w.Node())
		}
		if r.Token() != w.Token() {
			b.Errorf("token %v of the reader, %v of the writer", r.Token(), w.Token())
		}
		_, err := other.Read().Lock(within(b), actors.Try()) // no other owner reads while the writer holds
		is(b, err, actors.ErrNotAcquired)
		_, err = rw.Read().Lock(within(b), actors.WithOwner("you"), actors.Try())
		is(b, err, actors.ErrNotAcquired)
		unlock(b, w)
		must(b, r.Verify(within(b)))
		must(b, b.locks().VerifyToken(within(b), r.Node(), r.Token()))
		is(b, b.locks().VerifyToken(within(b), r.Node(), actors.Token{Czxid: r.Token().Czxid + 1000}), actors.ErrNotHeld)
		unlock(b, lock(b, other.Read()))
		_, err = other.Write().Lock(within(b), actors.Try())
		is(b, err, actors.ErrNotAcquired)
		unlock(b, r)
	})
}

// A writer in the queue, of this process or another, does not hold between the release of a writer
// and its downgraded reader.
func TestContendingDowngrading(t *testing.T) {
	each(t, func(b *testLock) {
		rw, far := b.rw(), b.rw()
		w := lock(b, rw.Write(), actors.WithOwner("me"))
		near := rw.Write().Acquire(within(b))
		b.waitNodes(2)
		away := far.Write().Acquire(within(b))
		b.waitNodes(3)
		r := rw.Read().Acquire(within(b), actors.WithOwner("me"))
		released := w.Release() // during the creation of the reader's node
		reader := result(b, r)
		result(b, released)
		pending(b, near, away)
		unlock(b, reader)
		g := result(b, near)
		pending(b, away)
		unlock(b, g)
		unlock(b, result(b, away))
	})
}

// Another process downgrades as Curator does since 5.5: its reader gets a place ahead of our
// writer, which knew only of the writer there.
func TestForeignDowngrade(t *testing.T) {
	each(t, func(b *testLock) {
		conn := b.Client(b)
		writer := b.foreignNode(conn, curatorID+"-__WRIT__")
		f := b.rw().Write().Acquire(within(b))
		b.waitNodes(2)
		reader := &foreignNode{b, conn, b.path + "/" + curatorID + "-__READ__" + writer.path[len(writer.path)-10:]}
		_, err := conn.Create(reader.path, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		must(b, err)
		writer.leave()
		zktest.Eventually(b, timeLimit, func() bool { return b.watches() > 0 }, "the writer watches the reader")
		pending(b, f)
		reader.leave()
		unlock(b, result(b, f))
	})
}

// A reader behind a writer of another process holds when that writer has left.
func TestReaderBehindForeignWriter(t *testing.T) {
	each(t, func(b *testLock) {
		conn := b.Client(b)
		reader, writer := b.foreignNode(conn, curatorID+"-__READ__"), b.foreignNode(conn, curatorID+"-__WRIT__")
		f := b.rw().Read().Acquire(within(b))
		b.waitNodes(3)
		pending(b, f)
		writer.leave()
		g := result(b, f)
		reader.leave()
		unlock(b, g)
	})
}

// The owner of a lost write lock does not read by re-entry, as it does with Curator.
func TestStaleWriterDoesNotRead(t *testing.T) {
	each(t, func(b *testLock) {
		locks := b.locks()
		rw := locks.RWMutex(b.path)
		w := lock(b, rw.Write(), actors.WithOwner("me"))
		b.expire(locks)
		closes(b, w.Done(), "the lost grant")
		other := lock(b, b.rw().Write())
		_, err := rw.Read().Lock(within(b), actors.WithOwner("me"))
		is(b, err, actors.ErrSessionLost)
		is(b, w.Unlock(within(b)), actors.ErrSessionLost)
		unlock(b, other)
		unlock(b, lock(b, rw.Read(), actors.WithOwner("me")))
	})
}

// Clients read and write at random. No writer holds beside another holder, and readers share.
func TestReadWriteBasic(t *testing.T) {
	each(t, func(b *testLock) {
		var readers, writers, shared atomic.Int32
		all := []*actors.RWMutex{b.rw(), b.rw(), b.rw(), b.rw()}
		b.turns(8, 40, func(i int) turn {
			mode, inside := all[i/2].Read(), &readers
			if rand.IntN(3) == 0 {
				mode, inside = all[i/2].Write(), &writers
			}
			return turn{lock: mode, inside: func(*actors.Grant) {
				inside.Add(1)
				defer inside.Add(-1)
				r, w := readers.Load(), writers.Load()
				if w > 1 || w == 1 && r > 0 {
					b.Errorf("%d writers and %d readers at once", w, r)
				}
				shared.Store(max(shared.Load(), r))
			}}
		})
		b.Logf("%d readers at most", shared.Load())
	})
}

// A path has one recipe in a process.
func TestPathOfAnotherRecipe(t *testing.T) {
	each(t, func(b *testLock) {
		locks := b.locks()
		g := lock(b, locks.RWMutex(b.path).Read())
		_, err := locks.Mutex(b.path).Lock(within(b))
		is(b, err, actors.ErrInvalid)
		if err == nil || !strings.Contains(err.Error(), "read-write lock") {
			b.Errorf("%v does not name the recipe of the path", err)
		}
		unlock(b, g)
	})
}

// An owner that has lost its read lock, and holds its write lock, can enter neither again before it
// has released the lost one.
func TestReentryBesideALostGrant(t *testing.T) {
	each(t, func(b *testLock) {
		rw, me := b.rw(), actors.WithOwner("me")
		w, r := lock(b, rw.Write(), me), lock(b, rw.Read(), me, actors.Revocable())
		must(b, b.Client(b).Delete(r.Node(), -1))
		closes(b, r.Done(), "the read lock")
		for _, again := range []*actors.ModeLock{rw.Write(), rw.Read()} {
			_, err := again.Lock(within(b), me)
			is(b, err, actors.ErrNodeDeleted)
		}
		is(b, r.Unlock(within(b)), actors.ErrNodeDeleted)
		unlock(b, lock(b, rw.Write(), me))
		must(b, w.Err())
		unlock(b, w)
	})
}
