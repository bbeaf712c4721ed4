package recipes

import (
	"regexp"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

var rwName = regexp.MustCompile(`^_c_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-__(READ|WRIT)__\d{10}$`)

func TestReadersShare(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		one, two := b.RWMutex(), b.RWMutex()
		r1, r2, r3 := locktest.Lock(b, one.Read()), locktest.Lock(b, two.Read()), locktest.Lock(b, two.Read())
		for _, name := range b.LockNodes() {
			if !rwName.MatchString(name) {
				b.Errorf("%s is not as Curator names it", name)
			}
		}
		w := two.Write().Acquire(locktest.Within(b))
		b.WaitNodes(4)
		r4 := one.Read().Acquire(locktest.Within(b)) // behind the writer
		b.WaitNodes(5)
		locktest.Unlock(b, r1)
		locktest.Unlock(b, r3)
		locktest.Pending(b, w, r4)
		locktest.Unlock(b, r2)
		writer := locktest.Result(b, w)
		locktest.Pending(b, r4)
		if writer.Token().Compare(r2.Token()) <= 0 {
			b.Error("the writer's token is not greater than the readers'")
		}
		locktest.Unlock(b, writer)
		locktest.Unlock(b, locktest.Result(b, r4))
	})
}

// A reader cannot become a writer: the request is refused at once, and the reader goes on to hold.
func TestThatUpgradingIsDisallowed(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		rw := b.RWMutex()
		r := locktest.Lock(b, rw.Read(), actors.WithOwner("me"))
		_, err := rw.Write().Lock(locktest.Within(b), actors.WithOwner("me"))
		locktest.Is(b, err, actors.ErrDeadlock)
		locktest.Must(b, r.Verify(locktest.Within(b)))
		locktest.Unlock(b, r)
		locktest.Unlock(b, locktest.Lock(b, rw.Write(), actors.WithOwner("me")))
	})
}

func TestDowngrading(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		rw, other := b.RWMutex(), b.RWMutex()
		w := locktest.Lock(b, rw.Write(), actors.WithOwner("me"))
		r := locktest.Lock(b, rw.Read(), actors.WithOwner("me"))
		if !rwName.MatchString(r.Node()[len(b.LockPath)+1:]) || !strings.HasSuffix(r.Node(), "__READ__"+w.Node()[len(w.Node())-10:]) {
			b.Errorf("downgraded reader's node is %s beside %s", r.Node(), w.Node())
		}
		if r.Token() != w.Token() {
			b.Errorf("token %v of the reader, %v of the writer", r.Token(), w.Token())
		}
		_, err := other.Read().Lock(locktest.Within(b), actors.Try()) // no other owner reads while the writer holds
		locktest.Is(b, err, actors.ErrNotAcquired)
		_, err = rw.Read().Lock(locktest.Within(b), actors.WithOwner("you"), actors.Try())
		locktest.Is(b, err, actors.ErrNotAcquired)
		locktest.Unlock(b, w)
		locktest.Must(b, r.Verify(locktest.Within(b)))
		locktest.Must(b, b.Locks().VerifyToken(locktest.Within(b), r.Node(), r.Token()))
		locktest.Is(b, b.Locks().VerifyToken(locktest.Within(b), r.Node(), actors.Token{Czxid: r.Token().Czxid + 1000}), actors.ErrNotHeld)
		locktest.Unlock(b, locktest.Lock(b, other.Read()))
		_, err = other.Write().Lock(locktest.Within(b), actors.Try())
		locktest.Is(b, err, actors.ErrNotAcquired)
		locktest.Unlock(b, r)
	})
}

