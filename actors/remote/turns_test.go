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
	"github.com/actorlock/actorlock/actors/remote"
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

// A client asks for thousands of locks at one moment. ZooKeeper makes the node of another client's lock
// before most of these, and cancels and releases of the first client wait for no turn.
func TestTurnsOfClients(t *testing.T) {
	zktest.Bubble(t, func(t *testing.T) {
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
		connect := func(name string) *actors.Locks {
			l, err := remote.DialBy(t.Context(), f.dialer(name), []string{"server"}, remote.DialConfig{})
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		greedy, honest := connect("greedy"), connect("honest")
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
		for _, l := range []*actors.Locks{greedy, honest} {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}
		if nodes := zk.Nodes(t, "/cancelled/499"); len(nodes) > 0 {
			t.Errorf("a lock that was cancelled has nodes: %v", nodes)
		}
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		if err := own.Close(); err != nil {
			t.Error(err)
		}
	})
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
