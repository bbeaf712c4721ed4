package actors_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

func TestForeignContenders(t *testing.T) {
	t.Parallel()
	for name, prefix := range foreignPrefixes {
		t.Run(name, func(t *testing.T) {
			each(t, func(b *testLock) {
				conn := b.Client(b)
				mu, other := b.mutex(), b.mutex()
				first, second := b.foreignNode(conn, prefix), b.foreignNode(conn, prefix)
				f := mu.Acquire(within(b))
				b.waitNodes(3)
				third := b.foreignNode(conn, prefix)
				last := other.Acquire(within(b))
				b.waitNodes(5)
				_, err := mu.Lock(within(b), actors.Try())
				is(b, err, actors.ErrNotAcquired)
				// A contender that leaves the queue lets no other contender hold.
				second.leave()
				b.waitNodes(4)
				_, err = other.Lock(within(b), actors.Try())
				is(b, err, actors.ErrNotAcquired)
				pending(b, f, last)
				first.leave()
				g := result(b, f)
				pending(b, last)
				unlock(b, g)
				b.waitNodes(2)
				_, err = mu.Lock(within(b), actors.Try())
				is(b, err, actors.ErrNotAcquired)
				pending(b, last)
				third.leave()
				unlock(b, result(b, last))
			})
		})
	}
}

// One transaction deletes both foreign nodes ahead.
func TestForeignLeaveTogether(t *testing.T) {
	each(t, func(b *testLock) {
		conn := b.Client(b)
		one, two := b.foreignNode(conn, foreignPrefixes["Curator"]), b.foreignNode(conn, foreignPrefixes["kazoo"])
		f := b.mutex().Acquire(within(b))
		b.waitNodes(3)
		_, err := conn.Multi(&zk.DeleteRequest{Path: two.path, Version: -1}, &zk.DeleteRequest{Path: one.path, Version: -1})
		must(b, err)
		unlock(b, result(b, f))
	})
}

