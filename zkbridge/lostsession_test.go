package zkbridge

import (
	"crypto/tls"
	"strings"
	"testing"
	"time"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// lose has the bridge give up its session as if the deadline had passed.
func (b *Bridge) lose() {
	b.ref.Tell(task(func(c *bridgeActor) { c.onSessionEvent(sessionOverdue, "the test says so") }))
}

// A session that was lost is closed long before it expires, be the server there all the time
// or started again.
func TestLostSessionIsClosed(t *testing.T) {
	t.Parallel()
	const timeout, margin = time.Minute, 100 * time.Millisecond
	gone := func(t *testing.T, s *zktest.Server, dir string) {
		t.Helper()
		zktest.Eventually(t, timeout/2, func() bool { return len(s.Nodes(t, dir)) == 0 }, "the nodes of the lost session are gone")
	}
	for _, restarts := range []bool{false, true} {
		name := "connected"
		if restarts {
			name = "restarted"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			zktest.EachOwn(t, func(t *testing.T, s *zktest.Server) {
				u, dir := newUser(t, connected(t, Config{Servers: s.Addr(), SessionTimeout: timeout, Margin: margin})), "/d"
				u.subscribe()
				u.created(dir, "n-")
				if restarts {
					s.Stop(t)
					state(t, u.peer, messages.SessionState_SUSPENDED)
				}
				u.bridge.lose()
				state(t, u.peer, messages.SessionState_LOST)
				if restarts {
					s.Start(t)
				}
				state(t, u.peer, messages.SessionState_CONNECTED)
				gone(t, s, dir)
				u.created(dir, "n-")
			})
		})
	}
	t.Run("credentials", func(t *testing.T) {
		t.Parallel()
		s := zktest.Own(t, zktest.Setting("enforce.auth.enabled", "true"), zktest.Setting("enforce.auth.schemes", "digest"))
		u := newUser(t, connected(t, Config{Servers: s.Addr(), Margin: margin, Auth: digest("me")}))
		u.subscribe()
		u.created("/d", "n-")
		u.bridge.lose()
		state(t, u.peer, messages.SessionState_LOST)
		state(t, u.peer, messages.SessionState_CONNECTED)
		zktest.Eventually(t, timeout/2, func() bool { return len(u.list("/d")) == 0 }, "the node is gone")
	})
	t.Run("TLS", func(t *testing.T) {
		t.Parallel()
		ca := zktest.NewAuthority(t)
		secureServers(t, ca, func(t *testing.T, _ *zktest.Server, addr string) {
			u := newUser(t, connected(t, Config{Servers: addr, Margin: margin, TLS: &tls.Config{RootCAs: ca.Pool(), Certificates: []tls.Certificate{ca.Issue("client")}}}))
			u.subscribe()
			u.created("/d", "n-")
			u.bridge.lose()
			state(t, u.peer, messages.SessionState_LOST)
			state(t, u.peer, messages.SessionState_CONNECTED)
			zktest.Eventually(t, timeout/2, func() bool { return len(u.list("/d")) == 0 }, "the node is gone")
		})
	})
	t.Run("ensemble", func(t *testing.T) {
		zktest.OneRunIn(t, 8)
		t.Parallel()
		s := zktest.Ensemble(t, 3)
		u := newUser(t, connected(t, Config{Servers: s.Addr(), Margin: margin}))
		u.subscribe()
		for range 3 {
			u.created("/d", "n-")
			u.bridge.lose()
			state(t, u.peer, messages.SessionState_LOST)
			state(t, u.peer, messages.SessionState_CONNECTED)
		}
		gone(t, s, "/d")
	})
}

// lostSessionTest is a bridge in virtual time that has lost its first session a moment ago. The
// session has a node, /d/old.
type lostSessionTest struct {
	t *testing.T
	*user
	server   *embedded.Server
	log      *record
	old      int64
	lostAt   time.Time
	deadline time.Time // after which the server expires the session, if it hears nothing of it
}

