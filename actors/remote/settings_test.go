package remote_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/sample"
	"github.com/actorlock/actorlock/actors/remote"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// locker is a handle of any lock.
type locker interface {
	Lock(context.Context, ...actors.Option) (*actors.Grant, error)
}

// section is what a lock guards.
type section struct {
	mu           sync.Mutex
	inside, most int
	last         actors.Token
}

// Clients with different settings of one path wait for each other, as programs with sessions of their own
// do: no more hold than the settings allow, and the tokens of those that exclude each other increase.
func TestDifferentSettings(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, zk *zktest.Server) {
		s := serve(t, zk.Addr(), remote.ServerConfig{MaxRequestsPerClient: 1000})
		path := zk.Path(t)
		required := path + "/required"
		lockOf(t, s.locks.Mutex(required+"/child")).Release() // which makes the directory
		queued := actors.LocalQueue(actors.LocalQueueConfig{})
		type handle = func(l *actors.Locks) locker
		mutex := func(path string, options ...actors.LockOption) handle {
			return func(l *actors.Locks) locker { return l.Mutex(path, options...) }
		}
		semaphore := func(path string, permits int) handle {
			return func(l *actors.Locks) locker { return l.Semaphore(path, permits) }
		}
		for _, c := range []struct {
			name    string
			most    int // holders at a time
			handles []handle
		}{
			{"lock-delay", 1, []handle{mutex(path + "/a"), mutex(path+"/a", actors.LockDelay(time.Second)), mutex(path+"/a", actors.LockDelay(2*time.Second))}},
			{"directory", 1, []handle{mutex(required), mutex(required, actors.RequireDirectory())}},
			{"local queue", 1, []handle{mutex(path + "/b"), mutex(path+"/b", queued), mutex(path+"/b", actors.LocalQueue(actors.LocalQueueConfig{Grants: 3}))}},
			{"read-write lock", 1, []handle{mutex(path + "/c"), func(l *actors.Locks) locker { return l.RWMutex(path + "/c").Write() }}},
			{"multi-lock", 1, []handle{mutex(path+"/d", actors.LockDelay(time.Second)), func(l *actors.Locks) locker { return l.MultiLock(l.Mutex(path+"/d"), l.Mutex(path+"/e")) },
				func(l *actors.Locks) locker {
					return l.MultiLock(l.Mutex(path+"/d", actors.LockDelay(time.Second)), l.Mutex(path+"/e"))
				}}},
			{"permits", 3, []handle{semaphore(path+"/f", 2), semaphore(path+"/f", 3)}},
			{"one permit", 1, []handle{semaphore(path+"/g", 1), func(l *actors.Locks) locker { return l.SemaphoreMutex(path + "/g") }}},
		} {
			t.Run(c.name, func(t *testing.T) {
				var in section
				var work sync.WaitGroup
				for _, h := range c.handles {
					for range 2 { // two clients of each
						lock := h(dial(t, s.addr))
						for range 3 {
							work.Go(func() {
								for range sample.Habit(5, 15) {
									in.use(t, lock, c.most)
								}
							})
						}
					}
				}
				work.Wait()
				if in.most > c.most {
					t.Errorf("%d held at one time, and %d may", in.most, c.most)
				}
			})
		}
		t.Run("below a semaphore", func(t *testing.T) {
			a, b := dial(t, s.addr), dial(t, s.addr)
			lease := lockOf(t, a.Semaphore(path+"/h", 2))
			held := lockOf(t, b.Mutex(path+"/h/locks"))
			if err := lease.Verify(t.Context()); err != nil {
				t.Error(err)
			}
			if err := held.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
			lockOf(t, a.Semaphore(path+"/h", 2))
		})
		t.Run("of the program", func(t *testing.T) { // clients do not keep the program of the server from its locks
			lockOf(t, dial(t, s.addr).Semaphore(path+"/i", 2))
			lockOf(t, s.locks.Semaphore(path+"/i", 3))
			if n := len(zk.Nodes(t, path+"/i/leases")); n != 2 {
				t.Errorf("%d leases", n)
			}
		})
	})
}

// use holds the lock for a moment.
func (in *section) use(t *testing.T, lock locker, most int) {
	g, err := lock.Lock(t.Context())
	if err != nil {
		t.Error(err)
		return
	}
	in.mu.Lock()
	in.inside++
	in.most = max(in.most, in.inside)
	if token := g.Token(); most == 1 {
		if token.Compare(in.last) <= 0 {
			t.Error(fmt.Errorf("token %v comes behind %v", token, in.last))
		}
		in.last = token
	}
	in.mu.Unlock()
	time.Sleep(100 * time.Microsecond)
	in.mu.Lock()
	in.inside--
	in.mu.Unlock()
	if err := g.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}
