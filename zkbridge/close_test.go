package zkbridge

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/internal/epoch"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// checkClose closes a bridge and checks that it is closed. TestCloseUnanswered and
// TestPauseEndsWithClose measure, in virtual time, how long that may take.
func checkClose(t *testing.T, b *internals, clean bool) {
	t.Helper()
	if err := b.Close(); (err == nil) != clean {
		t.Errorf("Close: %v", err)
	}
	if err := b.Connected(context.Background()); !errors.Is(err, messages.Reason_CLOSED) {
		t.Errorf("Connected after Close: %v", err)
	}
	if b.Session().State != messages.SessionState_ENDED {
		t.Errorf("is %+v", b.Session())
	}
	b.Close()
}

func TestCloseInEachState(t *testing.T) {
	t.Parallel()
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
				if m, ok := (<-u.mailbox).(*messages.Failed); ok && m.GetReason() != messages.Reason_CLOSED {
					t.Errorf("%v", m)
				}
			}
		})
		t.Run("suspended", func(t *testing.T) {
			proxy := zktest.Proxy(t, s.Addr())
			u, dir := newUser(t, connected(t, Config{Servers: proxy.Addr()})), s.Path(t)
			u.subscribe()
			u.created(dir, "n-")
			u.cutOff(proxy)
			for range 100 {
				u.create(dir, "n-")
			}
			checkClose(t, u.bridge, false)
			for range 100 {
				next[*messages.Failed](u)
			}
		})
		t.Run("lost", func(t *testing.T) {
			proxy := zktest.Proxy(t, s.Addr())
			b := connected(t, Config{Servers: proxy.Addr()})
			proxy.BlackHole(true)
			b.runInActor(func(a *bridgeActor) { a.OnSessionEvent(epoch.GivenUp, "lost for the test") })
			checkClose(t, b, true)
		})
	})
}

// panicInActor stops the bridge by a panic of its actor.
func (b *internals) panicInActor() {
	b.ref.Tell(task(func(c *bridgeActor) {
		c.epoch.Jobs().Reads.AddBlocking(func() func() { panic("oops") })
	}))
}

// A failed bridge reports its end to all subscribers at once, and closes its session when the
// margin has passed.
func TestPanic(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		const margin = 500 * time.Millisecond
		b := connected(t, Config{Servers: s.Addr(), Margin: margin})
		u, dir := newUser(t, b), s.Path(t)
		u.subscribe()
		u.created(dir, "n-")
		for range 10 {
			u.create(dir, "n-")
		}
		begun := time.Now()
		b.panicInActor()
		m := u.waitState(messages.SessionState_ENDED)
		if !strings.Contains(m.GetDetail(), "oops") {
			t.Errorf("%v", m)
		}
		if !b.Lost(1) {
			t.Error("the epoch does not count as lost")
		}
		waitNodes(t, s, dir, 0)
		if took := time.Since(begun); took < margin {
			t.Errorf("the session is closed after %v", took)
		}
		<-b.ended
		if err := b.Connected(context.Background()); !errors.Is(err, messages.Reason_INTERNAL) || !strings.Contains(err.Error(), "oops") {
			t.Errorf("%v", err)
		}
		u.create(dir, "late-")
		next[*messages.Failed](u)
		must(t, b.Close())
	})
}

// The session of a bridge that has failed lives for the margin and not longer, whatever
// becomes of its connection meanwhile.
func TestPanicKeepsSession(t *testing.T) {
	t.Parallel()
	for _, meanwhile := range []string{"nothing", "reconnects", "closed", "expires", "unreachable", "subscriber panics"} {
		t.Run(meanwhile, func(t *testing.T) {
			zktest.Bubble(t, func(t *testing.T) { testPanicKeepsSession(t, meanwhile) })
		})
	}
}

