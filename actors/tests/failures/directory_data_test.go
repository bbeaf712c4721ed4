package failures

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// makeDirectories makes directories that stay when they are empty. Clean deletes them first.
func makeDirectories(b *locktest.Fixture, conn *zk.Conn, names ...string) (directories []string) {
	b.Helper()
	made := []string{}
	for _, name := range names {
		directories = append(directories, b.LockPath+name)
		for at, c := range b.LockPath + name + "/" {
			if c != '/' || at == 0 {
				continue
			}
			_, err := conn.Create((b.LockPath + name)[:at], nil, 0, zk.WorldACL(zk.PermAll))
			if err == nil {
				made = append(made, (b.LockPath + name)[:at])
			} else if !errors.Is(err, zk.ErrNodeExists) {
				b.Fatal(err)
			}
		}
	}
	b.Cleanups = append(b.Cleanups, func() {
		for _, directory := range slices.Backward(made) {
			zktest.Eventually(b, zktest.TimeLimit, func() bool { return !errors.Is(conn.Delete(directory, -1), zk.ErrNotEmpty) }, "%s is empty", directory)
		}
	})
	return directories
}

// Another client has written data into the directories before the first use of the lock. Tokens
// increase with each grant, in one process and from one to the other.
func TestTokensWhereTheDirectoryHasData(t *testing.T) {
	for _, r := range locktest.Exclusive() {
		t.Run(r.Name, func(t *testing.T) {
			locktest.Each(t, func(b *locktest.Fixture) {
				conn := b.Client(b)
				for _, directory := range makeDirectories(b, conn, r.DirectoryEnds()...) {
					_, err := conn.Set(directory, []byte("theirs"), -1)
					locktest.Must(b, err)
				}
				one, two := r.At(b.Locks(), b.LockPath), r.At(b.Locks(), b.LockPath)
				b.PassAround(4, 5, one, one, one, two)
			})
		})
	}
}

// content is the data that a test has written into a directory.
type content struct {
	path string
	data string
	stat zk.Stat // of the directory after the write
}

// Data that other clients write into a lock's directories stays at all times, while two processes
// use the lock.
func TestDirectoryDataStays(t *testing.T) {
	t.Parallel()
	for _, r := range locktest.Recipes {
		t.Run(r.Name, func(t *testing.T) {
			locktest.Each(t, func(b *locktest.Fixture) {
				conn := b.Client(b)
				directories := makeDirectories(b, conn, r.DirectoryEnds()...)
				locks := []*actors.Locks{b.Locks(), b.Locks()}
				one, two := r.At(locks[0], b.LockPath), r.At(locks[1], b.LockPath)
				locktest.Unlock(b, locktest.Lock(b, one))
				written := map[string]content{}
				write := func(text string) {
					b.Helper()
					for _, directory := range directories {
						stat, err := conn.Set(directory, []byte(text), -1)
						locktest.Must(b, err)
						written[directory] = content{directory, text, *stat}
					}
				}
				check := func(when string) {
					b.Helper()
					b.Turns(4, 4, func(i int) locktest.Turn { return locktest.Turn{Lock: []locktest.Handle{one, two}[i%2]} })
					for _, c := range written {
						c.check(b, conn, when)
					}
				}
				check("before it is written to")
				write("between grants")
				check("written between grants")

				g := locktest.Lock(b, one)
				write("during a grant")
				next := two.Acquire(locktest.Within(b))
				locktest.Unlock(b, g)
				locktest.Unlock(b, locktest.Result(b, next))
				check("written during a grant")

				g = locktest.Lock(b, two)
				var ops []any
				for _, directory := range directories {
					ops = append(ops, &zk.SetDataRequest{Path: directory, Data: []byte("by the holder"), Version: -1})
				}
				results, err := locks[1].Multi(locktest.Within(b), g.Guard(ops...)...)
				locktest.Must(b, err)
				for i, directory := range directories {
					written[directory] = content{directory, "by the holder", *results[len(results)-len(directories)+i].Stat}
				}
				next = one.Acquire(locktest.Within(b))
				locktest.Unlock(b, g)
				locktest.Unlock(b, locktest.Result(b, next))
				check("written by the holder")
				write("")
				check("emptied")
			})
		})
	}
}

func (c content) check(b *locktest.Fixture, conn *zk.Conn, when string) {
	b.Helper()
	data, stat, err := conn.Get(c.path)
	locktest.Must(b, err)
	if got, want := fmt.Sprintf("%q, version %d, zxid %#x", data, stat.Version, stat.Mzxid),
		fmt.Sprintf("%q, version %d, zxid %#x", c.data, c.stat.Version, c.stat.Mzxid); got != want {
		b.Errorf("%s, %s has %s, want %s", when, c.path, got, want)
	}
}
