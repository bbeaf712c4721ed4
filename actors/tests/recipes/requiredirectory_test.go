package recipes

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// inDirectory are the locks whose directory must exist, at a path.
var inDirectory = map[string]func(l *actors.Locks, path string) locktest.Handle{
	"mutex": func(l *actors.Locks, path string) locktest.Handle { return l.Mutex(path, actors.RequireDirectory()) },
	"lock-delay": func(l *actors.Locks, path string) locktest.Handle {
		return l.Mutex(path, actors.LockDelay(time.Second), actors.RequireDirectory())
	},
	"local queue": func(l *actors.Locks, path string) locktest.Handle {
		return l.Mutex(path, locktest.ShortLinger, actors.RequireDirectory())
	},
	"read": func(l *actors.Locks, path string) locktest.Handle {
		return l.RWMutex(path, actors.RequireDirectory()).Read()
	},
	"write": func(l *actors.Locks, path string) locktest.Handle {
		return l.RWMutex(path, actors.RequireDirectory()).Write()
	},
	"local write": func(l *actors.Locks, path string) locktest.Handle {
		return l.RWMutex(path, actors.RequireDirectory(), locktest.ShortLinger).Write()
	},
	"semaphore": func(l *actors.Locks, path string) locktest.Handle {
		return l.Semaphore(path, 1, actors.RequireDirectory())
	},
	"shared permits": func(l *actors.Locks, path string) locktest.Handle {
		return l.Semaphore(path, 1, actors.RequireDirectory(), actors.SharedPermits(path+"-count"))
	},
	"semaphore mutex": func(l *actors.Locks, path string) locktest.Handle {
		return l.SemaphoreMutex(path, actors.RequireDirectory())
	},
	"multi-lock": func(l *actors.Locks, path string) locktest.Handle {
		return l.MultiLock(l.Mutex(path+"-other"), l.Mutex(path, actors.RequireDirectory()))
	},
	"multi-lock with a semaphore": func(l *actors.Locks, path string) locktest.Handle {
		return l.MultiLock(l.Mutex(path+"-other"), l.Semaphore(path, 1, actors.RequireDirectory()))
	},
}

// eachInDirectory runs f for each of these locks on each server, with its handles of two processes.
func eachInDirectory(t *testing.T, f func(b *locktest.Fixture, conn *zk.Conn, mu, other locktest.Handle)) {
	t.Parallel()
	for name, at := range inDirectory {
		t.Run(name, func(t *testing.T) {
			if name == "shared permits" {
				locktest.NeedsZooKeeper(t, "a watch of the number of permits that ends before the server")
			}
			locktest.Each(t, func(b *locktest.Fixture) {
				locks, others := b.Locks(), b.Locks()
				f(b, b.Client(b), at(locks, b.LockPath), at(others, b.LockPath))
				locktest.Must(b, locks.Close()) // with the watch of a number of permits
				locktest.Must(b, others.Close())
			})
		})
	}
}

func makeDirectory(b *locktest.Fixture, conn *zk.Conn, path string) {
	b.Helper()
	_, err := conn.Create(path, []byte("of an object"), 0, zk.WorldACL(zk.PermAll))
	locktest.Must(b, err)
}

// deleteAll deletes a directory with all that is in it in one transaction, as a program that deletes
// an object.
func deleteAll(b *locktest.Fixture, conn *zk.Conn, path string) {
	b.Helper()
	zktest.Eventually(b, zktest.TimeLimit, func() bool {
		var all []any
		for _, name := range b.Nodes(b, path) {
			for _, below := range b.Nodes(b, path+"/"+name) {
				all = append(all, &zk.DeleteRequest{Path: path + "/" + name + "/" + below, Version: -1})
			}
			all = append(all, &zk.DeleteRequest{Path: path + "/" + name, Version: -1})
		}
		if marker, _, err := conn.Exists(path + locktest.HeldMarker); marker && err == nil {
			all = append(all, &zk.DeleteRequest{Path: path + locktest.HeldMarker, Version: -1})
		}
		_, err := conn.Multi(append(all, &zk.DeleteRequest{Path: path, Version: -1})...)
		return err == nil
	}, "the directory is deleted")
}

