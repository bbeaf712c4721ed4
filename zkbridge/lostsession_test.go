package zkbridge

import (
	"crypto/tls"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/internal/epoch"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// loseSession has the bridge give up its session as if the deadline had passed.
func (b *internals) loseSession() {
	b.ref.Tell(task(func(c *bridgeActor) { c.OnSessionEvent(epoch.Overdue, "the test says so") }))
}

// The bridge closes a lost session long before it expires, also if the server was restarted
// meanwhile.
func TestLostSessionIsClosed(t *testing.T) {
	t.Parallel()
	const timeout, margin = time.Minute, 100 * time.Millisecond
	waitEmpty := func(t *testing.T, s *zktest.Server, dir string) {
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
					u.waitState(messages.SessionState_SUSPENDED)
				}
				u.bridge.loseSession()
				u.waitState(messages.SessionState_LOST)
				if restarts {
					s.Start(t)
				}
				u.waitState(messages.SessionState_CONNECTED)
				waitEmpty(t, s, dir)
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
		u.bridge.loseSession()
		u.waitState(messages.SessionState_LOST)
		u.waitState(messages.SessionState_CONNECTED)
		zktest.Eventually(t, timeout/2, func() bool { return len(u.list("/d")) == 0 }, "the node is gone")
	})
	t.Run("TLS", func(t *testing.T) {
		t.Parallel()
		ca := zktest.NewAuthority(t)
		secureServers(t, ca, func(t *testing.T, _ *zktest.Server, addr string) {
			u := newUser(t, connected(t, Config{Servers: addr, Margin: margin, TLS: &tls.Config{RootCAs: ca.Pool(), Certificates: []tls.Certificate{ca.Issue("client")}}}))
			u.subscribe()
			u.created("/d", "n-")
			u.bridge.loseSession()
			u.waitState(messages.SessionState_LOST)
			u.waitState(messages.SessionState_CONNECTED)
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
			u.bridge.loseSession()
			u.waitState(messages.SessionState_LOST)
			u.waitState(messages.SessionState_CONNECTED)
		}
		waitEmpty(t, s, "/d")
	})
}

// lostSessionTest is a bridge in virtual time that has lost its first session a moment ago. The
// session has a node, /d/old.
type lostSessionTest struct {
	*user
	server   *embedded.Server
	log      bridgeLog
	old      int64
	lostAt   time.Time
	deadline time.Time // after which the server expires a session without messages
}

const (
	lostTimeout = 40 * time.Second
	lostMargin  = 10 * time.Second
	lostConnect = 3 * time.Second

	longestPause = 4 * time.Second // before the bridge connects again
)

func withLostSession(t *testing.T, f func(l *lostSessionTest)) {
	zktest.Bubble(t, func(t *testing.T) {
		l := &lostSessionTest{server: embedded.Run(t, embedded.ServerConfig{MemoryOnly: true, TickTime: time.Second, MaxSessionTimeout: lostTimeout})}
		b := connected(t, l.log.config(t, Config{Servers: "embedded:1", SessionTimeout: lostTimeout, Margin: lostMargin,
			ConnectTimeout: lostConnect, Dial: l.server.Dial}))
		l.user, l.old = newUser(t, b), b.Session().ID
		l.subscribe()
		l.waitState(messages.SessionState_CONNECTED)
		l.created("/d", "old")
		b.loseSession()
		l.waitState(messages.SessionState_LOST)
		l.lostAt, l.deadline = time.Now(), time.Now().Add(lostTimeout+2*time.Second)
		f(l)
		b.Close()
		<-b.ended
	})
}

// hasSession reports whether the server has the lost session.
func (l *lostSessionTest) hasSession() bool {
	return slices.ContainsFunc(l.server.Sessions(), func(s embedded.SessionInfo) bool { return s.ID == l.old })
}

// endsAfter waits for the end of the session, which must be this long after the loss, or up to a
// second later.
func (l *lostSessionTest) endsAfter(d time.Duration) { l.t.Helper(); l.endsWithin(d, time.Second) }

// endsWithin waits for the end of the session, which must be this long after the loss, or up to a
// time later.
func (l *lostSessionTest) endsWithin(d, late time.Duration) {
	l.t.Helper()
	const step = 50 * time.Millisecond
	for l.hasSession() {
		if time.Since(l.lostAt) > time.Hour {
			l.t.Fatal("the lost session does not end")
		}
		time.Sleep(step)
	}
	if took := time.Since(l.lostAt); took < d || took > d+late+step {
		l.t.Errorf("the lost session ended %v after the loss, not %v", took, d)
	}
}

// connectedAgain waits for the next session.
func (l *lostSessionTest) connectedAgain() {
	l.t.Helper()
	l.waitState(messages.SessionState_CONNECTED)
}

