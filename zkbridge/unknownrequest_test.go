package zkbridge

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Real servers, and the embedded one, know all requests, and no probe changes anything.
func TestAllRequestsAreKnown(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		var d testDialer
		b := connected(t, Config{Servers: s.Addr(), Dial: d.Dial})
		ops := d.take()
		for _, op := range []embedded.Op{embedded.OpCreateContainer, embedded.OpCreate2, embedded.OpMultiRead, embedded.OpSetWatches, embedded.OpGetEphemerals} {
			if ops[op] == 0 {
				t.Errorf("%v is not tried", op)
			}
		}
		if unknown := b.cfg.UnknownRequests(); len(unknown) > 0 {
			t.Errorf("%v is taken for unknown", unknown)
		}
	})
}

// A session is lost once at most, and before it is ready, on servers that hang up on requests that they
// do not know, and then have another session. Such a server knows them after an upgrade.
func TestServersThatHangUp(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		version string
		unknown []string
	}{
		{"keeper-22.8", []string{"createContainer", "createContainer in a transaction", "create2", "multiRead", "setWatches", "getEphemerals", "removeWatches"}},
		{"keeper-25.12", []string{"createContainer", "createContainer in a transaction", "setWatches", "getEphemerals", "removeWatches"}},
		{"keeper-26.8", []string{"getEphemerals"}},
		{"raftkeeper-2.1", []string{"createContainer"}},
	} {
		t.Run(c.version, func(t *testing.T) {
			zktest.Bubble(t, func(t *testing.T) {
				s := embedded.Run(t, embedded.ServerConfig{MemoryOnly: true, MaxSessionTimeout: time.Minute, Version: c.version})
				began := time.Now()
				u := newUser(t, connected(t, Config{Servers: "embedded:1", Dial: s.Dial, SessionTimeout: 20 * time.Second}))
				if took := time.Since(began); took > 3*time.Second {
					t.Errorf("connected after %v", took)
				}
				if got := u.bridge.cfg.UnknownRequests(); !slices.Equal(got, c.unknown) {
					t.Errorf("%v is taken for unknown, not %v", got, c.unknown)
				}
				if n := u.epoch(); n > 2 {
					t.Errorf("epoch %d", n)
				}
				u.exercise()
			})
		})
	}
}

// A server without create2 does not tell the czxid of a contender that is created alone: the writer looks it up,
// and the directory, too.
func TestCreateAloneWithoutCreate2(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		s := embedded.Run(t, embedded.ServerConfig{MemoryOnly: true, MaxSessionTimeout: time.Minute, Version: "keeper-22.8"})
		u := newUser(t, connected(t, Config{Servers: "embedded:1", Dial: s.Dial, SessionTimeout: 20 * time.Second}))
		u.bridge.runInActor(func(a *bridgeActor) { a.epoch.Writer.SessionNode = "" })
		var names []string
		for _, prefix := range []string{"first-", "second-"} {
			m := u.created("/locks", prefix)
			names = append(names, m.GetNode())
			found, err := u.bridge.GetNode(t.Context(), "/locks/"+m.GetNode())
			if err != nil || m.GetCzxid() != found.Stat.Czxid || m.GetDirectoryCzxid() != found.DirectoryCzxid || !slices.Equal(m.GetChildren(), names) {
				t.Errorf("%v, and the node is %+v, %v", m, found, err)
			}
		}
	})
}

