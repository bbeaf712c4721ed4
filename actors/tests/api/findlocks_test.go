package api

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// skips checks that Find has skipped these directories only, for one reason, and names them.
func skips(t testing.TB, err, reason error, directories ...string) {
	t.Helper()
	locktest.Is(t, err, reason)
	skipped, ok := errors.AsType[*actors.SkippedError](err)
	if !ok || !slices.Equal(skipped.Directories(), directories) {
		t.Errorf("%v; want %q", err, directories)
		return
	}
	locktest.ExpectParts(t, err.Error(), directories...)
}

func TestFind(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		locks, reader, conn := b.Locks(), b.Locks(), b.Client(b)
		root := b.LockPath + "-root"
		for _, path := range []string{root, root + "/config", root + "/lock", root + "/W", root + "/secret"} {
			_, err := conn.Create(path, make([]byte, 100_000), 0, zk.WorldACL(zk.PermAll))
			locktest.Must(b, err)
		}
		_, err := conn.Create(root+"/kazoo", []byte("3"), 0, zk.WorldACL(zk.PermAll))
		locktest.Must(b, err)
		for _, path := range []string{"/kazoo/0123456789abcdef0123456789abcdef", "/config/0-foreign"} {
			_, err := conn.Create(root+path, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
			locktest.Must(b, err)
		}
		_, err = conn.Create(root+"/kazoo-__lock__", nil, 0, zk.WorldACL(zk.PermAll))
		locktest.Must(b, err)
		_, err = conn.Create(root+"/kazoo-__lock__/"+locktest.ForeignPrefixes["kazoo"], nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
		locktest.Must(b, err)
		var grants []*actors.Grant
		for _, l := range []locktest.Handle{
			locks.Mutex(root + "/a"), locks.Mutex(root + "/a/b/c"), locks.RWMutex(root + "/rw").Read(), locks.Semaphore(root+"/s", 2),
			locks.Semaphore(root+"/s/below", 2), locks.Mutex(root + "/lock"), locks.Mutex(root + "/config/locks"),
		} {
			grants = append(grants, locktest.Lock(b, l))
		}
		locktest.Unlock(b, locktest.Lock(b, locks.Mutex(root+"/unused")))
		hidden := locktest.Lock(b, locks.Mutex(root+"/secret"))
		_, err = conn.SetACL(root+"/secret", zk.DigestACL(zk.PermAll, "me", "secret"), -1)
		locktest.Must(b, err)

		want := []string{"/a", "/a/b/c", "/config/locks", "/kazoo", "/lock", "/rw", "/s", "/s/below"}
		for i := range want {
			want[i] = root + want[i]
		}
		got, err := reader.FindLocks(locktest.Within(b), root)
		if !slices.Equal(got, want) {
			b.Errorf("found %q, %v; want %q", got, err, want)
		}
		skips(b, err, actors.ErrNoAuth, root+"/secret")
		locktest.ExpectParts(b, err.Error(), "READ is not granted on "+root+"/secret")
		got, err = reader.FindLocks(locktest.Within(b), root+"/s")
		if err != nil || !slices.Equal(got, []string{root + "/s", root + "/s/below"}) {
			b.Errorf("found %q, %v", got, err)
		}
		all, err := reader.FindLocks(locktest.Within(b), "/")
		for _, path := range want {
			if !slices.Contains(all, path) {
				b.Errorf("%s is not among %q, %v", path, all, err)
			}
		}
		none, err := reader.FindLocks(locktest.Within(b), root+"/none")
		if err != nil || len(none) != 0 {
			b.Errorf("found %q, %v", none, err)
		}
		_, err = reader.FindLocks(locktest.Within(b), "relative")
		locktest.Is(b, err, actors.ErrInvalid)

		locktest.Must(b, conn.AddAuth("digest", []byte("me:secret")))
		_, err = conn.SetACL(root+"/secret", zk.WorldACL(zk.PermAll), -1)
		locktest.Must(b, err)
		for _, g := range append(grants, hidden) {
			locktest.Unlock(b, g)
		}
	})
}

