package interop

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

func TestForeignContenders(t *testing.T) {
	t.Parallel()
	for name, prefix := range locktest.ForeignPrefixes {
		t.Run(name, func(t *testing.T) {
			locktest.Each(t, func(b *locktest.Fixture) {
				conn := b.Client(b)
				mu, other := b.Mutex(), b.Mutex()
				first, second := b.ForeignNode(conn, prefix), b.ForeignNode(conn, prefix)
				f := mu.Acquire(locktest.Within(b))
				b.WaitNodes(3)
				third := b.ForeignNode(conn, prefix)
				last := other.Acquire(locktest.Within(b))
				b.WaitNodes(5)
				_, err := mu.Lock(locktest.Within(b), actors.Try())
				locktest.Is(b, err, actors.ErrNotAcquired)
				// A contender that leaves the queue lets no other contender hold.
				second.Leave()
				b.WaitNodes(4)
				_, err = other.Lock(locktest.Within(b), actors.Try())
				locktest.Is(b, err, actors.ErrNotAcquired)
				locktest.Pending(b, f, last)
				first.Leave()
				g := locktest.Result(b, f)
				locktest.Pending(b, last)
				locktest.Unlock(b, g)
				b.WaitNodes(2)
				_, err = mu.Lock(locktest.Within(b), actors.Try())
				locktest.Is(b, err, actors.ErrNotAcquired)
				locktest.Pending(b, last)
				third.Leave()
				locktest.Unlock(b, locktest.Result(b, last))
			})
		})
	}
}

// One transaction deletes both foreign nodes ahead.
func TestForeignLeaveTogether(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		conn := b.Client(b)
		one, two := b.ForeignNode(conn, locktest.ForeignPrefixes["Curator"]), b.ForeignNode(conn, locktest.ForeignPrefixes["kazoo"])
		f := b.Mutex().Acquire(locktest.Within(b))
		b.WaitNodes(3)
		_, err := conn.Multi(&zk.DeleteRequest{Path: two.Path, Version: -1}, &zk.DeleteRequest{Path: one.Path, Version: -1})
		locktest.Must(b, err)
		locktest.Unlock(b, locktest.Result(b, f))
	})
}

// Children with unknown names are no contenders. The log has each name once.
func TestUnknownNames(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		conn := b.Client(b)
		var log locktest.Log
		mu := b.Mutex(log.Config)
		locktest.Unlock(b, locktest.Lock(b, mu))
		unknown := []string{"0-foreign", "zz-foreign", "config", "-lock-", "_c_x-lock-12", "lock-0000000000x", "x--", "ü",
			"_c_0b8e6a4c-9f34-4a8e-8f7e-0123456789ab-lock-99999999999"}
		first := b.ForeignNode(conn, locktest.ForeignPrefixes["Curator"])
		for _, name := range unknown {
			_, err := conn.Create(b.LockPath+"/"+name, []byte("data"), zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
			locktest.Must(b, err)
		}
		for range 3 {
			f := mu.Acquire(locktest.Within(b))
			b.WaitNodes(len(unknown) + 2)
			locktest.Pending(b, f)
			first.Leave()
			g := locktest.Result(b, f)
			first = b.ForeignNode(conn, locktest.ForeignPrefixes["Curator"])
			locktest.Unlock(b, g)
		}
		first.Leave()
		locktest.Unlock(b, locktest.Lock(b, mu, actors.Try()))
		for _, name := range unknown {
			if n := len(log.With(fmt.Sprintf("name=%s do=", name))) + len(log.With(fmt.Sprintf("name=%q do=", name))); n != 1 {
				b.Errorf("%q is reported %d times", name, n)
			}
			locktest.Must(b, conn.Delete(b.LockPath+"/"+name, -1))
		}
	})
}

// go-zookeeper's lock and ours hold one lock in turn.
func TestWithZkLock(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		count := 0 // unsynchronised on purpose
		mus := []*actors.Mutex{b.Mutex(), b.Mutex()}
		var wg sync.WaitGroup
		const rounds = 15
		for i := range 3 {
			theirs := zk.NewLock(b.Client(b), b.LockPath, zk.WorldACL(zk.PermAll))
			wg.Go(func() {
				for range rounds {
					if err := theirs.Lock(); err != nil {
						b.Errorf("zk.Lock: %v", err)
						return
					}
					count++
					if err := theirs.Unlock(); err != nil {
						b.Errorf("zk.Lock: %v", err)
					}
				}
			})
			mu := mus[i%len(mus)]
			wg.Go(func() {
				for range rounds {
					g, err := mu.Lock(locktest.Within(b))
					if err != nil {
						b.Error(err)
						return
					}
					count++
					g.Release()
				}
			})
		}
		wg.Wait()
		if count != 6*rounds {
			b.Errorf("%d grants counted %d", 6*rounds, count)
		}
	})
}

