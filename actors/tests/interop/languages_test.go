package interop

import (
	"fmt"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge/zktest"
	"github.com/actorlock/actorlock/zkbridge/zktest/interop"
)

// Go, Java and Python on one path exclude each other if kazoo's nodes have Curator's names.
func TestThreeLanguages(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]func(*locktest.Fixture, *interop.CuratorClient, *interop.KazooClient){
		"mutex":      threeLanguagesMutex,
		"read-write": threeLanguagesReadWrite,
		"semaphore":  threeLanguagesSemaphore,
	} {
		t.Run(name, func(t *testing.T) {
			locktest.OnOneServer(t, func(b *locktest.Fixture) { f(b, curator(b), kazoo(b)) })
		})
	}
}

func threeLanguagesMutex(b *locktest.Fixture, curator *interop.CuratorClient, kazoo *interop.KazooClient) {
	keepDirectories(b, "")
	contendWith(b, 0, map[string]lockClient{"go": exclusiveClient(b.Mutex()), "go too": exclusiveClient(b.Mutex())},
		map[string]*interop.Lock{
			"java": curator.Mutex(b.LockPath), "java too": curator.Mutex(b.LockPath),
			"python": kazoo.CuratorLock(b.LockPath), "python too": kazoo.CuratorLock(b.LockPath),
		})
}

func threeLanguagesReadWrite(b *locktest.Fixture, curator *interop.CuratorClient, kazoo *interop.KazooClient) {
	keepDirectories(b, "")
	rw := b.RWMutex()
	theirs := map[string]*interop.Lock{
		"java reads": curator.ReadLock(b.LockPath), "java writes": curator.WriteLock(b.LockPath),
		"python writes": kazoo.CuratorWriteLock(b.LockPath), "python writes too": kazoo.CuratorWriteLock(b.LockPath),
	}
	if kazoo.ReadersWait() {
		theirs["python reads"] = kazoo.CuratorReadLock(b.LockPath)
	}
	contendWith(b, 0, map[string]lockClient{"go reads": sharedClient(rw.Read()), "go writes": exclusiveClient(b.RWMutex().Write())}, theirs)
}

func threeLanguagesSemaphore(b *locktest.Fixture, curator *interop.CuratorClient, kazoo *interop.KazooClient) {
	const permits = 2
	keepDirectories(b, "/locks", "/leases", "")
	ours, theirs := map[string]lockClient{}, map[string]*interop.Lock{}
	for i := range 2 {
		ours[fmt.Sprint("go ", i)] = sharedClient(b.Locks().Semaphore(b.LockPath, permits))
		theirs[fmt.Sprint("java ", i)] = curator.Semaphore(b.LockPath, permits)
		theirs[fmt.Sprint("python ", i)] = kazoo.CuratorSemaphore(b.LockPath, permits)
	}
	contendWith(b, permits, ours, theirs)
}

// keepDirectories makes the directories, of which the last is the parent of the others, until the
// end of the test. kazoo fails if the server removes an empty container between two of its
// requests.
func keepDirectories(b *locktest.Fixture, ends ...string) {
	b.Helper()
	conn := b.Client(b)
	for i := range ends {
		_, err := conn.Create(b.LockPath+ends[len(ends)-1-i], nil, zk.FlagPersistent, zk.WorldACL(zk.PermAll))
		locktest.Must(b, err)
	}
	b.Cleanups = append(b.Cleanups, func() {
		for _, end := range ends {
			b.WaitNodes(0, end)
			locktest.Must(b, conn.Delete(b.LockPath+end, -1))
		}
	})
}

// Curator gets a lock that kazoo holds by a node with a name of kazoo's own, but not with one of
// Curator's.
func TestCuratorBesideKazoosNames(t *testing.T) {
	locktest.OnOneServer(t, func(b *locktest.Fixture) {
		java, kazoo := curator(b).Mutex(b.LockPath), kazoo(b)
		for _, c := range []struct {
			name   string
			python *interop.Lock
			waits  bool
		}{
			{"kazoo's names", kazoo.Lock(b.LockPath, "-lock-"), false},
			{"Curator's names", kazoo.CuratorLock(b.LockPath), true},
		} {
			mustAcquire(b, c.python)
			held, err := java.TryAcquire()
			if err != nil || held == c.waits {
				b.Fatalf("%s: Curator holds %v, %v", c.name, held, err)
			}
			if held {
				locktest.Must(b, java.Release())
			}
			locktest.Must(b, c.python.Release())
		}
	})
}

// Curator's clients and kazoo's, with names of kazoo's own, on one path do not wait for each other.
// We log that once, and nothing about names that all know.
func TestClientsThatDoNotWait(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		first, second string
		reported      bool
	}{
		{"Curator", "kazoo", true},
		{"kazoo", "Curator", true},
		{"kazoo reader", "Curator", true},
		{"zk-recipes", "Curator", true},
		{"go-zookeeper", "kazoo", false},
		{"Curator", "kazoo with Curator's names", false},
	} {
		t.Run(c.first+" and "+c.second, func(t *testing.T) {
			locktest.Each(t, func(b *locktest.Fixture) {
				var log locktest.Log
				conn, mu := b.Client(b), b.Mutex(log.Config)
				for range 2 {
					one := b.ForeignNode(conn, locktest.ForeignPrefixes[c.first])
					other := b.ForeignNode(conn, locktest.ForeignPrefixes[c.second])
					f := mu.Acquire(locktest.Within(b))
					b.WaitNodes(3)
					locktest.Pending(b, f)
					one.Leave()
					other.Leave()
					locktest.Unlock(b, locktest.Result(b, f))
				}
				if n := len(log.With("level=ERROR", "do not wait for others", "path="+b.LockPath)); (n == 1) != c.reported || n > 1 {
					b.Errorf("reported %d times", n)
				}
			})
		})
	}
}

// A lease of kazoo's semaphore is another recipe's in the directory of a semaphore. In Curator's
// directory of leases it takes a permit like any other.
func TestKazoosLease(t *testing.T) {
	const lease = "/0123456789abcdef0123456789abcdef"
	locktest.Each(t, func(b *locktest.Fixture) {
		var log locktest.Log
		g, conn := locktest.Lock(b, b.Semaphore(2)), b.Client(b)
		for _, end := range []string{lease, "/leases" + lease} {
			_, err := conn.Create(b.LockPath+end, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
			locktest.Must(b, err)
		}
		_, err := b.Semaphore(2, log.Config).Lock(locktest.Within(b), actors.Try())
		locktest.Is(b, err, actors.ErrNotAcquired)
		zktest.Eventually(b, zktest.TimeLimit, func() bool {
			return len(log.With("level=ERROR", "two recipes", "path="+b.LockPath, "kazoo's semaphore")) == 1
		}, "the misuse is reported")
		if lines := log.With("is no lease"); len(lines) > 0 {
			b.Errorf("%s", lines)
		}
		locktest.Must(b, conn.Delete(b.LockPath+lease, -1))
		locktest.Must(b, conn.Delete(b.LockPath+"/leases"+lease, -1))
		locktest.Unlock(b, g)
	})
}
