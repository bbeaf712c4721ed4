package actors_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// makeDirectories makes directories that stay when they are empty. clean deletes them first.
func (b *testLock) makeDirectories(conn *zk.Conn, names ...string) (directories []string) {
	b.Helper()
	made := []string{}
	for _, name := range names {
		directories = append(directories, b.path+name)
		for at, c := range b.path + name + "/" {
			if c != '/' || at == 0 {
				continue
			}
			_, err := conn.Create((b.path + name)[:at], nil, 0, zk.WorldACL(zk.PermAll))
			if err == nil {
				made = append(made, (b.path + name)[:at])
			} else if !errors.Is(err, zk.ErrNodeExists) {
				b.Fatal(err)
			}
		}
	}
	b.cleanups = append(b.cleanups, func() {
		for _, directory := range slices.Backward(made) {
			zktest.Eventually(b, timeLimit, func() bool { return !errors.Is(conn.Delete(directory, -1), zk.ErrNotEmpty) }, "%s is empty", directory)
		}
	})
	return directories
}

// Another client has written data into the directories before the first use of the lock. Tokens
// increase with each grant, in one process and from one to the other.
func TestTokensWhereTheDirectoryHasData(t *testing.T) {
	for _, r := range exclusive() {
		t.Run(r.name, func(t *testing.T) {
			each(t, func(b *testLock) {
				conn := b.Client(b)
				for _, directory := range b.makeDirectories(conn, r.directoryEnds()...) {
					_, err := conn.Set(directory, []byte("theirs"), -1)
					must(b, err)
				}
				one, two := r.at(b.locks(), b.path), r.at(b.locks(), b.path)
				b.passAround(4, 5, one, one, one, two)
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
	for _, r := range recipes {
		t.Run(r.name, func(t *testing.T) {
			each(t, func(b *testLock) {
				conn := b.Client(b)
				directories := b.makeDirectories(conn, r.directoryEnds()...)
				locks := []*actors.Locks{b.locks(), b.locks()}
				one, two := r.at(locks[0], b.path), r.at(locks[1], b.path)
				unlock(b, lock(b, one))
				written := map[string]content{}
				write := func(text string) {
					b.Helper()
					for _, directory := range directories {
						stat, err := conn.Set(directory, []byte(text), -1)
						must(b, err)
						written[directory] = content{directory, text, *stat}
					}
				}
				check := func(when string) {
					b.Helper()
					b.turns(4, 4, func(i int) turn { return turn{lock: []handle{one, two}[i%2]} })
					for _, c := range written {
						c.check(b, conn, when)
					}
				}
				check("before it is written to")
				write("between grants")
				check("written between grants")

				g := lock(b, one)
				write("during a grant")
				next := two.Acquire(within(b))
				unlock(b, g)
				unlock(b, result(b, next))
				check("written during a grant")

				g = lock(b, two)
				var ops []any
				for _, directory := range directories {
					ops = append(ops, &zk.SetDataRequest{Path: directory, Data: []byte("by the holder"), Version: -1})
				}
				results, err := locks[1].Multi(within(b), g.Guard(ops...)...)
				must(b, err)
				for i, directory := range directories {
					written[directory] = content{directory, "by the holder", *results[len(results)-len(directories)+i].Stat}
				}
				next = one.Acquire(within(b))
				unlock(b, g)
				unlock(b, result(b, next))
				check("written by the holder")
				write("")
				check("emptied")
			})
		})
	}
}

func (c content) check(b *testLock, conn *zk.Conn, when string) {
	b.Helper()
	data, stat, err := conn.Get(c.path)
	must(b, err)
	if got, want := fmt.Sprintf("%q, version %d, zxid %#x", data, stat.Version, stat.Mzxid),
		fmt.Sprintf("%q, version %d, zxid %#x", c.data, c.stat.Version, c.stat.Mzxid); got != want {
		b.Errorf("%s, %s has %s, want %s", when, c.path, got, want)
	}
}