func (l *lostSessionTest) inject(f embedded.Fault) *embedded.Injected {
	f.Session = l.old
	return l.server.Inject(f)
}

// Faults happen until a lost session is closed. The times are virtual.
func TestLostSession(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]func(l *lostSessionTest){
		"is closed after the margin": func(l *lostSessionTest) {
			l.connectedAgain()
			l.endsAfter(lostMargin)
			if !strings.Contains(l.log.String(), "the lost session is closed") {
				l.t.Error("the log does not have the close")
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
		"server is stopped": func(l *lostSessionTest) {
			l.connectedAgain()
			l.server.Halt()
			time.Sleep(3 * lostMargin)
			l.server.Restart()
			l.connectedAgain()
			l.endsWithin(3*lostMargin, time.Second+longestPause)
		},
		"server stops during the close": func(l *lostSessionTest) {
			l.connectedAgain()
			waitFired(l.t, l.inject(embedded.Fault{Op: embedded.OpConnect, Action: embedded.BlackHole}))
			l.server.Halt()
			time.Sleep(lostMargin)
			l.server.Restart()
			l.endsWithin(2*lostMargin, time.Second+longestPause)
		},
		"next session is lost as well": func(l *lostSessionTest) {
			l.connectedAgain()
			l.bridge.loseSession()
			l.waitState(messages.SessionState_LOST)
			l.connectedAgain()
			l.endsAfter(lostMargin)
			time.Sleep(time.Second)
			if n := len(l.server.Sessions()); n != 1 {
				l.t.Errorf("%d sessions", n)
			}
		},
		"connection is cut before the close": func(l *lostSessionTest) {
			l.inject(embedded.Fault{Op: embedded.OpCloseSession, Action: embedded.CutBefore, Times: 2})
			l.connectedAgain()
			l.endsAfter(lostMargin)
		},
		"answer to the close is lost": func(l *lostSessionTest) {
			f := l.inject(embedded.Fault{Op: embedded.OpCloseSession, Action: embedded.DropReply})
			l.connectedAgain()
			l.endsAfter(lostMargin)
			waitFired(l.t, f)
			time.Sleep(time.Second)
			if !strings.Contains(l.log.String(), "the lost session is closed") {
				l.t.Error("the bridge has not repeated the close")
			}
		},
		"handshake is not answered": func(l *lostSessionTest) {
			l.inject(embedded.Fault{Op: embedded.OpConnect, Action: embedded.BlackHole})
			l.connectedAgain()
			l.endsAfter(lostMargin + lostConnect)
		},
		"server resumes it and never closes it": func(l *lostSessionTest) {
			l.inject(embedded.Fault{Op: embedded.OpCloseSession, Action: embedded.BlackHole, Times: -1})
			l.connectedAgain()
			time.Sleep(lostMargin + maxClosings*(lostConnect+maxClosePause))
			if l.hasSession() {
				l.t.Error("the lost session is kept alive")
			}
		},
		"password is not the server's": func(l *lostSessionTest) {
			l.bridge.ref.Tell(task(func(c *bridgeActor) { c.lostSessions[0].password[0] ^= 1 }))
			l.connectedAgain()
			time.Sleep(2 * lostMargin)
			if !l.hasSession() {
				l.t.Error("the session was closed nevertheless")
			}
			time.Sleep(time.Until(l.deadline))
			if l.hasSession() {
				l.t.Error("the session does not expire")
			}
		},
		"bridge is closed in the margin": func(l *lostSessionTest) {
			l.connectedAgain()
			must(l.t, l.bridge.Close())
			l.endsAfter(0)
		},
		"bridge is closed during the close": func(l *lostSessionTest) {
			l.connectedAgain()
			waitFired(l.t, l.inject(embedded.Fault{Op: embedded.OpConnect, Action: embedded.BlackHole}))
			must(l.t, l.bridge.Close())
			<-l.bridge.ended
			l.endsAfter(lostMargin)
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
			l.bridge.panicInActor()
			l.waitState(messages.SessionState_ENDED)
			<-l.bridge.ended
			if since := time.Since(l.lostAt); l.hasSession() != (since < lostTimeout) {
				l.t.Errorf("%v after the loss", since)
			}
		},
	} {
		t.Run(name, func(t *testing.T) { withLostSession(t, f) })
	}
}

// The bridge does not close a session that the server has ended.
func TestExpiredSessionIsLeft(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		u := newUser(t, connected(t, Config{Servers: s.Addr(), Margin: time.Millisecond}))
		u.subscribe()
		s.Expire(t, u.bridge.Session().ID)
		u.waitState(messages.SessionState_LOST)
		u.waitState(messages.SessionState_CONNECTED)
		var n int
		u.bridge.runInActor(func(c *bridgeActor) { n = len(c.lostSessions) })
		if n != 0 {
			t.Errorf("%d sessions are to be closed", n)
		}
	})
}
