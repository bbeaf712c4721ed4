package remote_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/remote"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// A holder that releases when the server drains has released: it hears of no loss, though its client
// then leaves the server at once.
func TestUnlockWhileDraining(t *testing.T) {
	t.Parallel()
	zk := zktest.Embedded(t)
	for range 20 {
		s := serve(t, zk.Addr(), remote.ServerConfig{})
		locks := dial(t, s.addr)
		path := zk.Path(t)
		var releases []func() error
		for i := range 3 {
			g, err := locks.Mutex(fmt.Sprintf("%s/%d", path, i)).Lock(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			releases = append(releases, func() error { <-g.Revoked(); return g.Unlock(t.Context()) })
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		drained := make(chan error, 1)
		go func() { drained <- s.server.Drain(ctx, time.Minute) }()
		for _, release := range releases {
			if err := release(); err != nil {
				t.Error(err)
			}
		}
		if err := <-drained; err != nil {
			t.Error(err)
		}
		cancel()
	}
}

// A server without clients has drained, also if there is no time left.
func TestDrainWithoutClients(t *testing.T) {
	s := serve(t, zktest.Embedded(t).Addr(), remote.ServerConfig{})
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for range 50 {
		if err := s.server.Drain(over, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
}

// Close of a client says that the server has not confirmed the end, if it could not be told.
func TestCloseWithoutServer(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		f := newFabric(rand.New(rand.NewPCG(1, 1)))
		w := &world{T: t, fabric: f, zk: zktest.Virtual(t), began: time.Now(), names: []string{"server"}}
		w.startServer("server")
		for name, cut := range map[string]func(client string){
			"broken": func(client string) { w.set("server", nil); w.breakStreams(client, "") },
			"silent": func(client string) { w.cut(client, "server", time.Hour); w.cut("server", client, time.Hour) },
		} {
			l, err := remote.DialBy(t.Context(), w.dialer(name), w.names, remote.DialConfig{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := l.Mutex("/locks/0").Lock(t.Context()); err != nil {
				t.Fatal(err)
			}
			cut(name)
			<-time.After(100 * time.Millisecond) // virtual: the client learns that the stream is broken
			if err := l.Close(); err == nil || !strings.Contains(err.Error(), "has not confirmed") {
				t.Errorf("%s: Close: %v", name, err)
			}
			w.set("server", w.servers[0].server)
			<-time.After(2 * leaseTime) // until the server gives the lock back
		}
		w.closeServer(w.servers[0])
	})
}

// A Try does not wait until the client has left a draining server.
func TestTryWhileDraining(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		w := newWorld(t, 1, "server")
		w.startServer("server")
		l := w.dial("client", w.names)
		g := lockOf(t, l.Mutex("/held"))
		drained := make(chan error, 1)
		go func() { drained <- w.servers[0].server.Drain(context.Background(), time.Hour) }()
		<-g.Revoked()
		begun := time.Now()
		if g, err := l.Mutex("/free").Lock(t.Context(), actors.Try()); !errors.Is(err, actors.ErrSuspended) {
			t.Error(g, err)
		}
		if took := time.Since(begun); took > time.Second {
			t.Errorf("the Try has waited for %v", took)
		}
		if err := g.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-drained; err != nil {
			t.Error(err)
		}
		w.closeAll(l)
	})
}

// A client that leaves a draining server, of which it holds nothing, has lost nothing to warn of.
func TestLeaveADrainingServer(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		w := newWorld(t, 1, "first", "second")
		for _, name := range w.names {
			w.startServer(name)
		}
		var log bytes.Buffer
		l, err := remote.DialBy(t.Context(), w.dialer("client"), w.names, remote.DialConfig{Config: actors.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.servers[0].server.Drain(t.Context(), time.Second); err != nil {
			t.Fatal(err)
		}
		g := lockOf(t, l.Mutex("/a")) // of the second server
		if err := g.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if text := log.String(); strings.Contains(text, "level=WARN") || !strings.Contains(text, "second has granted a lease") {
			t.Error(text)
		}
		w.closeAll()
	})
}

// A holder that does not release while its server drains loses its lease in the end. Neither end says
// that the other has no connection.
func TestDrainEndsALease(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		w := newWorld(t, 1, "server")
		w.startServer("server")
		var log bytes.Buffer
		l, err := remote.DialBy(t.Context(), w.dialer("client"), w.names, remote.DialConfig{Config: actors.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}})
		if err != nil {
			t.Fatal(err)
		}
		g := lockOf(t, l.Mutex("/a"))
		if err := w.servers[0].server.Drain(t.Context(), time.Second); err != nil {
			t.Error(err)
		}
		if g.Err() == nil || l.Stats().Suspensions > 0 {
			t.Errorf("%v, %s", g.Err(), &log)
		}
		l.Close()
		w.closeServer(w.servers[0])
	})
}

// gated is a stream whose Send waits while its gate is shut.
type gated struct {
	remote.ClientTransport
	gate *gate
}

// gate is open until it is shut, and again once open is closed.
type gate struct {
	shut atomic.Bool
	open chan struct{}
}

// Send implements remote.ClientTransport.
func (g gated) Send(f *messages.ClientFrame) error {
	if g.gate.shut.Load() {
		<-g.gate.open
	}
	return g.ClientTransport.Send(f)
}

// endings are the ways in which a lock server ends.
var endings = map[string]func(*remote.LockServer) error{
	"drain": func(s *remote.LockServer) error { return s.Drain(context.Background(), time.Hour) },
	"close": (*remote.LockServer).Close,
}

// A client that leaves a server which ends tells it before of all that it has cancelled, also if
// these messages had to wait: no lock-delay begins.
func TestLeaveBehindACancel(t *testing.T) {
	t.Parallel()
	for name, end := range endings {
		t.Run(name, func(t *testing.T) { leaveBehindACancel(t, end) })
	}
}