// A request fails while the directory does not exist, and makes nothing, however it waits.
func TestRequireDirectory(t *testing.T) {
	eachInDirectory(t, func(b *locktest.Fixture, conn *zk.Conn, mu, _ locktest.Handle) {
		for _, options := range [][]actors.Option{nil, {actors.Try()}, {actors.WithTimeout(time.Minute), actors.WithOwner("me")}} {
			_, err := mu.Lock(locktest.Within(b), options...)
			locktest.Is(b, err, actors.ErrNoDirectory)
			if err != nil && !strings.Contains(err.Error(), "directory "+b.LockPath+" does not exist") {
				b.Errorf("%v", err)
			}
		}
		if exists, _, err := conn.Exists(b.LockPath); exists || err != nil {
			b.Errorf("the directory exists: %v, %v", exists, err)
		}
		makeDirectory(b, conn, b.LockPath)
		for range 3 {
			locktest.Unlock(b, locktest.Lock(b, mu))
		}
		deleteAll(b, conn, b.LockPath)
		zktest.Eventually(b, zktest.TimeLimit, func() bool {
			g, err := mu.Lock(locktest.Within(b))
			if err == nil { // a local queue has its node until it hears of the deletion
				g.Unlock(locktest.Within(b))
				return false
			}
			locktest.Is(b, err, actors.ErrNoDirectory)
			return true
		}, "a request fails")
	})
}

// The directory is deleted while one request holds and others wait, of this process and of another.
// The holder loses the lock, and no waiter makes the directory again. (A waiter may be granted the
// lock in the moment before it hears of the deletion.)
func TestRequireDirectoryDeletedMeanwhile(t *testing.T) {
	eachInDirectory(t, func(b *locktest.Fixture, conn *zk.Conn, mu, other locktest.Handle) {
		makeDirectory(b, conn, b.LockPath)
		g := locktest.Lock(b, mu)
		waiting := []*actors.Future[*actors.Grant]{mu.Acquire(locktest.Within(b)), other.Acquire(locktest.Within(b)), other.Acquire(locktest.Within(b))}
		_, err := other.Lock(context.Background(), actors.WithTimeout(locktest.ShortWait)) // a round trip behind the others
		if err != nil {
			locktest.Is(b, err, actors.ErrTimedOut)
		}
		deleteAll(b, conn, b.LockPath)
		locktest.Closes(b, g.Done(), "the grant")
		locktest.Is(b, g.Err(), actors.ErrNodeDeleted)
		for _, f := range waiting {
			g, err := f.Wait(locktest.Within(b))
			if err != nil {
				locktest.Is(b, err, actors.ErrNoDirectory)
				continue
			}
			locktest.Closes(b, g.Done(), "the grant of a waiter")
			locktest.Is(b, g.Err(), actors.ErrNodeDeleted)
		}
		for _, mu := range []locktest.Handle{mu, other} {
			_, err := mu.Lock(locktest.Within(b))
			locktest.Is(b, err, actors.ErrNoDirectory)
		}
		if exists, _, err := conn.Exists(b.LockPath); exists || err != nil {
			b.Errorf("the directory exists: %v, %v", exists, err)
		}
	})
}

// A contender that queues again in the next session does not make the directory either.
func TestRequireDirectoryNextSession(t *testing.T) {
	locktest.NeedsZooKeeper(t, "a session that the test ends")
	locktest.Each(t, func(b *locktest.Fixture) {
		conn, locks, others := b.Client(b), b.Locks(), b.Locks()
		makeDirectory(b, conn, b.LockPath)
		g := locktest.Lock(b, others.Mutex(b.LockPath, actors.RequireDirectory()))
		mu := locks.Mutex(b.LockPath, actors.RequireDirectory())
		waiting := mu.Acquire(locktest.Within(b))
		b.WaitNodes(2)
		b.ExpireSession(locks)
		b.WaitNodes(2)
		locktest.Pending(b, waiting)
		b.Expire(b, locks.Session().ID)
		deleteAll(b, conn, b.LockPath)
		locktest.Is(b, locktest.Failure(b, waiting), actors.ErrNoDirectory)
		locktest.Closes(b, g.Done(), "the grant")
	})
}

