package actors_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// skips checks that Find has skipped these directories only, for one reason, and names them.
func skips(t testing.TB, err, reason error, directories ...string) {
	t.Helper()
	is(t, err, reason)
	skipped, ok := errors.AsType[*actors.SkippedError](err)
	if !ok || !slices.Equal(skipped.Directories(), directories) {
		t.Errorf("%v; want %q", err, directories)
		return
	}
	contains(t, err.Error(), directories...)
}

func TestFind(t *testing.T) {
	each(t, func(b *testLock) {
		locks, reader, conn := b.locks(), b.locks(), b.Client(b)
		root := b.path + "-root"
		for _, path := range []string{root, root + "/config", root + "/lock", root + "/W", root + "/secret"} {
			_, err := conn.Create(path, make([]byte, 100_000), 0, zk.WorldACL(zk.PermAll))
			must(b, err)
		}
		_, err := conn.Create(root+"/kazoo", []byte("3"), 0, zk.WorldACL(zk.PermAll))
		must(b, err)
		for _, path := range []string{"/kazoo/0123456789abcdef0123456789abcdef", "/config/0-foreign"} {
			_, err := conn.Create(root+path, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
			must(b, err)
		}
		_, err = conn.Create(root+"/kazoo-__lock__", nil, 0, zk.WorldACL(zk.PermAll))
		must(b, err)
		_, err = conn.Create(root+"/kazoo-__lock__/"+foreignPrefixes["kazoo"], nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
		must(b, err)
		var grants []*actors.Grant
		for _, l := range []handle{
			locks.Mutex(root + "/a"), locks.Mutex(root + "/a/b/c"), locks.RWMutex(root + "/rw").Read(), locks.Semaphore(root+"/s", 2),
			locks.Semaphore(root+"/s/below", 2), locks.Mutex(root + "/lock"), locks.Mutex(root + "/config/locks"),
		} {
			grants = append(grants, lock(b, l))
		}
		unlock(b, lock(b, locks.Mutex(root+"/unused")))
		hidden := lock(b, locks.Mutex(root+"/secret"))
		_, err = conn.SetACL(root+"/secret", zk.DigestACL(zk.PermAll, "me", "secret"), -1)
		must(b, err)

		want := []string{"/a", "/a/b/c", "/config/locks", "/kazoo", "/lock", "/rw", "/s", "/s/below"}
		for i := range want {
			want[i] = root + want[i]
		}
		got, err := reader.Find(within(b), root)
		if !slices.Equal(got, want) {
			b.Errorf("found %q, %v; want %q", got, err, want)
		}
		skips(b, err, actors.ErrNoAuth, root+"/secret")
		got, err = reader.Find(within(b), root+"/s")
		if err != nil || !slices.Equal(got, []string{root + "/s", root + "/s/below"}) {
			b.Errorf("found %q, %v", got, err)
		}
		all, err := reader.Find(within(b), "/")
		for _, path := range want {
			if !slices.Contains(all, path) {
				b.Errorf("%s is not among %q, %v", path, all, err)
			}
		}
		none, err := reader.Find(within(b), root+"/none")
		if err != nil || len(none) != 0 {
			b.Errorf("found %q, %v", none, err)
		}
		_, err = reader.Find(within(b), "relative")
		is(b, err, actors.ErrInvalid)

		must(b, conn.AddAuth("digest", []byte("me:secret")))
		_, err = conn.SetACL(root+"/secret", zk.WorldACL(zk.PermAll), -1)
		must(b, err)
		for _, g := range append(grants, hidden) {
			unlock(b, g)
		}
	})
}

// Find, Inspect and Observe return what they can read: neither a directory that is too large nor an
// unreadable generation hides the locks.
func TestPartialReads(t *testing.T) {
	onChroot(t, func(b *testLock) {
		locks, conn := b.chroot(), b.Client(b)
		reader := b.chroot(func(cfg *actors.Config) { cfg.MaxReply = 1 << 20 })
		small, large := lock(b, locks.Mutex("/locks/a")), lock(b, locks.Mutex("/large"))
		var ops []any
		for i := range 4500 {
			ops = append(ops, &zk.CreateRequest{Path: fmt.Sprintf("%s/large/%s%d", b.path, strings.Repeat("x", 230), i), Data: []byte{},
				Acl: zk.WorldACL(zk.PermAll)})
		}
		for chunk := range slices.Chunk(ops, 1000) {
			_, err := conn.Multi(chunk...)
			must(b, err)
		}
		got, err := reader.Find(within(b), "/")
		if !slices.Equal(got, []string{"/locks/a"}) {
			b.Errorf("found %q, %v", got, err)
		}
		skips(b, err, actors.ErrLimit, "/large")
		contains(b, err.Error(), "MaxReply")
		got, err = reader.Find(within(b), "/large")
		if len(got) > 0 {
			b.Errorf("found %q", got)
		}
		skips(b, err, actors.ErrLimit, "/large")

		unlock(b, small)
		unlock(b, large)
		node, err := conn.Create(b.path+"/locks/a/other-lock-0000000009", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		must(b, err)
		b.raiseGeneration(locks)
		b.setGeneration("no number") // which ends the sessions, but not the other client's
		zktest.Eventually(b, timeLimit, func() bool { return errors.Is(reader.Health(within(b)), actors.ErrInvalid) }, "the next session has no generation")
		q, err := reader.Inspect(within(b), "/locks/a")
		is(b, err, actors.ErrInvalid)
		all, err := reader.Mutex("/locks/a").Participants(within(b))
		is(b, err, actors.ErrInvalid)
		observed := <-reader.Observe(within(b), "/locks/a")
		is(b, observed.Err, actors.ErrInvalid)
		for i, q := range []actors.Queue{q, observed, {Recipe: q.Recipe, Participants: all}} {
			if outline(q) != "mutex: exclusive!" || b.path+q.Participants[0].Node != node || q.Participants[0].Token != (actors.Token{}) {
				b.Errorf("%d: %+v", i, q)
			}
		}
	})
}

// Find returns 1,000 locks.
func TestFindManyLocks(t *testing.T) {
	each(t, func(b *testLock) {
		locks, reader := b.locks(), b.locks()
		var want []string
		var pending []*actors.Future[*actors.Grant]
		for i := range 1000 {
			path := fmt.Sprintf("%s-many/%03d", b.path, i)
			want = append(want, path)
			pending = append(pending, locks.Mutex(path).Acquire(within(b)))
		}
		for _, f := range pending {
			result(b, f)
		}
		got, err := reader.Find(within(b), b.path+"-many")
		if err != nil || !slices.Equal(got, want) {
			b.Errorf("%d locks, %v", len(got), err)
		}
		must(b, locks.Close())
	})
}

// Find returns an error for a tree that is too deep, and the locks that it has found.
func TestFindDepth(t *testing.T) {
	each(t, func(b *testLock) {
		locks := b.locks()
		deep := b.path + "-deep"
		for range 20 {
			deep += "/d"
		}
		top, bottom := lock(b, locks.Mutex(b.path+"-deep")), lock(b, locks.Mutex(deep))
		got, err := locks.Find(within(b), b.path+"-deep")
		skips(b, err, actors.ErrLimit, b.path+"-deep"+strings.Repeat("/d", 16))
		if !slices.Equal(got, []string{b.path + "-deep"}) {
			b.Errorf("%q", got)
		}
		unlock(b, top)
		unlock(b, bottom)
	})
}
