package actors

import (
	"github.com/actorlock/actorlock/actors/internal/recipes"
	"github.com/actorlock/actorlock/actors/queue"
)

// Mutex is a lock that one owner holds at a time: fair in the order of arrival, across
// processes, and re-entrant by Owner. On ZooKeeper it is Curator's InterProcessMutex, with which
// it may share a path. A Mutex is a cheap handle; any number of handles on one path are the same
// lock. Its methods may be called from any goroutine.
type Mutex struct{ handle }

// Mutex returns the mutex at path, an absolute path of ZooKeeper whose nodes are created when
// needed. It does not block or ask ZooKeeper: an unacceptable path shows at the first request, as
// ErrInvalid.
func (l *Locks) Mutex(path string, options ...LockOption) *Mutex {
	return &Mutex{l.handle(path, recipes.Mutex, 0, options)}
}

// RWMutex is a lock that one writer or any number of readers hold at a time: fair in the order of
// arrival, so that neither starves the other, across processes, and re-entrant by Owner. On
// ZooKeeper it is Curator's InterProcessReadWriteLock, with which it may share a path. It is a
// cheap handle like Mutex.
//
// An owner that holds the write lock gets the read lock at once. If it then releases the write
// lock, it goes on as a reader (downgrade): no writer in the queue gets in between, and the grant
// keeps the writer's token. There is no way from the read lock to the write lock: such a request
// is refused with ErrDeadlock, since two readers that wait for each other to leave would wait for
// ever.
//
// Beside Curator before 5.5 one case is unsafe, as it is between such Curators: when one of those
// downgrades, writers in the queue do not see its reader. A Mutex on the same path, of another
// process, does not see the reader either: all processes must use a path for one recipe.
type RWMutex struct{ modes }

// ModeLock is a lock of several kinds as it is held for one of them, such as the read lock. Its
// PID is the same for every kind: an Acquire of an actor names the kind itself.
type ModeLock struct{ handle }

// RWMutex returns the read-write lock at path, an absolute path of ZooKeeper whose nodes are
// created when needed. It does not block or ask ZooKeeper: an unacceptable path shows at the
// first request, as ErrInvalid.
func (l *Locks) RWMutex(path string, options ...LockOption) *RWMutex {
	return &RWMutex{l.modes(path, recipes.ReadWrite, options)}
}

// modes are the two modes of a read-write lock.
type modes struct{ read, write ModeLock }

func (l *Locks) modes(path string, r *recipe, options []LockOption) modes {
	return modes{ModeLock{l.handle(path, r, queue.Shared, options)}, ModeLock{l.handle(path, r, queue.Exclusive, options)}}
}

// Read returns the read lock.
func (m *modes) Read() *ModeLock { return &m.read }

// Write returns the write lock.
func (m *modes) Write() *ModeLock { return &m.write }