// Children with unknown names are no contenders. The log has each name once.
func TestUnknownNames(t *testing.T) {
	each(t, func(b *testLock) {
		conn := b.Client(b)
		var log logs
		mu := b.mutex(log.config)
		unlock(b, lock(b, mu))
		unknown := []string{"0-foreign", "zz-foreign", "config", "-lock-", "_c_x-lock-12", "lock-0000000000x", "x--", "ü",
			"_c_0b8e6a4c-9f34-4a8e-8f7e-0123456789ab-lock-99999999999"}
		first := b.foreignNode(conn, foreignPrefixes["Curator"])
		for _, name := range unknown {
			_, err := conn.Create(b.path+"/"+name, []byte("data"), zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
			must(b, err)
		}
		for range 3 {
			f := mu.Acquire(within(b))
			b.waitNodes(len(unknown) + 2)
			pending(b, f)
			first.leave()
			g := result(b, f)
			first = b.foreignNode(conn, foreignPrefixes["Curator"])
			unlock(b, g)
		}
		first.leave()
		unlock(b, lock(b, mu, actors.Try()))
		for _, name := range unknown {
			if n := len(log.with(fmt.Sprintf("name=%s do=", name))) + len(log.with(fmt.Sprintf("name=%q do=", name))); n != 1 {
				b.Errorf("%q is reported %d times", name, n)
			}
			must(b, conn.Delete(b.path+"/"+name, -1))
		}
	})
}

// go-zookeeper's lock and ours hold one lock in turn.
func TestWithZkLock(t *testing.T) {
	each(t, func(b *testLock) {
		count := 0 // unsynchronised on purpose
		mus := []*actors.Mutex{b.mutex(), b.mutex()}
		var wg sync.WaitGroup
		const rounds = 15
		for i := range 3 {
			theirs := zk.NewLock(b.Client(b), b.path, zk.WorldACL(zk.PermAll))
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
					g, err := mu.Lock(within(b))
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
	each(t, func(b *testLock) {
		conn := b.Client(b)
		_, err := conn.Create(b.path, []byte("theirs"), zk.FlagPersistent, zk.WorldACL(zk.PermAll))
		must(b, err)
		one, two := b.mutex(), b.mutex()
		b.passAround(8, 5, one, two)
		data, _, err := conn.Get(b.path)
		if err != nil || string(data) != "theirs" {
			b.Errorf("%q, %v", data, err)
		}
		b.waitNodes(0)
		must(b, conn.Delete(b.path, -1))
	})
}

// A missing right to the directory is an error, and no node is left.
func TestNoAuth(t *testing.T) {
	for name, perms := range map[string]int32{"nothing": 0, "read": zk.PermRead, "no create": zk.PermRead | zk.PermWrite | zk.PermDelete} {
		t.Run(name, func(t *testing.T) {
			each(t, func(b *testLock) {
				conn := b.Client(b)
				must(b, conn.AddAuth("digest", []byte("admin:secret")))
				acl := append(zk.DigestACL(zk.PermAll, "admin", "secret"), zk.WorldACL(perms|zk.PermAdmin)...)
				_, err := conn.Create(b.path, nil, zk.FlagPersistent, acl)
				must(b, err)
				locks := b.locks()
				_, err = locks.Mutex(b.path).Lock(within(b))
				is(b, err, actors.ErrNoAuth)
				if err == nil || !strings.Contains(err.Error(), b.path) {
					b.Errorf("the error does not name the path: %v", err)
				}
				_, err = locks.Mutex(b.path + "/below").Lock(within(b))
				is(b, err, actors.ErrNoAuth)
				_, err = conn.SetACL(b.path, zk.WorldACL(zk.PermAll), -1)
				must(b, err)
				unlock(b, lock(b, locks.Mutex(b.path)))
				b.waitNodes(0)
				must(b, conn.Delete(b.path, -1))
			})
		})
	}
}

// Unlock has an error if the process may create nodes and not delete them. The node goes with the
// session.
func TestNoAuthToDelete(t *testing.T) {
	each(t, func(b *testLock) {
		conn := b.Client(b)
		must(b, conn.AddAuth("digest", []byte("admin:secret")))
		acl := append(zk.DigestACL(zk.PermAll, "admin", "secret"), zk.WorldACL(zk.PermRead|zk.PermWrite|zk.PermCreate)...)
		_, err := conn.Create(b.path, nil, zk.FlagPersistent, acl)
		must(b, err)
		locks := b.locks()
		g := lock(b, locks.Mutex(b.path))
		err = g.Unlock(within(b))
		is(b, err, actors.ErrNoAuth)
		if err != nil && !strings.Contains(err.Error(), "DELETE") {
			b.Errorf("the error does not name the missing right: %v", err)
		}
		if locks.Session().Epoch != 1 {
			b.Error("the session has ended")
		}
		b.waitNodes(1)
		must(b, locks.Close())
		b.waitNodes(0)
		must(b, conn.Delete(b.path, -1))
	})
}

// ZooKeeper deletes the directory, a container, after the last use of the lock.
func TestContainerCleanup(t *testing.T) {
	each(t, func(b *testLock) {
		conn := b.Client(b)
		mu := b.mutex()
		for range 2 {
			unlock(b, lock(b, mu))
			zktest.Eventually(b, timeLimit, func() bool {
				exists, _, err := conn.Exists(b.path)
				return err == nil && !exists
			}, "the container is gone")
		}
	})
}

// The container of a lock in use is deleted whenever it is empty.
func TestContainerGoesMeanwhile(t *testing.T) {
	each(t, func(b *testLock) {
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
					_ = conn.Delete(b.path, -1) // mostly it is in use
				}
			}
		}()
		one, two := b.mutex(), b.mutex()
		for !isClosed(done) {
			b.passAround(4, 3, one, two)
			if b.Failed() {
				break
			}
		}
		<-done
	})
}