func testPanicKeepsSession(t *testing.T, meanwhile string) {
	const timeout, margin = 6 * time.Second, 2500 * time.Millisecond
	s := embedded.Run(t, embedded.ServerConfig{MemoryOnly: true, TickTime: 100 * time.Millisecond, MaxSessionTimeout: timeout})
	var log bridgeLog
	b := connected(t, log.config(t, Config{Servers: "embedded:1", SessionTimeout: timeout, Margin: margin, Dial: s.Dial}))
	subscriberPanics := 0
	if meanwhile == "subscriber panics" { // at ENDED, and not at CONNECTED
		subscriber := &panickingRecipient{mailbox: make(mailbox, 100)}
		subscriber.takes.Store(1)
		b.Ref().SendSubscribe(&messages.Subscribe{}, subscriber)
		subscriberPanics = 1
	}
	u := newUser(t, b)
	u.subscribe()
	u.waitState(messages.SessionState_CONNECTED)
	b.panicInActor()
	u.waitState(messages.SessionState_ENDED)
	begun := time.Now()
	shortest, longest := margin, margin+time.Second
	time.Sleep(margin / 5) // virtual
	switch meanwhile {
	case "reconnects":
		s.DropConnections()
	case "closed":
		must(t, b.Close())
		shortest = 0
	case "expires":
		s.Expire(s.Sessions()[0].ID)
		shortest = 0
	case "unreachable":
		s.Inject(embedded.Fault{Op: embedded.OpDial, Action: embedded.CutBefore, Times: -1})
		s.DropConnections()
		longest = 2 * timeout
	}
	for len(s.Sessions()) == 1 && time.Since(begun) < time.Hour {
		time.Sleep(10 * time.Millisecond)
	}
	if took := time.Since(begun); took < shortest || took > longest {
		t.Errorf("the session ended after %v", took)
	}
	if !b.Lost(1) || b.Session().State != messages.SessionState_ENDED {
		t.Error("the epoch does not count as lost")
	}
	<-b.ended
	if n := log.errors("a recipient panics"); n != subscriberPanics {
		t.Errorf("recipients have panicked %d times, want %d", n, subscriberPanics)
	}
}

// A bridge can be closed after its actor system.
func TestSystemClosedFirst(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	system := host.NewSystem(nil, nil)
	b, err := Open(system, Config{Servers: s.Addr(), SessionTimeout: time.Second})
	must(t, err)
	must(t, b.Connected(context.Background()))
	system.Close()
	b.Close() // may fail, must return
	<-b.ended
}

// Close returns in time, with an error, if no server confirms the end of the session. What is open is
// answered.
func TestCloseUnanswered(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		s := embedded.Run(t, embedded.ServerConfig{MemoryOnly: true})
		b := connected(t, Config{Servers: "embedded:1", SessionTimeout: 20 * time.Second, Dial: s.Dial})
		u := newUser(t, b)
		s.Pause()
		for range 100 {
			u.create("/d", "n-")
		}
		begun := time.Now()
		checkClose(t, b, false)
		if took := time.Since(begun); took > b.cfg.ConnectTimeout+time.Second {
			t.Errorf("Close took %v", took)
		}
		for range 100 {
			if m := next[*messages.Failed](u); m.GetReason() != messages.Reason_CLOSED {
				t.Errorf("%v", m)
			}
		}
	})
}

// Close waits for a slow server.
func TestCloseSlowServer(t *testing.T) {
	t.Parallel()
	for _, action := range []embedded.Action{embedded.DelayRequest, embedded.DelayReply} {
		zktest.Bubble(t, func(t *testing.T) {
			s := embedded.Run(t, embedded.ServerConfig{MemoryOnly: true})
			b := connected(t, Config{Servers: "embedded:1", SessionTimeout: 20 * time.Second, Dial: s.Dial})
			s.Inject(embedded.Fault{Op: embedded.OpCloseSession, Action: action, Delay: 3 * time.Second})
			must(t, b.Close())
			if n := len(s.Sessions()); n != 0 {
				t.Errorf("%v: %d sessions", action, n)
			}
		})
	}
}
