package locktest

import (
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Mutex returns the lock as a mutex on a connection of its own.
func (b *Fixture) Mutex(configure ...func(*actors.Config)) *actors.Mutex {
	b.Helper()
	return b.Locks(configure...).Mutex(b.LockPath)
}

// RWMutex returns the read-write lock on a connection of its own.
func (b *Fixture) RWMutex() *actors.RWMutex { return b.Locks().RWMutex(b.LockPath) }

// ShortLinger is a local queue that keeps an unused node for a short while.
var ShortLinger = actors.LocalQueue(actors.LocalQueueConfig{Linger: 50 * time.Millisecond})

// LongLinger is a local queue that keeps an unused node until another process waits.
var LongLinger = actors.LocalQueue(actors.LocalQueueConfig{Linger: time.Minute})

// LocalMutex returns the lock with a local queue, on a connection of its own.
func (b *Fixture) LocalMutex(option actors.LockOption, configure ...func(*actors.Config)) *actors.Mutex {
	b.Helper()
	return b.Locks(configure...).Mutex(b.LockPath, option)
}

// LocalRWMutex returns the read-write lock with a local queue, on a connection of its own.
func (b *Fixture) LocalRWMutex(option actors.LockOption, configure ...func(*actors.Config)) *actors.RWMutex {
	b.Helper()
	return b.Locks(configure...).RWMutex(b.LockPath, option)
}

// Semaphore returns the lock as a semaphore on a connection of its own.
func (b *Fixture) Semaphore(permits int, configure ...func(*actors.Config)) *actors.Semaphore {
	b.Helper()
	return b.Locks(configure...).Semaphore(b.LockPath, permits)
}

// Leases returns the nodes of a semaphore's leases.
func (b *Fixture) Leases() []string { return b.Nodes(b, b.LockPath+"/leases") }

// Queue returns the nodes of a semaphore's request queue.
func (b *Fixture) Queue() []string { return b.Nodes(b, b.LockPath+"/locks") }

// WaitSemaphore waits until the request queue and the leases have so many nodes.
func (b *Fixture) WaitSemaphore(queue, leases int) {
	b.Helper()
	var q, l []string
	zktest.Eventually(b, zktest.TimeLimit, func() bool {
		q, l = b.Queue(), b.Leases()
		return len(q) == queue && len(l) == leases
	}, "%d in the queue and %d leases: %v, %v", queue, leases, &q, &l)
}