// A writer in the queue, of this process or another, does not hold between the release of a writer
// and its downgraded reader.
func TestContendingDowngrading(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		rw, far := b.RWMutex(), b.RWMutex()
		w := locktest.Lock(b, rw.Write(), actors.WithOwner("me"))
		near := rw.Write().Acquire(locktest.Within(b))
		b.WaitNodes(2)
		away := far.Write().Acquire(locktest.Within(b))
		b.WaitNodes(3)
		r := rw.Read().Acquire(locktest.Within(b), actors.WithOwner("me"))
		released := w.Release() // during the creation of the reader's node
		reader := locktest.Result(b, r)
		locktest.Result(b, released)
		locktest.Pending(b, near, away)
		locktest.Unlock(b, reader)
		g := locktest.Result(b, near)
		locktest.Pending(b, away)
		locktest.Unlock(b, g)
		locktest.Unlock(b, locktest.Result(b, away))
	})
}

// Another process downgrades as Curator does since 5.5: its reader gets a place ahead of our
// writer, which knew only of the writer there.
func TestForeignDowngrade(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		conn := b.Client(b)
		writer := b.ForeignNode(conn, locktest.CuratorID+"-__WRIT__")
		f := b.RWMutex().Write().Acquire(locktest.Within(b))
		b.WaitNodes(2)
		reader := b.ForeignNodeAt(conn, b.LockPath+"/"+locktest.CuratorID+"-__READ__"+writer.Path[len(writer.Path)-10:])
		_, err := conn.Create(reader.Path, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		locktest.Must(b, err)
		writer.Leave()
		zktest.Eventually(b, zktest.TimeLimit, func() bool { return b.LockWatches() > 0 }, "the writer watches the reader")
		locktest.Pending(b, f)
		reader.Leave()
		locktest.Unlock(b, locktest.Result(b, f))
	})
}

// The owner of a lost write lock does not read by re-entry, as it does with Curator.
func TestStaleWriterDoesNotRead(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		locks := b.Locks()
		rw := locks.RWMutex(b.LockPath)
		w := locktest.Lock(b, rw.Write(), actors.WithOwner("me"))
		b.ExpireSession(locks)
		locktest.Closes(b, w.Done(), "the lost grant")
		other := locktest.Lock(b, b.RWMutex().Write())
		_, err := rw.Read().Lock(locktest.Within(b), actors.WithOwner("me"))
		locktest.Is(b, err, actors.ErrSessionLost)
		locktest.Is(b, w.Unlock(locktest.Within(b)), actors.ErrSessionLost)
		locktest.Unlock(b, other)
		locktest.Unlock(b, locktest.Lock(b, rw.Read(), actors.WithOwner("me")))
	})
}

// A path has one recipe in a process.
func TestPathOfAnotherRecipe(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		locks := b.Locks()
		g := locktest.Lock(b, locks.RWMutex(b.LockPath).Read())
		_, err := locks.Mutex(b.LockPath).Lock(locktest.Within(b))
		locktest.Is(b, err, actors.ErrInvalid)
		if err == nil || !strings.Contains(err.Error(), "read-write lock") {
			b.Errorf("%v does not name the recipe of the path", err)
		}
		locktest.Unlock(b, g)
	})
}

// An owner that has lost its read lock, and holds its write lock, can enter neither again before it
// has released the lost one.
func TestReentryBesideALostGrant(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		rw, me := b.RWMutex(), actors.WithOwner("me")
		w, r := locktest.Lock(b, rw.Write(), me), locktest.Lock(b, rw.Read(), me, actors.Revocable())
		locktest.Must(b, b.Client(b).Delete(r.Node(), -1))
		locktest.Closes(b, r.Done(), "the read lock")
		for _, again := range []*actors.ModeLock{rw.Write(), rw.Read()} {
			_, err := again.Lock(locktest.Within(b), me)
			locktest.Is(b, err, actors.ErrNodeDeleted)
		}
		locktest.Is(b, r.Unlock(locktest.Within(b)), actors.ErrNodeDeleted)
		locktest.Unlock(b, locktest.Lock(b, rw.Write(), me))
		locktest.Must(b, w.Err())
		locktest.Unlock(b, w)
	})
}