func leaveBehindACancel(t *testing.T, end func(*remote.LockServer) error) {
	zktest.Bubble(t, func(t *testing.T) {
		w := newWorld(t, 1, "first", "second")
		for _, name := range w.names {
			w.startServer(name)
		}
		g, dialer := &gate{open: make(chan struct{})}, w.dialer("client")
		l, err := remote.DialBy(t.Context(), func(ctx context.Context, server string) (remote.ClientTransport, error) {
			stream, err := dialer(ctx, server)
			return gated{stream, g}, err
		}, w.names, remote.DialConfig{})
		if err != nil {
			t.Fatal(err)
		}
		delayed := actors.LockDelay(time.Minute)
		w.cut("first", "client", time.Minute)
		pending := l.Mutex("/a", delayed).Acquire(t.Context())
		<-time.After(100 * time.Millisecond) // virtual: the server has granted it
		g.shut.Store(true)
		var others []*actors.Future[*actors.Grant]
		for i := range 258 { // the first waits in Send, and the next ones fill a frame that waits for it
			others = append(others, l.Mutex(fmt.Sprintf("/other/%d", i)).Acquire(t.Context()))
			if i == 0 {
				<-time.After(time.Millisecond)
			}
		}
		pending.Cancel()
		ended := make(chan error, 1)
		go func() { ended <- end(w.servers[0].server) }()
		<-time.After(time.Millisecond)
		w.heal()
		<-time.After(200 * time.Millisecond) // the client hears of the end
		close(g.open)
		if err := <-ended; err != nil {
			t.Error(err)
		}
		begun := time.Now()
		got := []*actors.Grant{lockOf(t, l.Mutex("/a", delayed))}
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("a lock-delay has begun: the next acquire took %v", took)
		}
		for _, other := range others {
			o, err := other.Wait(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, o)
		}
		for _, g := range got {
			if err := g.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
		}
		w.closeAll(l)
	})
}

// A request that a server grants while its client leaves was never held: no lock-delay begins.
func TestLeaveAheadOfAGrant(t *testing.T) {
	t.Parallel()
	for name, end := range endings {
		t.Run(name, func(t *testing.T) {
			zktest.Bubble(t, func(t *testing.T) {
				w := newWorld(t, 1, "first", "second")
				for _, name := range w.names {
					w.startServer(name)
				}
				l, other := w.dial("client", w.names), w.dial("other", w.names[1:])
				delayed := actors.LockDelay(time.Minute)
				held := lockOf(t, other.Mutex("/a", delayed))
				pending := l.Mutex("/a", delayed).Acquire(t.Context())
				<-time.After(100 * time.Millisecond)
				w.cut("client", "first", time.Second)
				ended := make(chan error, 1)
				go func() { ended <- end(w.servers[0].server) }()
				<-time.After(100 * time.Millisecond) // the client hears of the end
				begun := time.Now()
				if err := held.Unlock(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := <-ended; err != nil {
					t.Error(err)
				}
				if _, err := pending.Wait(t.Context()); err != nil {
					t.Error(err)
				}
				if took := time.Since(begun); took > 10*time.Second {
					t.Errorf("a lock-delay has begun: the lock was granted after %v", took)
				}
				w.closeAll(l, other)
			})
		})
	}
}

// A client that closes while it leaves a server tells the server so before it ends.
func TestCloseWhileLeaving(t *testing.T) {
	t.Parallel()
	for name, end := range endings {
		t.Run(name, func(t *testing.T) {
			zktest.Bubble(t, func(t *testing.T) {
				w := newWorld(t, 1, "server")
				w.startServer("server")
				l := w.dial("client", w.names)
				ended := make(chan error, 1)
				begun := time.Now()
				go func() { ended <- end(w.servers[0].server) }()
				for now := range l.Sessions(t.Context()) {
					if now.State == messages.SessionState_LOST {
						break
					}
				}
				if err := l.Close(); err != nil {
					t.Error(err)
				}
				if err := <-ended; err != nil {
					t.Error(err)
				}
				if took := time.Since(begun); took > time.Second {
					t.Errorf("the server has waited for %v", took)
				}
				w.closeServer(w.servers[0])
			})
		})
	}
}

// Close of a server that has lost its session ends when all clients have let go: once they have heard
// of the loss, or at the end of the lease of one that is cut off.
func TestCloseAfterALostSession(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(w *world){
		"told": func(*world) {},
		"broken stream": func(w *world) { // the client hears of the loss when it wants to resume
			w.cut("server", "client", 400*time.Millisecond)
			time.AfterFunc(300*time.Millisecond, func() { w.breakStreams("client", "") })
		},
		"cut off": func(w *world) { w.cut("server", "client", time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			zktest.Bubble(t, func(t *testing.T) {
				w := newWorld(t, 1, "server")
				w.startServer("server")
				l := w.dial("client", w.names)
				g := lockOf(t, l.Mutex("/a"))
				until, cut := l.Session().Deadline, name == "cut off"
				fault(w)
				w.zk.Expire(t, w.servers[0].locks.Session().ID)
				<-time.After(time.Second)
				if held := g.Err() == nil; held != cut {
					t.Errorf("a second after the loss: %v", g.Err())
				}
				begun := time.Now()
				if err := w.servers[0].server.Close(); err != nil {
					t.Error(err)
				}
				if took := time.Since(begun); !cut && took > time.Second {
					t.Errorf("Close has waited for %v", took)
				}
				if left := time.Until(until); cut && left > 0 {
					t.Errorf("Close has ended, and the client may believe for %v", left)
				}
				w.heal()
				l.Close()
				w.closeServer(w.servers[0])
			})
		})
	}
}