// A far server that hangs up is found out before a session begins, however many attempts that takes: one
// that is very far does not hang up three times on one request within one attempt.
func TestFarServerThatHangsUp(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		version string
		delay   time.Duration
	}{{"keeper-22.8", 150 * time.Millisecond}, {"keeper-26.8", 150 * time.Millisecond}, {"keeper-26.8", 900 * time.Millisecond}} {
		t.Run(fmt.Sprint(c.version, "/", c.delay), func(t *testing.T) {
			zktest.Bubble(t, func(t *testing.T) {
				s := embedded.Run(t, embedded.ServerConfig{MemoryOnly: true, MaxSessionTimeout: time.Minute, Version: c.version})
				s.Inject(embedded.Fault{Op: embedded.OpAll, Times: -1, Action: embedded.DelayReply, Delay: c.delay})
				began := time.Now()
				u := newUser(t, connected(t, Config{Servers: "embedded:1", Dial: s.Dial, SessionTimeout: 20 * time.Second}))
				if took := time.Since(began); took > time.Minute {
					t.Errorf("connected after %v", took)
				}
				if n := u.epoch(); n > 2 {
					t.Errorf("epoch %d", n)
				}
				u.exercise()
			})
		})
	}
}

// exercise has the bridge do all that takes optional requests, in one session.
func (u *user) exercise() {
	u.t.Helper()
	epoch := u.epoch()
	first := u.created("/d/deep", "n-")
	last := u.created("/d/deep", "n-")
	second := last.GetNode()
	u.createInEach([]string{"/d/deep", "/d"}, always)
	u.watchSince(last.GetCzxid(), "/d/deep", first.GetNode(), second)
	next[*messages.Watched](u)
	u.release("/d/deep", second)
	u.waitDeleted([]string{second})
	next[*messages.NodeReleased](u)
	if s := u.bridge.Session(); s.State != messages.SessionState_CONNECTED || s.Epoch != epoch {
		u.t.Errorf("the session that was ready is over: %v", s)
	}
}

// A server that hangs up on setWatches during the session, as another member of the ensemble may, is
// asked without it soon, and with it again after some minutes. No event is missed.
func TestServerHangsUpOnSetWatches(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		s := zktest.Virtual(t)
		u := newUser(t, connected(t, Config{Servers: s.Addr(), Dial: s.Dial, SessionTimeout: 20 * time.Second}))
		u.subscribe()
		u.waitState(messages.SessionState_CONNECTED)
		var nodes []string
		const n = 3 * 64
		for range n {
			u.create("/d", "n-")
		}
		for range n {
			nodes = append(nodes, next[*messages.Created](u).GetNode())
		}
		u.watch("/d", nodes...)
		lister := newUser(t, u.bridge)
		u.bridge.Ref().SendList(&messages.List{Id: lister.id(), Epoch: 1, Directory: "/d", Watch: true}, lister)
		next[*messages.Listed](lister)
		fault := s.Embedded().Inject(embedded.Fault{Op: embedded.OpSetWatches, Action: embedded.CutBefore, Times: -1})
		conn := s.Client(t)
		suspended := func() uint64 { return u.bridge.Stats().Suspensions }
		for _, gone := range [][]string{nodes[:n/2], nodes[n/2:]} {
			away := s.Embedded().Inject(embedded.Fault{Op: embedded.OpDial, Action: embedded.CutBefore, Times: -1})
			waitFired(t, s.Embedded().Inject(embedded.Fault{Op: embedded.OpPing, Session: u.bridge.Session().ID, Action: embedded.CutBefore}))
			for _, node := range gone {
				must(t, conn.Delete("/d/"+node, -1))
			}
			away.Remove()
			u.waitDeleted(gone)
			time.Sleep(10 * time.Second)
		}
		u.noWake()
		lister.waitDirectoryWake("/d", false)
		if n := suspended(); n > 4 || len(fault.Firings()) > 4 {
			t.Errorf("SUSPENDED %d times, hung up on %d times", n, len(fault.Firings()))
		}
		fault.Remove()
		if got := u.bridge.cfg.UnknownRequests(); !slices.Equal(got, []string{"setWatches"}) {
			t.Errorf("%v is taken for unknown", got)
		}
		time.Sleep(probePause + time.Second)
		if got := u.bridge.cfg.UnknownRequests(); len(got) > 0 {
			t.Errorf("%v is taken for unknown after the upgrade", got)
		}
		if u.epoch() != 1 || suspended() > 4 {
			t.Errorf("epoch %d, SUSPENDED %d times", u.epoch(), suspended())
		}
	})
}