// A directory keeps its data.
func TestDirectoryWithData(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		conn := b.Client(b)
		_, err := conn.Create(b.LockPath, []byte("theirs"), zk.FlagPersistent, zk.WorldACL(zk.PermAll))
		locktest.Must(b, err)
		one, two := b.Mutex(), b.Mutex()
		b.PassAround(8, 5, one, two)
		data, _, err := conn.Get(b.LockPath)
		if err != nil || string(data) != "theirs" {
			b.Errorf("%q, %v", data, err)
		}
		b.WaitNodes(0)
		locktest.Must(b, conn.Delete(b.LockPath, -1))
	})
}

// A missing right to the directory is an error, and no node is left.
func TestNoAuth(t *testing.T) {
	for name, perms := range map[string]int32{"nothing": 0, "read": zk.PermRead, "no create": zk.PermRead | zk.PermWrite | zk.PermDelete} {
		t.Run(name, func(t *testing.T) {
			locktest.Each(t, func(b *locktest.Fixture) {
				conn := b.Client(b)
				locktest.Must(b, conn.AddAuth("digest", []byte("admin:secret")))
				acl := append(zk.DigestACL(zk.PermAll, "admin", "secret"), zk.WorldACL(perms|zk.PermAdmin)...)
				_, err := conn.Create(b.LockPath, nil, zk.FlagPersistent, acl)
				locktest.Must(b, err)
				locks := b.Locks()
				_, err = locks.Mutex(b.LockPath).Lock(locktest.Within(b))
				locktest.Is(b, err, actors.ErrNoAuth)
				if err == nil || !strings.Contains(err.Error(), b.LockPath) {
					b.Errorf("the error does not name the path: %v", err)
				}
				_, err = locks.Mutex(b.LockPath + "/below").Lock(locktest.Within(b))
				locktest.Is(b, err, actors.ErrNoAuth)
				_, err = conn.SetACL(b.LockPath, zk.WorldACL(zk.PermAll), -1)
				locktest.Must(b, err)
				locktest.Unlock(b, locktest.Lock(b, locks.Mutex(b.LockPath)))
				b.WaitNodes(0)
				locktest.Must(b, conn.Delete(b.LockPath, -1))
			})
		})
	}
}

// Unlock has an error if the process may create nodes and not delete them. The node goes with the
// session.
func TestNoAuthToDelete(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		conn := b.Client(b)
		locktest.Must(b, conn.AddAuth("digest", []byte("admin:secret")))
		acl := append(zk.DigestACL(zk.PermAll, "admin", "secret"), zk.WorldACL(zk.PermRead|zk.PermWrite|zk.PermCreate)...)
		_, err := conn.Create(b.LockPath, nil, zk.FlagPersistent, acl)
		locktest.Must(b, err)
		locks := b.Locks()
		g := locktest.Lock(b, locks.Mutex(b.LockPath))
		err = g.Unlock(locktest.Within(b))
		locktest.Is(b, err, actors.ErrNoAuth)
		if err != nil && !strings.Contains(err.Error(), "DELETE") {
			b.Errorf("the error does not name the missing right: %v", err)
		}
		if locks.Session().ID != g.Session() {
			b.Error("the session has ended")
		}
		b.WaitNodes(1)
		locktest.Must(b, locks.Close())
		b.WaitNodes(0)
		locktest.Must(b, conn.Delete(b.LockPath, -1))
	})
}

// ZooKeeper deletes the directory, a container, after the last use of the lock.
func TestContainerCleanup(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		b.NeedsContainers()
		conn := b.Client(b)
		mu := b.Mutex()
		for range 2 {
			locktest.Unlock(b, locktest.Lock(b, mu))
			zktest.Eventually(b, zktest.TimeLimit, func() bool {
				exists, _, err := conn.Exists(b.LockPath)
				return err == nil && !exists
			}, "the container is gone")
		}
	})
}

// The container of a lock in use is deleted whenever it is empty.
func TestContainerGoesMeanwhile(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		conn := b.Client(b)
		stop := time.After(time.Second)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				select {
				case <-stop:
					return
				case <-time.After(rand.N(3 * time.Millisecond)):
					_ = conn.Delete(b.LockPath, -1) // mostly it is in use
				}
			}
		}()
		one, two := b.Mutex(), b.Mutex()
		for !locktest.IsClosed(done) {
			b.PassAround(4, 3, one, two)
			if b.Failed() {
				break
			}
		}
		<-done
	})
}