// An election ends where its directory is missing, and elects where it is not.
func TestRequireDirectoryOfElection(t *testing.T) {
	t.Parallel()
	for name, options := range map[string][]actors.ElectionOption{
		"selector": {actors.RequireDirectory()},
		"latch":    {actors.RequireDirectory(), actors.LeaderLatchNodes()},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.Each(t, func(b *locktest.Fixture) {
				e := b.Locks().Election(b.LockPath, options...)
				for _, err := range e.Campaign(locktest.Within(b)) {
					locktest.Is(b, err, actors.ErrNoDirectory)
				}
				conn := b.Client(b)
				makeDirectory(b, conn, b.LockPath)
				var ends []error
				for term, err := range e.Campaign(locktest.Within(b)) {
					if ends = append(ends, err); err == nil {
						deleteAll(b, conn, b.LockPath)
						<-term.Context().Done()
					}
				}
				if len(ends) != 2 || ends[0] != nil {
					b.Fatalf("%v", ends)
				}
				locktest.Is(b, ends[1], actors.ErrNoDirectory)
			})
		})
	}
}

// The node of a semaphore's number of permits is not made in a directory that must exist, nor is
// that directory.
func TestRequireDirectoryOfPermits(t *testing.T) {
	t.Parallel()
	onSharedCount(t, func(b *locktest.Fixture, _ string) {
		conn, locks := b.Client(b), b.Locks()
		s := locks.Semaphore(b.LockPath, 2, actors.SharedPermits(b.LockPath+"/permits"), actors.RequireDirectory())
		_, err := s.Lock(locktest.Within(b))
		locktest.Is(b, err, actors.ErrNoDirectory)
		if exists, _, err := conn.Exists(b.LockPath); exists || err != nil {
			b.Errorf("the directory exists: %v, %v", exists, err)
		}
		makeDirectory(b, conn, b.LockPath)
		locktest.Unlock(b, locktest.Lock(b, s)) // the request sees at once that it is there
		locktest.Must(b, locks.Close())
		deleteAll(b, conn, b.LockPath)
	})
}

// A directory may be made while an answer is on its way that it is missing. A request behind that
// holds, and the one before it is refused.
func TestRequireDirectoryOfPermitsMadeMeanwhile(t *testing.T) {
	t.Parallel()
	locktest.OnEmbedded(t, func(b *locktest.Fixture) {
		conn, count := b.Client(b), b.LockPath+"/permits"
		locks := b.Locks()
		s := locks.Semaphore(b.LockPath, 2, actors.SharedPermits(count), actors.RequireDirectory())
		missing := b.Embedded().Inject(embedded.Fault{Op: embedded.OpMulti, Path: count, Action: embedded.DelayReply, Delay: locktest.ShortWait})
		b.Embedded().Pause() // the request comes before the question
		early := s.Acquire(locktest.Within(b))
		zktest.Eventually(b, zktest.TimeLimit, func() bool { return len(locks.OpenRequests()) == 1 }, "the request is open")
		b.Embedded().Resume()
		<-missing.Fired()
		makeDirectory(b, conn, b.LockPath)
		late := s.Acquire(locktest.Within(b))
		_, err := early.Result()
		locktest.Is(b, err, actors.ErrNoDirectory)
		locktest.Unlock(b, locktest.Result(b, late))
		deleteAll(b, conn, b.LockPath)
	})
}

// One process uses a path with the option or without it.
func TestRequireDirectoryOfOneHandle(t *testing.T) {
	locktest.OnEmbedded(t, func(b *locktest.Fixture) {
		locks := b.Locks()
		g := locktest.Lock(b, locks.Mutex(b.LockPath))
		_, err := locks.Mutex(b.LockPath, actors.RequireDirectory()).Lock(locktest.Within(b))
		locktest.Is(b, err, actors.ErrInvalid)
		locktest.Unlock(b, g)
	})
}
