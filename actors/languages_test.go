package actors_test

import (
	"fmt"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/zktest"
	"github.com/actorlock/actorlock/zkbridge/zktest/interop"
)

// Go, Java and Python on one path exclude each other if kazoo's nodes have Curator's names.
func TestThreeLanguages(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]func(*testLock, *interop.CuratorClient, *interop.KazooClient){
		"mutex":      threeLanguagesMutex,
		"read-write": threeLanguagesReadWrite,
		"semaphore":  threeLanguagesSemaphore,
	} {
		t.Run(name, func(t *testing.T) {
			onOneServer(t, func(b *testLock) { f(b, b.curator(), b.kazoo()) })
		})
	}
}

func threeLanguagesMutex(b *testLock, curator *interop.CuratorClient, kazoo *interop.KazooClient) {
	b.keepDirectories("")
	b.contend(0, map[string]lockClient{"go": exclusiveClient(b.mutex()), "go too": exclusiveClient(b.mutex())},
		map[string]*interop.Lock{
			"java": curator.Mutex(b.path), "java too": curator.Mutex(b.path),
			"python": kazoo.CuratorLock(b.path), "python too": kazoo.CuratorLock(b.path),
		})
}

func threeLanguagesReadWrite(b *testLock, curator *interop.CuratorClient, kazoo *interop.KazooClient) {
	b.keepDirectories("")
	rw := b.rw()
	theirs := map[string]*interop.Lock{
		"java reads": curator.ReadLock(b.path), "java writes": curator.WriteLock(b.path),
		"python writes": kazoo.CuratorWriteLock(b.path), "python writes too": kazoo.CuratorWriteLock(b.path),
	}
	if kazoo.ReadersWait() {
		theirs["python reads"] = kazoo.CuratorReadLock(b.path)
	}
	b.contend(0, map[string]lockClient{"go reads": sharedClient(rw.Read()), "go writes": exclusiveClient(b.rw().Write())}, theirs)
}

func threeLanguagesSemaphore(b *testLock, curator *interop.CuratorClient, kazoo *interop.KazooClient) {
	const permits = 2
	b.keepDirectories("/locks", "/leases", "")
	ours, theirs := map[string]lockClient{}, map[string]*interop.Lock{}
	for i := range 2 {
		ours[fmt.Sprint("go ", i)] = sharedClient(b.locks().Semaphore(b.path, permits))
		theirs[fmt.Sprint("java ", i)] = curator.Semaphore(b.path, permits)
		theirs[fmt.Sprint("python ", i)] = kazoo.CuratorSemaphore(b.path, permits)
	}
	b.contend(permits, ours, theirs)
}

// keepDirectories makes the directories, of which the last is the parent of the others, until the
// end of the test. kazoo fails if the server removes an empty container between two of its
// requests.
func (b *testLock) keepDirectories(ends ...string) {
	b.Helper()
	conn := b.Client(b)
	for i := range ends {
		_, err := conn.Create(b.path+ends[len(ends)-1-i], nil, zk.FlagPersistent, zk.WorldACL(zk.PermAll))
		must(b, err)
	}
	b.cleanups = append(b.cleanups, func() {
		for _, end := range ends {
			b.waitNodes(0, end)
			must(b, conn.Delete(b.path+end, -1))
		}
	})
}

// Curator gets a lock that kazoo holds by a node with a name of kazoo's own, but not with one of
// Curator's.
func TestCuratorBesideKazoosNames(t *testing.T) {
	onOneServer(t, func(b *testLock) {
		java, kazoo := b.curator().Mutex(b.path), b.kazoo()
		for _, c := range []struct {
			name   string
			python *interop.Lock
			waits  bool
		}{
			{"kazoo's names", kazoo.Lock(b.path, "-lock-"), false},
			{"Curator's names", kazoo.CuratorLock(b.path), true},
		} {
			mustAcquire(b, c.python)
			held, err := java.TryAcquire()
			if err != nil || held == c.waits {
				b.Fatalf("%s: Curator holds %v, %v", c.name, held, err)
			}
			if held {
				must(b, java.Release())
			}
			must(b, c.python.Release())
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
			each(t, func(b *testLock) {
				var log logs
				conn, mu := b.Client(b), b.mutex(log.config)
				for range 2 {
					one := b.foreignNode(conn, foreignPrefixes[c.first])
					other := b.foreignNode(conn, foreignPrefixes[c.second])
					f := mu.Acquire(within(b))
					b.waitNodes(3)
					pending(b, f)
					one.leave()
					other.leave()
					unlock(b, result(b, f))
				}
				if n := len(log.with("level=ERROR", "do not wait for others", "path="+b.path)); (n == 1) != c.reported || n > 1 {
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
	each(t, func(b *testLock) {
		var log logs
		g, conn := lock(b, b.semaphore(2)), b.Client(b)
		for _, end := range []string{lease, "/leases" + lease} {
			_, err := conn.Create(b.path+end, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
			must(b, err)
		}
		_, err := b.semaphore(2, log.config).Lock(within(b), actors.Try())
		is(b, err, actors.ErrNotAcquired)
		zktest.Eventually(b, timeLimit, func() bool {
			return len(log.with("level=ERROR", "two recipes", "path="+b.path, "kazoo's semaphore")) == 1
		}, "the misuse is reported")
		if lines := log.with("is no lease"); len(lines) > 0 {
			b.Errorf("%s", lines)
		}
		must(b, conn.Delete(b.path+lease, -1))
		must(b, conn.Delete(b.path+"/leases"+lease, -1))
		unlock(b, g)
	})
}
