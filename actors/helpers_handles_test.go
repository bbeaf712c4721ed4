package actors_test

import (
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// mutex returns the lock as a mutex on a connection of its own.
func (b *testLock) mutex(configure ...func(*actors.Config)) *actors.Mutex {
	b.Helper()
	return b.locks(configure...).Mutex(b.path)
}

// rw returns the read-write lock on a connection of its own.
func (b *testLock) rw() *actors.RWMutex { return b.locks().RWMutex(b.path) }

// shortLinger is a local queue that keeps an unused node for a short while.
var shortLinger = actors.LocalQueue(actors.LocalQueueConfig{Linger: 50 * time.Millisecond})

// longLinger is a local queue that keeps an unused node until another process waits.
var longLinger = actors.LocalQueue(actors.LocalQueueConfig{Linger: time.Hour})

// local returns the lock with a local queue, on a connection of its own.
func (b *testLock) local(option actors.LockOption, configure ...func(*actors.Config)) *actors.Mutex {
	b.Helper()
	return b.locks(configure...).Mutex(b.path, option)
}

// localRW returns the read-write lock with a local queue, on a connection of its own.
func (b *testLock) localRW(option actors.LockOption, configure ...func(*actors.Config)) *actors.RWMutex {
	b.Helper()
	return b.locks(configure...).RWMutex(b.path, option)
}

// semaphore returns the lock as a semaphore on a connection of its own.
func (b *testLock) semaphore(permits int, configure ...func(*actors.Config)) *actors.Semaphore {
	b.Helper()
	return b.locks(configure...).Semaphore(b.path, permits)
}

// leases and queue return the nodes of a semaphore's two directories.
func (b *testLock) leases() []string { return b.Nodes(b, b.path+"/leases") }
func (b *testLock) queue() []string  { return b.Nodes(b, b.path+"/locks") }

// waitSemaphore waits until the request queue and the leases have so many nodes.
func (b *testLock) waitSemaphore(queue, leases int) {
	b.Helper()
	var q, l []string
	zktest.Eventually(b, timeLimit, func() bool {
		q, l = b.queue(), b.leases()
		return len(q) == queue && len(l) == leases
	}, "%d in the queue and %d leases: %v, %v", queue, leases, &q, &l)
}

// threeMembers returns locks of different kinds at paths of their own.
func (b *testLock) threeMembers(locks *actors.Locks) []actors.Member {
	return []actors.Member{locks.Mutex(b.path + "-a"), locks.RWMutex(b.path + "-b").Write(), locks.RWMutex(b.path + "-c").Read()}
}

// table returns the table lock on a connection of its own.
func (b *testLock) table() *actors.Custom {
	b.Helper()
	return b.tableOf(b.locks())
}

func (b *testLock) tableOf(locks *actors.Locks) *actors.Custom {
	return locks.Custom(b.path, "table lock", tableLock(), tableKinds...)
}
