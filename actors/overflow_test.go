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

// Sequence numbers come to their end. There several nodes get one number, and Curator,
// kazoo and zk.Lock let two contenders hold. Here clients hold in the order of arrival, one at a time.
// The numbers begin anew when the last one leaves.
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
	inside, token, anew := 0, actors.Token{}, false
	for range clients {
		mu := connect(t, s.Addr()).Mutex("/locks/end")
		g.Go(func() error {
			for range rounds {
				grant, err := mu.Lock(within(t))
				if err != nil {
					return err
				}
				inside++ // the race detector looks on
				if inside != 1 || grant.Token().Compare(token) <= 0 {
					return fmt.Errorf("%d inside, token %v after %v", inside, grant.Token(), token)
				}
				token, anew = grant.Token(), anew || grant.Node()[len(grant.Node())-10:] < "1000000000"
				inside--
				if err := grant.Unlock(within(t)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	must(t, g.Wait())
	if exists, _, err := conn.Exists("/locks/end"); err != nil || exists && !anew {
		t.Errorf("the directory was not made anew: %v", err)
	}
}

// In a directory whose numbers are used up, contenders of others are waited for in the
// order of their creation.
func TestSequenceOverflowBesideOthers(t *testing.T) {
	s := zktest.Embedded(t)
	conn := s.Client(t)
	_, err := conn.Create("/end", nil, 0, zk.WorldACL(zk.PermAll))
	must(t, err)
	s.SetCreateCount(t, "/end", math.MaxInt32)
	rival := func() string {
		path, err := conn.Create("/end/"+foreignPrefixes["Curator"][:38]+"f-lock-", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
		must(t, err)
		return path
	}
	first := rival()
	mu := connect(t, s.Addr()).Mutex("/end")
	f := mu.Acquire(within(t))
	_, err = connect(t, s.Addr()).Mutex("/end").Lock(within(t), actors.Try())
	is(t, err, actors.ErrNotAcquired)
	pending(t, f)
	must(t, conn.Delete(first, -1))
	g := result(t, f)
	second := rival()
	next := mu.Acquire(within(t))
	unlock(t, g)
	_, err = mu.Lock(within(t), actors.Try())
	is(t, err, actors.ErrNotAcquired)
	pending(t, next)
	must(t, conn.Delete(second, -1))
	unlock(t, result(t, next))
}

// The last one cannot take the directory with it, in which there is something else. Its own
// node goes nevertheless.
func TestSequenceOverflowBesideSomethingElse(t *testing.T) {
	s := zktest.Embedded(t).Embedded()
	conn, _, err := zk.Connect([]string{s.Addr()}, session, zk.WithLogInfo(false))
	must(t, err)
	defer conn.Close()
	for _, path := range []string{"/end", "/end/else"} {
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
