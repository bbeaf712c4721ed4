package zkbridge

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// checkClose closes a bridge and checks that this is done. How long it may take is measured
// in virtual time, by TestCloseUnanswered and TestPauseEndsWithClose.
func checkClose(t *testing.T, b *Bridge, clean bool) {
	t.Helper()
	if err := b.Close(); (err == nil) != clean {
		t.Errorf("Close: %v", err)
	}
	if err := b.Connected(context.Background()); !errors.Is(err, messages.Reason_CLOSED) {
		t.Errorf("Connected after Close: %v", err)
	}
	if b.Session().State != messages.SessionState_SHUT {
		t.Errorf("is %+v", b.Session())
	}
	b.Close()
}

func TestCloseInEachState(t *testing.T) {
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		t.Run("at once", func(t *testing.T) {
			checkClose(t, open(t, Config{Servers: s.Addr()}), true)
		})
		t.Run("connected, and busy", func(t *testing.T) {
			u, dir := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t)
			for range 200 {
				u.create(dir, "n-")
			}
			checkClose(t, u.bridge, true)
			if names := s.Nodes(t, dir); len(names) != 0 {
				t.Errorf("left: %v", names)
			}
			for answered := 0; answered < 200; answered++ {
				if m, ok := (<-u.inbox).(*messages.Failed); ok && m.GetReason() != messages.Reason_CLOSED {
					t.Errorf("%v", m)
				}
			}
		})
		t.Run("suspended", func(t *testing.T) {
			proxy := zktest.Proxy(t, s.Addr())
			u, dir := newUser(t, connected(t, Config{Servers: proxy.Addr()})), s.Path(t)
			u.subscribe()
			u.created(dir, "n-")
			proxy.Refuse(true)
			proxy.Cut()
			state(t, u.peer, messages.SessionState_SUSPENDED)
			for range 100 {
				u.create(dir, "n-")
			}
			checkClose(t, u.bridge, false)
			for range 100 {
				next[*messages.Failed](t, u.peer)
			}
		})
		t.Run("black hole", func(t *testing.T) {
			proxy := zktest.Proxy(t, s.Addr())
			u, dir := newUser(t, connected(t, Config{Servers: proxy.Addr()})), s.Path(t)
			u.created(dir, "n-")
			proxy.BlackHole(true)
			for range 100 {
				u.create(dir, "n-")
			}
			checkClose(t, u.bridge, false)
		})
		t.Run("lost", func(t *testing.T) {
			proxy := zktest.Proxy(t, s.Addr())
			u := newUser(t, connected(t, Config{Servers: proxy.Addr(), SessionTimeout: time.Second}))
			u.subscribe()
			proxy.BlackHole(true)
			state(t, u.peer, messages.SessionState_LOST)
			checkClose(t, u.bridge, true)
		})
	})
}

func TestPanic(t *testing.T) {
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		b := connected(t, Config{Servers: s.Addr()})
		u, dir := newUser(t, b), s.Path(t)
		u.subscribe()
		u.created(dir, "n-")
		for range 10 {
			u.create(dir, "n-")
		}
		b.ref.Tell(task(func(c *core) {
			c.ep.reads.do(func() func() { panic("oops") })
		}))
		m := state(t, u.peer, messages.SessionState_SHUT)
		if !strings.Contains(m.GetDetail(), "oops") {
			t.Errorf("%v", m)
		}
		<-b.gone
		if names := s.Nodes(t, dir); len(names) != 0 {
			t.Errorf("left: %v", names)
		}
		if err := b.Connected(context.Background()); !errors.Is(err, messages.Reason_INTERNAL) || !strings.Contains(err.Error(), "oops") {
			t.Errorf("%v", err)
		}
		u.create(dir, "late-")
		next[*messages.Failed](t, u.peer)
		must(t, b.Close())
	})
}

// TestSystemClosedFirst closes things in the wrong order.
func TestSystemClosedFirst(t *testing.T) {
	s := zktest.Embedded(t)
	system := host.NewSystem(nil, nil)
	b, err := Open(system, Config{Servers: s.Addr(), SessionTimeout: time.Second})
	must(t, err)
	must(t, b.Connected(context.Background()))
	system.Close()
	b.Close() // may fail, must return
	<-b.gone
}

// TestCloseUnanswered closes a session with nobody who confirms that.
func TestCloseUnanswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := embedded.Run(t, embedded.Config{MemoryOnly: true})
		b := connected(t, Config{Servers: "embedded:1", SessionTimeout: 20 * time.Second, Dial: dialEmbedded(s)})
		s.Pause()
		begun := time.Now()
		if err := b.Close(); err == nil {
			t.Error("no server has confirmed that")
		}
		if took := time.Since(begun); took > b.cfg.connect+time.Second {
			t.Errorf("Close took %v", took)
		}
	})
}
