package actors_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Sequence numbers reach their end, where several nodes get one number, so that Curator, kazoo and zk.Lock
// let two contenders hold. Here clients hold in the order of arrival, one at a time. The numbers begin at 0
// again when the queue is empty.
func TestSequenceOverflow(t *testing.T) {
	const clients, rounds = 4, 30
	s := zktest.Embedded(t)
	conn := s.Client(t)
	for _, path := range []string{"/locks", "/locks/end"} {
		_, err := conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
		must(t, err)
	}
	s.SetCreateCount(t, "/locks/end", math.MaxInt32-20)
	var g errgroup.Group
	inside, token, again := 0, actors.Token{}, false
	for range clients {
		mu := connect(t, s.Addr()).Mutex("/locks/end")
		g.Go(func() error {
			for range rounds {
				grant, err := mu.Lock(within(t))
				if err != nil {
					return err
				}
				inside++ // the race detector checks this
				if inside != 1 || grant.Token().Compare(token) <= 0 {
					return fmt.Errorf("%d inside, token %v after %v", inside, grant.Token(), token)
				}
				token, again = grant.Token(), again || grant.Node()[len(grant.Node())-10:] < "1000000000"
				inside--
				if err := grant.Unlock(within(t)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	must(t, g.Wait())
	if exists, _, err := conn.Exists("/locks/end"); err != nil || exists && !again {
		t.Errorf("the directory was not made again: %v", err)
	}
}

// In a directory whose numbers are used up, requests wait for the contenders of other libraries in the order
// of creation.
func TestSequenceOverflowBesideOthers(t *testing.T) {
	s := zktest.Embedded(t)
	conn := s.Client(t)
	_, err := conn.Create("/end", nil, 0, zk.WorldACL(zk.PermAll))
	must(t, err)
	s.SetCreateCount(t, "/end", math.MaxInt32)
	foreign := func() string {
		path, err := conn.Create("/end/"+foreignPrefixes["Curator"][:38]+"f-lock-", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
		must(t, err)
		return path
	}
	first := foreign()
	mu := connect(t, s.Addr()).Mutex("/end")
	f := mu.Acquire(within(t))
	_, err = connect(t, s.Addr()).Mutex("/end").Lock(within(t), actors.Try())
	is(t, err, actors.ErrNotAcquired)
	pending(t, f)
	must(t, conn.Delete(first, -1))
	g := result(t, f)
	second := foreign()
	next := mu.Acquire(within(t))
	unlock(t, g)
	_, err = mu.Lock(within(t), actors.Try())
	is(t, err, actors.ErrNotAcquired)
	pending(t, next)
	must(t, conn.Delete(second, -1))
	unlock(t, result(t, next))
}

// The last contender cannot delete the directory, which has another node. Its own node is deleted
// nevertheless.
func TestSequenceOverflowBesideAnotherNode(t *testing.T) {
	s := zktest.Embedded(t).Embedded()
	conn, _, err := zk.Connect([]string{s.Addr()}, session, zk.WithLogInfo(false))
	must(t, err)
	defer conn.Close()
	for _, path := range []string{"/end", "/end/other"} {
		_, err = conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
		must(t, err)
	}
	s.SetCreateCount("/end", math.MaxInt32)
	mu := connect(t, s.Addr()).Mutex("/end")
	for range 2 {
		unlock(t, lock(t, mu))
		names, _, err := conn.Children("/end")
		if err != nil || len(names) != 1 {
			t.Errorf("there are %v, %v", names, err)
		}
	}
}