const (
	lostTimeout = 40 * time.Second
	lostMargin  = 10 * time.Second
	lostConnect = 3 * time.Second
)

func inLostSession(t *testing.T, f func(l *lostSessionTest)) {
	zktest.Bubble(t, func(t *testing.T) {
		l := &lostSessionTest{log: &record{},
			server: embedded.Run(t, embedded.ServerConfig{MemoryOnly: true, TickTime: time.Second, MaxSessionTimeout: lostTimeout})}
		b := connected(t, l.log.of(t, Config{Servers: "embedded:1", SessionTimeout: lostTimeout, Margin: lostMargin,
			ConnectTimeout: lostConnect, Dial: l.server.Dial}))
		l.t, l.user, l.old = t, newUser(t, b), b.Session().ID
		l.subscribe()
		state(t, l.peer, messages.SessionState_CONNECTED)
		l.created("/d", "old")
		b.lose()
		state(t, l.peer, messages.SessionState_LOST)
		l.lostAt, l.deadline = time.Now(), time.Now().Add(lostTimeout+2*time.Second)
		f(l)
		b.Close()
		<-b.ended
	})
}

func (l *lostSessionTest) lives() bool {
	for _, s := range l.server.Sessions() {
		if s.ID == l.old {
			return true
		}
	}
	return false
}

// goes waits until the session is over, and checks that this is after a time, counted from the
// loss, and a second later at most.
func (l *lostSessionTest) goes(after time.Duration) {
	l.t.Helper()
	const look = 50 * time.Millisecond
	for l.lives() {
		if time.Since(l.lostAt) > time.Hour {
			l.t.Fatal("the lost session lives on")
		}
		time.Sleep(look)
	}
	if took := time.Since(l.lostAt); took < after || took > after+time.Second+look {
		l.t.Errorf("the lost session was over %v after the loss, not %v", took, after)
	}
}

// connectedAgain waits for the next session.
func (l *lostSessionTest) connectedAgain() {
	l.t.Helper()
	state(l.t, l.peer, messages.SessionState_CONNECTED)
}

func (l *lostSessionTest) inject(f embedded.Fault) *embedded.Injected {
	f.Session = l.old
	return l.server.Inject(f)
}

