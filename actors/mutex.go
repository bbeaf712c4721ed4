package actors

import "github.com/actorlock/actorlock/actors/internal/recipes"

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
