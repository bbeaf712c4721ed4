package actors

import (
	"context"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/gen/ask"
)

// Future is a value that comes later, such as a Grant; see package ask.
type Future[T any] = ask.Future[T]

// Mutex is a lock that one owner holds at a time: fair in the order of arrival,
// across processes, and re-entrant by Owner. On ZooKeeper it is Curator's
// InterProcessMutex, with which it may share a path. A Mutex is a cheap handle; any
// number of them on one path are the same lock. Its methods may be called from any
// goroutine.
type Mutex struct{ handle }

// Mutex gives the mutex at path, an absolute path of ZooKeeper whose nodes are made
// when needed. It does not block and does nothing yet: a path that is not acceptable
// shows at the first request, as ErrInvalid.
func (l *Locks) Mutex(path string) *Mutex {
	return &Mutex{handle{manager: l.manager, path: path, rule: queue.Mutex}}
}

// Acquire asks for the lock and never blocks. The future gives the Grant once the
// lock is held; its error is that of ctx if ctx ends earlier, or one of this package.
// ctx bounds the wait only, not the grant. Cancel on the future leaves the queue, and
// gives back a grant that nobody has read yet; so does dropping the future.
//
// A wait outlives the loss of the ZooKeeper session: the request queues again in the
// next one, at the end.
func (m *Mutex) Acquire(ctx context.Context, options ...Option) *Future[*Grant] {
	return m.acquire(ctx, options).Future()
}

// Lock is Acquire that blocks until the lock is held, ctx ends or the request fails.
func (m *Mutex) Lock(ctx context.Context, options ...Option) (*Grant, error) {
	return m.acquire(ctx, options).Take()
}

// Path is the lock's path.
func (m *Mutex) Path() string { return m.path }

// PID is the lock's actor, which takes the messages of service Lock in lock.proto
// and answers with those of service Owner. It runs until Locks is closed, or until it
// fails, when all are told; then there is another one.
func (m *Mutex) PID() (*actor.PID, error) { return m.pin() }
