package remote_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/remote"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// A client whose server is cut off has a lease of the next one soon after its own is over, though its
// attempts to reach the first had no answer.
func TestFailoverOfASilentServer(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		zktest.Bubble(t, func(t *testing.T) {
			w := newWorld(t, seed, "server", "second")
			for _, server := range w.names {
				w.startServer(server)
			}
			l := w.dial("client", w.names)
			g := lockOf(t, l.Mutex("/lock"))
			w.cut("server", "client", time.Hour)
			w.cut("client", "server", time.Hour)
			<-g.Done()
			begun := time.Now()
			lockOf(t, l.Mutex("/other"))
			if took := time.Since(begun); took > 6*time.Second {
				t.Errorf("the next server has granted a lock %v after the loss of the first", took)
			}
			w.heal()
			if err := l.Close(); err != nil {
				t.Error(err)
			}
			<-time.After(2 * leaseTime)
			w.closeAll()
		})
	}
}

// A client whose server ends for good before it has granted a lease goes on to the next one.
func TestFailoverBeforeTheLease(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		w := newWorld(t, 1, "second")
		w.startServer("second")
		began, dialSecond := false, w.dialer("client")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		l, err := remote.DialBy(ctx, func(ctx context.Context, server string) (remote.ClientTransport, error) {
			switch {
			case server == "second":
				return dialSecond(ctx, server)
			case began:
				return nil, errors.New("connection refused")
			}
			began = true
			return &welcomeOnly{}, nil
		}, []string{"first", "second"}, remote.DialConfig{Config: actors.Config{Logger: w.logger("")}})
		if err != nil {
			t.Fatal(err)
		}
		lockOf(t, l.Mutex("/lock"))
		w.closeAll(l)
	})
}

// welcomeOnly is a stream that ends behind its Welcome.
type welcomeOnly struct{ welcomed bool }

// Send implements remote.ClientTransport.
func (*welcomeOnly) Send(*messages.ClientFrame) error { return nil }

// CloseSend implements remote.ClientTransport.
func (*welcomeOnly) CloseSend() error { return nil }

// Recv implements remote.ClientTransport.
func (s *welcomeOnly) Recv() (*messages.ServerFrame, error) {
	if s.welcomed {
		return nil, errors.New("connection reset")
	}
	s.welcomed = true
	return &messages.ServerFrame{Welcome: &messages.Welcome{Lease: 1, Incarnation: 1, State: &messages.State{Connected: true}}}, nil
}

// A client keeps its grants of a server that SetServers has dropped, also over a broken stream. It goes
// on to the next server when it holds nothing.
func TestDroppedServer(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		names := []string{"first:7400", "second:7400"}
		w := newWorld(t, 1, names...)
		for _, name := range names {
			w.startServer(name)
		}
		l := w.dial("client", names[:1])
		g := lockOf(t, l.Mutex("/lock"))
		if err := l.SetServers(names[1]); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Second)
		w.breakStreams("client", "")
		<-time.After(3 * leaseTime)
		if err := g.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		lockOf(t, l.Mutex("/lock"))
		if n := w.servers[1].server.Clients(); n != 1 {
			t.Errorf("the next server has %d clients", n)
		}
		w.closeAll(l)
	})
}
