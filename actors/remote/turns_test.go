package remote_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/sample"
	"github.com/actorlock/actorlock/actors/remote"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// slowConn is a connection to a server whose answers take a time.
type slowConn struct{ net.Conn }

const answerTime = 50 * time.Millisecond

func (c slowConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	<-time.After(answerTime)
	return n, err
}

// turns are two clients of a lock server whose ZooKeeper takes a time to answer.
type turns struct {
	zk             *zktest.Server
	fabric         *fabric
	greedy, honest *actors.Locks
	close          func()
}

func newTurns(t *testing.T) *turns {
	t.Helper()
	return newTurnsBy(t, nil, actors.Config{})
}

// newTurnsBy is newTurns with frames of the server that are altered, unless alter is nil, and a configuration of
// the clients.
func newTurnsBy(t *testing.T, alter func(*messages.ServerFrame), cfg actors.Config) *turns {
	t.Helper()
	zk := zktest.Virtual(t)
	own, err := actors.Connect(t.Context(), zk.Addr(), actors.Config{SessionTimeout: sessionTimeout, Margin: sessionMargin, OmitHolder: true,
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := zk.Dial(ctx, network, address)
			return slowConn{c}, err
		}})
	if err != nil {
		t.Fatal(err)
	}
	server, err := remote.NewServer(own, remote.ServerConfig{Lease: leaseTime})
	if err != nil {
		t.Fatal(err)
	}
	f := newFabric(rand.New(rand.NewPCG(1, 2)))
	f.set("server", server)
	f.alter = alter
	f.slow(time.Nanosecond, false) // at most: a frame waits for the one before, and thousands of messages may be in as many frames
	connect := func(name string) *actors.Locks {
		l, err := remote.DialBy(t.Context(), f.dialer(name), []string{"server"}, remote.DialConfig{Config: cfg})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	s := &turns{zk: zk, fabric: f, greedy: connect("greedy"), honest: connect("honest")}
	s.close = func() {
		for _, close := range []func() error{s.greedy.Close, s.honest.Close, server.Close, own.Close} {
			if err := close(); err != nil {
				t.Error(err)
			}
		}
	}
	return s
}

// A client asks for thousands of locks at one moment. ZooKeeper makes the node of another client's lock
// before most of these, and a cancel or a release of the first client does not wait for them.
func TestTurnsOfClients(t *testing.T) {
	zktest.Bubble(t, func(t *testing.T) {
		s := newTurns(t)
		greedy, honest := s.greedy, s.honest
		first := lockOf(t, greedy.Mutex("/first"))

		const locks, cancelled, turns = 2000, 500, 3 * 256
		ctx, cancel := context.WithCancel(t.Context())
		var all, tail []*actors.Future[*actors.Grant]
		for i := range locks {
			all = append(all, greedy.Mutex(fmt.Sprintf("/flood/%d", i)).Acquire(t.Context()))
		}
		for i := range cancelled {
			tail = append(tail, greedy.Mutex(fmt.Sprintf("/cancelled/%d", i)).Acquire(ctx))
		}
		<-time.After(answerTime / 2) // so that the lock server has them all
		cancel()
		if err := first.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		if granted := countGranted(all); granted >= locks/2 {
			t.Errorf("%d of %d locks are granted before the release of another one", granted, locks)
		}
		before := countGranted(all)
		g := lockOf(t, honest.Mutex("/honest"))
		earlier := 0
		for _, f := range all {
			other, err := f.Wait(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if other.Token().Compare(g.Token()) < 0 {
				earlier++
			}
			other.Release()
		}
		for _, f := range tail {
			if _, err := f.Wait(t.Context()); !errors.Is(err, context.Canceled) {
				t.Errorf("a lock that was cancelled: %v", err)
			}
		}
		if earlier > before+turns {
			t.Errorf("%d of %d nodes came before that of the other client's lock, which was asked for after %d were granted", earlier, locks, before)
		}
		g.Release()
		s.close()
		if nodes := s.zk.Nodes(t, "/cancelled/499"); len(nodes) > 0 {
			t.Errorf("a lock that was cancelled has nodes: %v", nodes)
		}
	})
}

// A client gives thousands of locks back at one moment: by releases, or by the end of its lease. The
// lock and the unlock of another client do not wait until most of the nodes are gone.
func TestTurnsOfReleases(t *testing.T) {
	sample.OneRaceRunIn(t, 4)
	const locks, sampled = 3000, 20
	next := sample.HabitOneIn(t, 20)
	for _, byEnd := range []bool{false, true} {
		if !next() {
			continue
		}
		t.Run(fmt.Sprintf("end=%v", byEnd), func(t *testing.T) {
			zktest.Bubble(t, func(t *testing.T) {
				s := newTurns(t)
				path := func(i int) string { return fmt.Sprintf("/flood/%d", i) }
				left := func() (n int) { // of the sampled locks
					for i := 0; i < locks; i += locks / sampled {
						n += len(s.zk.Nodes(t, path(i)))
					}
					return n
				}
				var pending []*actors.Future[*actors.Grant]
				for i := range locks {
					pending = append(pending, s.greedy.Mutex(path(i)).Acquire(t.Context()))
				}
				var held []*actors.Grant
				for _, f := range pending {
					g, err := f.Wait(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					held = append(held, g)
				}
				var released []*actors.Future[struct{}]
				if byEnd {
					first := s.honest.Mutex(path(0)).Acquire(t.Context())
					s.fabric.cut("greedy", "server", time.Hour)
					g, err := first.Wait(t.Context()) // the lease has ended
					if err != nil {
						t.Fatal(err)
					}
					defer g.Release()
				} else {
					for _, g := range held {
						released = append(released, g.Release())
					}
					<-time.After(answerTime / 2) // so that the lock server has them all
				}
				g := lockOf(t, s.honest.Mutex("/honest"))
				if n := left(); n < sampled/2 {
					t.Errorf("%d of %d nodes were left when another client's lock was granted", n, sampled)
				}
				if err := g.Unlock(t.Context()); err != nil {
					t.Error(err)
				}
				if n := left(); n < sampled/5 {
					t.Errorf("%d of %d nodes were left when another client's lock was released", n, sampled)
				}
				s.fabric.heal()
				for _, f := range released {
					if _, err := f.Wait(t.Context()); err != nil {
						t.Error(err)
					}
				}
				s.close()
				if n := left(); n > 0 {
					t.Errorf("%d of %d nodes are left at the end", n, sampled)
				}
			})
		})
	}
}

func countGranted(all []*actors.Future[*actors.Grant]) (n int) {
	for _, f := range all {
		select {
		case <-f.Done():
			n++
		default:
		}
	}
	return n
}
