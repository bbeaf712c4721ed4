package actors_test

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
func (b *testLock) numbersBegin(r recipe, count int32) {
	b.Helper()
	for _, end := range r.directoryEnds() {
		conn := b.Client(b) // the requests of one that SetCreateCount has cut may fail
		directory := b.path + end
		for _, p := range []string{path.Dir(directory), directory} {
			if _, err := conn.Create(p, nil, 0, zk.WorldACL(zk.PermAll)); err != nil && !errors.Is(err, zk.ErrNodeExists) {
				b.Fatal(err)
			}
		}
		b.SetCreateCount(b.T, directory, count)
	}
}

// numbersAreLow checks that the directories of a recipe were deleted and perhaps made again.
func (b *testLock) numbersAreLow(r recipe) {
	b.Helper()
	conn := b.Client(b)
	for _, end := range r.directoryEnds() {
		node, err := conn.Create(b.path+end+"/n-", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
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
func (b *testLock) passTheEnd(r recipe, count int32) {
	b.numbersBegin(r, count)
	exclusive := slices.ContainsFunc(exclusive(), func(e recipe) bool { return e.name == r.name })
	inside, token := 0, actors.Token{}
	var g errgroup.Group
	for range 3 {
		mu := r.at(b.locks(), b.path)
		g.Go(func() error {
			for range 10 {
				grant, err := mu.Lock(within(b), r.options...)
				for r.permits > 1 && errors.Is(err, actors.ErrSequenceExhausted) {
					grant, err = mu.Lock(within(b), r.options...) // one of its leases had the last number, and had to wait for the other
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
				if err := grant.Unlock(within(b)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	must(b, g.Wait())
	if !strings.HasPrefix(r.name, "local") { // a local queue needs too few nodes
		b.numbersAreLow(r)
	}
}

// A run by habit has a fifth of the cases.
func TestEndOfNumbers(t *testing.T) {
	sampled := sample.OneIn(t, 5)
	for _, r := range recipes {
		for _, count := range []int32{nearEnd - 3, lastEntry - 3, math.MaxInt32 - 3, math.MaxInt32, math.MinInt32} {
			if sampled() {
				t.Run(fmt.Sprint(r.name, count), func(t *testing.T) {
					bubble(t, func(v *virtual) { v.passTheEnd(r, count) })
				})
			}
		}
	}
}

func TestEndOfNumbersOnZooKeeper(t *testing.T) {
	t.Parallel()
	for _, r := range named("mutex", "semaphore") {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			lockOn(t, zktest.Own(t)).passTheEnd(r, math.MaxInt32-3)
		})
	}
}

// While a holder stays, requests of all processes wait outside the queue. The first of them that
// hears that it has left deletes the directory.
func TestProcessesWaitOutside(t *testing.T) {
	bubble(t, func(v *virtual) {
		v.numbersBegin(recipe{}, nearEnd)
		g := lock(v, v.mutex())
		var futures []*actors.Future[*actors.Grant]
		for range 3 {
			mu := v.mutex()
			unknowing := mu.Acquire(within(v)) // the process learns the numbers by its first node
			v.waitNodes(2)
			unknowing.Cancel()
			v.waitNodes(1)
			for range 3 {
				futures = append(futures, mu.Acquire(within(v)))
			}
		}
		pending(v, futures...)
		v.waitNodes(1)
		unlock(v, g)
		for _, f := range futures {
			go func() {
				if g, err := f.Result(); err == nil {
					g.Release()
				}
			}()
		}
		for _, f := range futures {
			node := result(v, f).Node()
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
	hinder := map[string]func(v *virtual, conn *zk.Conn) (end func()){
		"another child": func(v *virtual, conn *zk.Conn) func() {
			_, err := conn.Create("/lock/child", nil, 0, zk.WorldACL(zk.PermAll))
			must(v, err)
			return func() { must(v, conn.Delete("/lock/child", -1)) }
		},
		"Curator": func(v *virtual, conn *zk.Conn) func() {
			stop, stopped := make(chan struct{}), make(chan struct{})
			last := v.foreignNode(conn, foreignPrefixes["Curator"])
			go func() {
				defer close(stopped)
				for !isClosed(stop) { // one is always there, and the first does not block for long
					next := v.foreignNode(conn, foreignPrefixes["Curator"])
					<-time.After(100 * time.Millisecond)
					last.leave()
					last = next
				}
				last.leave()
			}()
			return func() { close(stop); <-stopped }
		},
		"no right to delete": func(v *virtual, conn *zk.Conn) func() {
			setRights := func(perms int32) { must(v, errOf(conn.SetACL("/", zk.WorldACL(perms), -1))) }
			setRights(zk.PermAll &^ zk.PermDelete)
			return func() { setRights(zk.PermAll) }
		},
	}
	for name, hinder := range hinder {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(v *virtual) {
				v.numbersBegin(recipe{}, nearEnd+5)
				end, conn := hinder(v, v.Client(v)), v.Client(v)
				mu := v.mutex()
				for range 2 {
					unlock(v, lock(v, mu))
				}
				v.SetCreateCount("/lock", lastEntry)
				unlock(v, lock(v, mu)) // by the last node that the process creates
				for range 2 {
					_, err := mu.Lock(within(v))
					is(v, err, actors.ErrSequenceExhausted)
					contains(v, fmt.Sprint(err), "/lock", "sequence numbers")
				}
				if _, err := mu.Lock(within(v), actors.Try()); name == "Curator" {
					is(v, err, actors.ErrNotAcquired)
				} else {
					is(v, err, actors.ErrSequenceExhausted)
				}
				if stat, _ := children(v, conn, "/lock"); name != "Curator" && stat > lastEntry+10 {
					v.Errorf("the count is %d", stat)
				}
				end()
				g := lock(v, mu)
				if !strings.HasSuffix(g.Node(), "-0000000000") {
					v.Errorf("the numbers go on: %s", g.Node())
				}
				unlock(v, g)
			})
		})
	}
}

// children returns how many children a node has had, and the present ones.
func children(t testing.TB, conn *zk.Conn, path string) (count int32, names []string) {
	t.Helper()
	names, stat, err := conn.Children(path)
	must(t, err)
	return (stat.Cversion + stat.NumChildren) / 2, names
}

// A holder keeps its grant while the numbers run out, and becomes a reader. A lock-delay's held
// marker does not keep the directory from being deleted.
func TestHolderWhileNumbersRunOut(t *testing.T) {
	bubble(t, func(v *virtual) {
		v.numbersBegin(recipe{}, math.MaxInt32-1)
		rw, me := v.rw(), actors.WithOwner("me")
		writer := lock(v, rw.Write(), me)
		reader := lock(v, rw.Read(), me)
		unlock(v, writer)
		_, err := v.rw().Read().Lock(within(v))
		is(v, err, actors.ErrSequenceExhausted) // it does not wait for ever
		unlock(v, reader)
		unlock(v, lock(v, rw.Write()))
		v.numbersAreLow(recipe{})
	})
	bubble(t, func(v *virtual) {
		v.numbersBegin(recipe{}, nearEnd)
		delayed := named("lock-delay")[0].at(v.locks(), "/lock")
		g := lock(v, delayed)
		next := delayed.Acquire(within(v))
		pending(v, next)
		unlock(v, g)
		unlock(v, result(v, next))
		v.numbersAreLow(recipe{})
	})
}