// Faults happen to a lost session until it is closed. The times are virtual.
func TestLostSession(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]func(l *lostSessionTest){
		"is closed after the margin": func(l *lostSessionTest) {
			l.connectedAgain()
			l.goes(lostMargin)
			if !strings.Contains(l.log.String(), "the lost session is closed") {
				l.t.Error("the log does not say so")
			}
		},
		"has expired": func(l *lostSessionTest) {
			l.connectedAgain()
			l.server.Expire(l.old)
			time.Sleep(2 * lostMargin)
			if len(l.server.Sessions()) != 1 {
				l.t.Errorf("sessions: %+v", l.server.Sessions())
			}
		},
		"server is away": func(l *lostSessionTest) {
			l.connectedAgain()
			l.server.Halt()
			time.Sleep(3 * lostMargin)
			l.server.Restart()
			l.connectedAgain()
			l.goes(3 * lostMargin)
		},
		"server goes away meanwhile": func(l *lostSessionTest) {
			l.connectedAgain()
			fired(l.t, l.inject(embedded.Fault{Op: embedded.OpConnect, Action: embedded.BlackHole}))
			l.server.Halt()
			time.Sleep(lostMargin)
			l.server.Restart()
			l.goes(2 * lostMargin)
		},
		"next session is lost, too": func(l *lostSessionTest) {
			l.connectedAgain()
			l.bridge.lose()
			state(l.t, l.peer, messages.SessionState_LOST)
			l.connectedAgain()
			l.goes(lostMargin)
			time.Sleep(time.Second)
			if n := len(l.server.Sessions()); n != 1 {
				l.t.Errorf("%d sessions", n)
			}
		},
		"connection is cut before the close": func(l *lostSessionTest) {
			l.inject(embedded.Fault{Op: embedded.OpCloseSession, Action: embedded.CutBefore, Times: 2})
			l.connectedAgain()
			l.goes(lostMargin)
		},
		"answer to the close is lost": func(l *lostSessionTest) {
			f := l.inject(embedded.Fault{Op: embedded.OpCloseSession, Action: embedded.DropReply})
			l.connectedAgain()
			l.goes(lostMargin)
			fired(l.t, f)
			time.Sleep(time.Second)
			if !strings.Contains(l.log.String(), "the lost session is closed") {
				l.t.Error("it was not asked for again")
			}
		},
		"handshake is not answered": func(l *lostSessionTest) {
			l.inject(embedded.Fault{Op: embedded.OpConnect, Action: embedded.BlackHole})
			l.connectedAgain()
			l.goes(lostMargin + lostConnect)
		},
		"server takes it up and never closes it": func(l *lostSessionTest) {
			l.inject(embedded.Fault{Op: embedded.OpCloseSession, Action: embedded.BlackHole, Times: -1})
			l.connectedAgain()
			time.Sleep(lostMargin + maxClosings*(lostConnect+maxClosePause))
			if l.lives() {
				l.t.Error("the lost session is kept alive")
			}
		},
		"password is not the server's": func(l *lostSessionTest) {
			l.bridge.ref.Tell(task(func(c *bridgeActor) { c.lostSessions[0].password[0] ^= 1 }))
			l.connectedAgain()
			time.Sleep(2 * lostMargin)
			if !l.lives() {
				l.t.Error("the session was closed nevertheless")
			}
			time.Sleep(time.Until(l.deadline))
			if l.lives() {
				l.t.Error("the session does not expire")
			}
		},
		"bridge is closed in the margin": func(l *lostSessionTest) {
			l.connectedAgain()
			must(l.t, l.bridge.Close())
			l.goes(0)
		},
		"bridge is closed meanwhile": func(l *lostSessionTest) {
			l.connectedAgain()
			fired(l.t, l.inject(embedded.Fault{Op: embedded.OpConnect, Action: embedded.BlackHole}))
			must(l.t, l.bridge.Close())
			<-l.bridge.ended
			l.goes(lostMargin)
		},
		"bridge is closed, and nothing answers": func(l *lostSessionTest) {
			l.connectedAgain()
			l.inject(embedded.Fault{Op: embedded.OpConnect, Action: embedded.BlackHole, Times: -1})
			begun := time.Now()
			must(l.t, l.bridge.Close())
			<-l.bridge.ended
			if took := time.Since(begun); took > lostConnect+time.Second {
				l.t.Errorf("Close has taken %v", took)
			}
		},
		"bridge fails": func(l *lostSessionTest) {
			l.connectedAgain()
			l.bridge.fail()
			state(l.t, l.peer, messages.SessionState_ENDED)
			<-l.bridge.ended
			if since := time.Since(l.lostAt); l.lives() != (since < lostTimeout) {
				l.t.Errorf("%v after the loss", since)
			}
		},
	} {
		t.Run(name, func(t *testing.T) { inLostSession(t, f) })
	}
}

// A session that the server has ended is not closed again.
func TestExpiredSessionIsLeft(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		u := newUser(t, connected(t, Config{Servers: s.Addr(), Margin: time.Millisecond}))
		u.subscribe()
		s.Expire(t, u.bridge.Session().ID)
		state(t, u.peer, messages.SessionState_LOST)
		state(t, u.peer, messages.SessionState_CONNECTED)
		lost := make(chan int)
		u.bridge.ref.Tell(task(func(c *bridgeActor) { lost <- len(c.lostSessions) }))
		if n := <-lost; n != 0 {
			t.Errorf("%d sessions are to be closed", n)
		}
	})
}
