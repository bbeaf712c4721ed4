package failures

import (
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/actors/internal/sample"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Near the end of a directory's sequence numbers new requests wait outside the queue: see
// numberend.go of package lockqueue.
const (
	nearEnd   = math.MaxInt32 - 1<<20 + 1 // from here on they wait
	lastEntry = math.MaxInt32 - 1<<16     // from here on no request creates a node
)

// numbersBegin makes the directories of a recipe, whose sequence numbers begin at count.
func numbersBegin(b *locktest.Fixture, r locktest.Recipe, count int32) {
	b.Helper()
	for _, end := range r.DirectoryEnds() {
		conn := b.Client(b) // the requests of one that SetCreateCount has cut may fail
		directory := b.LockPath + end
		for _, p := range []string{path.Dir(directory), directory} {
			if _, err := conn.Create(p, nil, 0, zk.WorldACL(zk.PermAll)); err != nil && !errors.Is(err, zk.ErrNodeExists) {
				b.Fatal(err)
			}
		}
		b.SetCreateCount(b.T, directory, count)
	}
}

// numbersAreLow checks that the directories of a recipe were deleted and perhaps made again.
func numbersAreLow(b *locktest.Fixture, r locktest.Recipe) {
	b.Helper()
	conn := b.Client(b)
	for _, end := range r.DirectoryEnds() {
		node, err := conn.Create(b.LockPath+end+"/n-", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
		if err == nil && node[len(node)-10:] > "0000010000" {
			b.Errorf("the numbers go on: %s", node)
		}
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			b.Error(err)
		}
	}
}

// Several processes use a lock while its numbers come to their end, where several nodes would get
// one number. No request fails, no two hold, tokens increase, and the numbers begin anew.
func passTheEnd(b *locktest.Fixture, r locktest.Recipe, count int32) {
	numbersBegin(b, r, count)
	exclusive := slices.ContainsFunc(locktest.Exclusive(), func(e locktest.Recipe) bool { return e.Name == r.Name })
	inside, token := 0, actors.Token{}
	var g errgroup.Group
	for range 3 {
		mu := r.At(b.Locks(), b.LockPath)
		g.Go(func() error {
			for range 10 {
				grant, err := mu.Lock(locktest.Within(b), r.Options...)
				for r.Permits > 1 && errors.Is(err, actors.ErrSequenceExhausted) {
					grant, err = mu.Lock(locktest.Within(b), r.Options...) // one of its leases had the last number, and had to wait for the other
				}
				if err != nil {
					return err
				}
				if exclusive {
					inside++ // the race detector checks this
					if inside != 1 || grant.Token().Compare(token) <= 0 {
						return fmt.Errorf("%d inside, token %v after %v", inside, grant.Token(), token)
					}
					token = grant.Token()
					inside--
				}
				if err := grant.Unlock(locktest.Within(b)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	locktest.Must(b, g.Wait())
	if !strings.HasPrefix(r.Name, "local") { // a local queue needs too few nodes
		numbersAreLow(b, r)
	}
}

// A run by habit has a fifth of the cases.
func TestEndOfNumbers(t *testing.T) {
	sampled := sample.OneIn(t, 5)
	for _, r := range locktest.Recipes {
		for _, count := range []int32{nearEnd - 3, lastEntry - 3, math.MaxInt32 - 3, math.MaxInt32, math.MinInt32} {
			if sampled() {
				t.Run(fmt.Sprint(r.Name, count), func(t *testing.T) {
					locktest.Bubble(t, func(v *locktest.Virtual) { passTheEnd(v.Fixture, r, count) })
				})
			}
		}
	}
}

func TestEndOfNumbersOnZooKeeper(t *testing.T) {
	t.Parallel()
	for _, r := range locktest.Named("mutex", "semaphore") {
		t.Run(r.Name, func(t *testing.T) {
			t.Parallel()
			passTheEnd(locktest.NewFixture(t, zktest.Own(t)), r, math.MaxInt32-3)
		})
	}
}

// While a holder stays, requests of all processes wait outside the queue. The first of them that
// hears that it has left deletes the directory.
func TestProcessesWaitOutside(t *testing.T) {
	locktest.Bubble(t, func(v *locktest.Virtual) {
		numbersBegin(v.Fixture, locktest.Recipe{}, nearEnd)
		g := locktest.Lock(v, v.Mutex())
		var futures []*actors.Future[*actors.Grant]
		for range 3 {
			mu := v.Mutex()
			unknowing := mu.Acquire(locktest.Within(v)) // the process learns the numbers by its first node
			v.WaitNodes(2)
			unknowing.Cancel()
			v.WaitNodes(1)
			for range 3 {
				futures = append(futures, mu.Acquire(locktest.Within(v)))
			}
		}
		locktest.Pending(v, futures...)
		v.WaitNodes(1)
		locktest.Unlock(v, g)
		for _, f := range futures {
			go func() {
				if g, err := f.Result(); err == nil {
					g.Release()
				}
			}()
		}
		for _, f := range futures {
			node := locktest.Result(v, f).Node()
			if node[len(node)-10:] > "0000000100" {
				v.Errorf("the numbers go on: %s", node)
			}
		}
	})
}

// Another child, or a client of another library that goes on to create contenders, keeps the
// directory from being deleted. The numbers are used up to a reserve, with a pause. Then requests
// are refused, until the directory can be deleted.
func TestNumbersAreUsedUp(t *testing.T) {
	hinder := map[string]func(v *locktest.Virtual, conn *zk.Conn) (end func()){
		"another child": func(v *locktest.Virtual, conn *zk.Conn) func() {
			_, err := conn.Create("/lock/child", nil, 0, zk.WorldACL(zk.PermAll))
			locktest.Must(v, err)
			return func() { locktest.Must(v, conn.Delete("/lock/child", -1)) }
		},
		"Curator": func(v *locktest.Virtual, conn *zk.Conn) func() {
			stop, stopped := make(chan struct{}), make(chan struct{})
			last := v.ForeignNode(conn, locktest.ForeignPrefixes["Curator"])
			go func() {
				defer close(stopped)
				for !locktest.IsClosed(stop) { // one is always there, and the first does not block for long
					next := v.ForeignNode(conn, locktest.ForeignPrefixes["Curator"])
					<-time.After(100 * time.Millisecond)
					last.Leave()
					last = next
				}
				last.Leave()
			}()
			return func() { close(stop); <-stopped }
		},
		"no right to delete": func(v *locktest.Virtual, conn *zk.Conn) func() {
			setRights := func(perms int32) { locktest.Must(v, locktest.ErrOf(conn.SetACL("/", zk.WorldACL(perms), -1))) }
			setRights(zk.PermAll &^ zk.PermDelete)
			return func() { setRights(zk.PermAll) }
		},
	}
	for name, hinder := range hinder {
		t.Run(name, func(t *testing.T) {
			locktest.Bubble(t, func(v *locktest.Virtual) {
				numbersBegin(v.Fixture, locktest.Recipe{}, nearEnd+5)
				end, conn := hinder(v, v.Client(v)), v.Client(v)
				mu := v.Mutex()
				for range 2 {
					locktest.Unlock(v, locktest.Lock(v, mu))
				}
				v.SetCreateCount("/lock", lastEntry)
				locktest.Unlock(v, locktest.Lock(v, mu)) // by the last node that the process creates
				for range 2 {
					_, err := mu.Lock(locktest.Within(v))
					locktest.Is(v, err, actors.ErrSequenceExhausted)
					locktest.ExpectParts(v, fmt.Sprint(err), "/lock", "sequence numbers")
				}
				if _, err := mu.Lock(locktest.Within(v), actors.Try()); name == "Curator" {
					locktest.Is(v, err, actors.ErrNotAcquired)
				} else {
					locktest.Is(v, err, actors.ErrSequenceExhausted)
				}
				if stat, _ := children(v, conn, "/lock"); name != "Curator" && stat > lastEntry+10 {
					v.Errorf("the count is %d", stat)
				}
				end()
				g := locktest.Lock(v, mu)
				if !strings.HasSuffix(g.Node(), "-0000000000") {
					v.Errorf("the numbers go on: %s", g.Node())
				}
				locktest.Unlock(v, g)
			})
		})
	}
}

// children returns how many children a node has had, and the present ones.
func children(t testing.TB, conn *zk.Conn, path string) (count int32, names []string) {
	t.Helper()
	names, stat, err := conn.Children(path)
	locktest.Must(t, err)
	return (stat.Cversion + stat.NumChildren) / 2, names
}

// A holder keeps its grant while the numbers run out, and becomes a reader. A lock-delay's held
// marker does not keep the directory from being deleted.
func TestHolderWhileNumbersRunOut(t *testing.T) {
	locktest.Bubble(t, func(v *locktest.Virtual) {
		numbersBegin(v.Fixture, locktest.Recipe{}, math.MaxInt32-1)
		rw, me := v.RWMutex(), actors.WithOwner("me")
		writer := locktest.Lock(v, rw.Write(), me)
		reader := locktest.Lock(v, rw.Read(), me)
		locktest.Unlock(v, writer)
		_, err := v.RWMutex().Read().Lock(locktest.Within(v))
		locktest.Is(v, err, actors.ErrSequenceExhausted) // it does not wait for ever
		locktest.Unlock(v, reader)
		locktest.Unlock(v, locktest.Lock(v, rw.Write()))
		numbersAreLow(v.Fixture, locktest.Recipe{})
	})
	locktest.Bubble(t, func(v *locktest.Virtual) {
		numbersBegin(v.Fixture, locktest.Recipe{}, nearEnd)
		delayed := locktest.Named("lock-delay")[0].At(v.Locks(), "/lock")
		g := locktest.Lock(v, delayed)
		next := delayed.Acquire(locktest.Within(v))
		locktest.Pending(v, next)
		locktest.Unlock(v, g)
		locktest.Unlock(v, locktest.Result(v, next))
		numbersAreLow(v.Fixture, locktest.Recipe{})
	})
}