// Find, Inspect and Observe return what they can read: neither a directory that is too large nor an
// unreadable generation hides the locks.
func TestPartialReads(t *testing.T) {
	t.Parallel()
	locktest.OnChroot(t, func(b *locktest.Fixture) {
		locks, conn := b.Chroot(), b.Client(b)
		reader := b.Chroot(func(cfg *actors.Config) { cfg.MaxReply = 1 << 20 })
		small, large := locktest.Lock(b, locks.Mutex("/locks/a")), locktest.Lock(b, locks.Mutex("/large"))
		var ops []any
		for i := range 4500 {
			ops = append(ops, &zk.CreateRequest{Path: fmt.Sprintf("%s/large/%s%d", b.LockPath, strings.Repeat("x", 230), i), Data: []byte{},
				Acl: zk.WorldACL(zk.PermAll)})
		}
		for chunk := range slices.Chunk(ops, 1000) {
			_, err := conn.Multi(chunk...)
			locktest.Must(b, err)
		}
		got, err := reader.FindLocks(locktest.Within(b), "/")
		if !slices.Equal(got, []string{"/locks/a"}) {
			b.Errorf("found %q, %v", got, err)
		}
		skips(b, err, actors.ErrLimit, "/large")
		locktest.ExpectParts(b, err.Error(), "MaxReply")
		got, err = reader.FindLocks(locktest.Within(b), "/large")
		if len(got) > 0 {
			b.Errorf("found %q", got)
		}
		skips(b, err, actors.ErrLimit, "/large")

		locktest.Unlock(b, large)
		node, err := conn.Create(b.LockPath+"/locks/a/other-lock-0000000009", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		locktest.Must(b, err)
		locktest.Unlock(b, small) // behind it: the server removes an empty container
		b.RaiseGeneration(locks)
		b.SetGeneration("no number") // which ends the sessions, but not the other client's
		zktest.Eventually(b, zktest.TimeLimit, func() bool { return errors.Is(reader.Health(locktest.Within(b)), actors.ErrInvalid) }, "the next session has no generation")
		q, err := reader.Inspect(locktest.Within(b), "/locks/a")
		locktest.Is(b, err, actors.ErrInvalid)
		all, err := reader.Mutex("/locks/a").Participants(locktest.Within(b))
		locktest.Is(b, err, actors.ErrInvalid)
		observed := <-reader.Observe(locktest.Within(b), "/locks/a")
		locktest.Is(b, observed.Err, actors.ErrInvalid)
		for i, q := range []actors.Queue{q, observed, {Recipe: q.Recipe, Participants: all}} {
			if locktest.Outline(q) != "mutex: exclusive!" || b.LockPath+q.Participants[0].Node != node || q.Participants[0].Token != (actors.Token{}) {
				b.Errorf("%d: %+v", i, q)
			}
		}
	})
}

// Find returns 1,000 locks.
func TestFindManyLocks(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		locks, reader := b.Locks(), b.Locks()
		var want []string
		var pending []*actors.Future[*actors.Grant]
		for i := range 1000 {
			path := fmt.Sprintf("%s-many/%03d", b.LockPath, i)
			want = append(want, path)
			pending = append(pending, locks.Mutex(path).Acquire(locktest.Within(b)))
		}
		for _, f := range pending {
			locktest.Result(b, f)
		}
		got, err := reader.FindLocks(locktest.Within(b), b.LockPath+"-many")
		if err != nil || !slices.Equal(got, want) {
			b.Errorf("%d locks, %v", len(got), err)
		}
		locktest.Must(b, locks.Close())
	})
}

// Find returns an error for a tree that is too deep, and the locks that it has found.
func TestFindDepth(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		locks := b.Locks()
		deep := b.LockPath + "-deep"
		for range 20 {
			deep += "/d"
		}
		top, bottom := locktest.Lock(b, locks.Mutex(b.LockPath+"-deep")), locktest.Lock(b, locks.Mutex(deep))
		got, err := locks.FindLocks(locktest.Within(b), b.LockPath+"-deep")
		skips(b, err, actors.ErrLimit, b.LockPath+"-deep"+strings.Repeat("/d", 16))
		if !slices.Equal(got, []string{b.LockPath + "-deep"}) {
			b.Errorf("%q", got)
		}
		locktest.Unlock(b, top)
		locktest.Unlock(b, bottom)
	})
}
