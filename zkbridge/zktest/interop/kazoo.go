package interop

import (
	_ "embed"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"sync"
	"testing"

	"github.com/actorlock/actorlock/zkbridge/zktest"
)

//go:embed python/driver.py
var pythonDriver string

//go:embed python/curator_names.py
var curatorNames string

// KazooClient is a Python process with a KazooClient.
type KazooClient struct{ *Peer }

// Kazoo starts a Python process with a kazoo client of the server, and waits for its session.
func Kazoo(t testing.TB, addr string, opts ...PeerOption) *KazooClient {
	t.Helper()
	python, err := findPython()
	if err != nil {
		zktest.Lack(t, errNoKazoo, err)
	}
	return &KazooClient{start(t, addr, opts, func(addr, session string) *exec.Cmd {
		return exec.Command(python, "-c", curatorNames+pythonDriver, addr, session)
	})}
}

// Lock is a Lock. The patterns are what the names of other clients' nodes have before their number,
// such as Curator's "-lock-"; without them kazoo sees only its own contenders.
func (k *KazooClient) Lock(path string, extraPatterns ...string) *Lock {
	return k.lock("mutex", append([]string{path}, extraPatterns...)...)
}

// CuratorLock is a Lock whose nodes have Curator's names, as python/curator_names.py has it.
func (k *KazooClient) CuratorLock(path string) *Lock { return k.lock("curator mutex", path) }

// CuratorReadLock is [KazooClient.ReadLock] with Curator's names.
func (k *KazooClient) CuratorReadLock(path string) *Lock { return k.lock("curator read", path) }

// CuratorWriteLock is [KazooClient.WriteLock] with Curator's names.
func (k *KazooClient) CuratorWriteLock(path string) *Lock { return k.lock("curator write", path) }

// CuratorSemaphore is a Semaphore in the directories of Curator's.
func (k *KazooClient) CuratorSemaphore(path string, permits int) *Lock {
	return k.lock("curator semaphore", path, strconv.Itoa(permits))
}

// ReadersWait reports whether kazoo's readers can wait: see [KazooClient.ReadLock].
func (k *KazooClient) ReadersWait() bool {
	k.t.Helper()
	var major, minor int
	version := k.must("client", "client", "version")[0]
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil {
		k.t.Fatalf("interop: kazoo's version %s: %v", version, err)
	}
	return major > 2 || major == 2 && minor >= 9
}

// ReadLock is a ReadLock. Before kazoo 2.9 a waiting reader deadlocks with a writer that queues
// after it, because the reader waits for the last writer of the queue: no writer may come before
// the reader holds the lock.
func (k *KazooClient) ReadLock(path string) *Lock { return k.lock("read", path) }

// WriteLock is a WriteLock.
func (k *KazooClient) WriteLock(path string) *Lock { return k.lock("write", path) }

// Semaphore is a Semaphore.
func (k *KazooClient) Semaphore(path string, permits int) *Lock {
	return k.lock("semaphore", path, strconv.Itoa(permits))
}

// Election is an Election: it is acquired when it is elected, and released when it resigns.
func (k *KazooClient) Election(path, id string) *Lock { return k.lock("election", path, id) }

var errNoKazoo = errors.New("no kazoo on this machine (install Debian's package python3-kazoo)")

// findPython returns a Python that has kazoo: the one in the path, or else the system's own.
var findPython = sync.OnceValues(func() (string, error) {
	var errs []error
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		out, err := exec.Command(python, "-c", "import kazoo.client").CombinedOutput()
		if err == nil {
			return python, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w %s", python, err, out))
	}
	return "", fmt.Errorf("%w: %w", errNoKazoo, errors.Join(errs...))
})
