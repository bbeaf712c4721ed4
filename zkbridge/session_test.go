package zkbridge

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

func TestSubscribe(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		const timeout = time.Minute
		b := open(t, Config{Servers: s.Addr(), SessionTimeout: timeout})
		u := newUser(t, b)
		u.subscribe()
		if m := next[*messages.SessionChanged](u); m.GetState() == messages.SessionState_LOST {
			if m.GetEpoch() != 0 {
				t.Errorf("before the first session: %v", m)
			}
			u.seen = append(u.seen, next[*messages.SessionChanged](u))
		} else {
			u.seen = append(u.seen, m)
		}
		m, now := u.waitState(messages.SessionState_CONNECTED), b.Session()
		if m.GetEpoch() != 1 || m.GetSessionId() != now.ID || now.ID == 0 || now.Epoch != 1 || now.Timeout != timeout {
			t.Errorf("received %v, the session is %+v", m, now)
		}
		if left := time.Until(now.Deadline); left < timeout/4 || left > timeout-timeout/5 {
			t.Errorf("deadline in %v", left)
		}
		other := newUser(t, b)
		other.subscribe()
		other.waitState(messages.SessionState_CONNECTED)
		b.Ref().SendUnsubscribe(&messages.Unsubscribe{}, other)
		other.list("/") // the answer is sent after the Unsubscribe
		must(t, b.Close())
		u.waitState(messages.SessionState_ENDED)
		none[*messages.SessionChanged](other)
		other.subscribe() // too late
		other.waitState(messages.SessionState_ENDED)
		other.create("/a", "n-")
		if m := next[*messages.Failed](other); m.GetReason() != messages.Reason_CLOSED {
			t.Errorf("after Close: %v", m)
		}
	})
}

// A subscriber receives the loss of a session before the failure of any request of its epoch.
func TestLostBeforeItsRequestsFail(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		b, dir := connected(t, Config{Servers: s.Addr()}), s.Path(t)
		const requests = 200
		answers, session, lost := make(mailbox, 2*requests), b.Session(), false
		b.Ref().SendSubscribe(&messages.Subscribe{}, answers)
		s.Expire(t, session.ID)
		for i := range uint64(requests) {
			b.Ref().SendCreate(&messages.Create{Id: i, Epoch: session.Epoch, Directory: dir, Prefix: "n-"}, answers)
		}
		for n := 0; n < requests; {
			switch m := (<-answers).(type) {
			case *messages.SessionChanged:
				lost = lost || m.State == messages.SessionState_LOST
			case *messages.Failed:
				n++
				if m.Reason == messages.Reason_SESSION_LOST && !lost {
					t.Fatalf("%v before the loss", m)
				}
			case *messages.Created:
				n++
			}
		}
	})
}

func TestEpochs(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		b := connected(t, Config{Servers: s.Addr()})
		u, dir := newUser(t, b), s.Path(t)
		u.subscribe()
		u.waitState(messages.SessionState_CONNECTED)
		node := u.created(dir, "n-").GetNode()
		u.watch(dir, node)
		old := b.Session()
		s.Expire(t, old.ID)
		u.create(dir, "failing-") // by itself, or with the session
		if m := u.waitState(messages.SessionState_LOST); m.GetEpoch() != old.Epoch || m.GetSessionId() != old.ID {
			t.Errorf("lost: %v", m)
		}
		m := u.waitState(messages.SessionState_CONNECTED)
		if m.GetEpoch() != old.Epoch+1 || m.GetSessionId() == old.ID {
			t.Errorf("next: %v", m)
		}
		if m := next[*messages.Failed](u); m.GetReason() != messages.Reason_SESSION_LOST {
			t.Errorf("create: %v", m)
		}
		b.Ref().SendCreate(&messages.Create{Id: 90, Epoch: old.Epoch, Directory: dir, Prefix: "late-"}, u)
		if m := next[*messages.Failed](u); m.GetId() != 90 || m.GetReason() != messages.Reason_SESSION_LOST {
			t.Errorf("create of an old epoch: %v", m)
		}
		b.Ref().SendReleaseNode(&messages.ReleaseNode{Id: 91, Epoch: old.Epoch, Directory: dir, Node: node}, u)
		if m := next[*messages.Failed](u); m.GetId() != 91 || m.GetReason() != messages.Reason_SESSION_LOST {
			t.Errorf("release of an old epoch: %v", m)
		}
		if got := u.list(dir); len(got) != 0 {
			t.Errorf("the new session sees %v", got)
		}
		u.created(dir, "new-")
	})
}

func TestReconnect(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		proxy := zktest.Proxy(t, s.Addr())
		b := connected(t, Config{Servers: proxy.Addr()})
		u, dir := newUser(t, b), s.Path(t)
		u.subscribe()
		node := u.created(dir, "n-").GetNode()
		u.watch(dir, node)

		u.cutOff(proxy)
		create, release := u.create(dir, "kept-"), u.release(dir, node)
		b.Ref().SendList(&messages.List{Id: 50, Epoch: 1, Directory: dir}, u)
		b.Ref().SendWatch(&messages.Watch{Id: 51, Epoch: 1, Directory: dir, Nodes: []string{"none"}}, u)
		proxy.Refuse(false)
		u.waitState(messages.SessionState_CONNECTED)
		if m := next[*messages.Created](u); m.GetId() != create || m.GetEpoch() != 1 {
			t.Errorf("%v", m)
		}
		if m := next[*messages.NodeReleased](u); m.GetId() != release {
			t.Errorf("%v", m)
		}
		next[*messages.Listed](u)
		next[*messages.Watched](u)
		if m := next[*messages.Wake](u); m.GetNode() != node {
			t.Errorf("%v", m)
		}
		if names := s.Nodes(t, dir); len(names) != 1 {
			t.Errorf("left: %v", names)
		}
	})
}

func TestNotAnswering(t *testing.T) {
	t.Parallel()
	const timeout = 3 * time.Second
	zktest.Bubble(t, func(t *testing.T) {
		s := embedded.Run(t, embedded.ServerConfig{MemoryOnly: true, TickTime: 100 * time.Millisecond})
		b := connected(t, Config{Servers: "embedded:1", SessionTimeout: 2 * time.Second, Dial: s.Dial})
		u := newUser(t, b)
		u.subscribe()
		u.waitState(messages.SessionState_CONNECTED)
		node := u.created("/d", "n-").GetNode()
		time.Sleep(time.Hour) // virtual: pings keep the session
		if now := b.Session(); now.State != messages.SessionState_CONNECTED || now.Epoch != 1 {
			t.Fatalf("after an hour: %+v", now)
		}
		s.Pause()
		paused, deadline := time.Now(), b.Session().Deadline
		u.create("/d", "late-")
		u.release("/d", node) // which is not known to be done
		u.waitState(messages.SessionState_SUSPENDED)
		u.waitState(messages.SessionState_LOST)
		if late := time.Since(deadline); late != 0 {
			t.Errorf("lost %v after the deadline", late)
		}
		if after := time.Since(paused); after > 1600*time.Millisecond {
			t.Errorf("lost %v after the last answer", after)
		}
		for range 2 {
			if m := next[*messages.Failed](u); m.GetReason() != messages.Reason_SESSION_LOST {
				t.Errorf("%v", m)
			}
		}
		if dump := s.Dump(); len(s.Sessions()) != 1 || !strings.Contains(dump, node) {
			t.Errorf("the server has expired the session before: %v, %s", s.Sessions(), dump)
		}
		time.Sleep(10 * timeout)
		s.Resume()
		if m := u.waitState(messages.SessionState_CONNECTED); m.GetEpoch() != 2 {
			t.Errorf("%v", m)
		}
		if names := u.list("/d"); len(names) != 0 {
			t.Errorf("left: %v", names)
		}
		b.Close()
		<-b.ended
	})
}

// The session is lost while its server is frozen, and the bridge goes on with another one once the
// server runs again. Close reports that a frozen server has not confirmed it. (TestNotAnswering has
// when a session is lost. Here the bridge's clock is set forward, so that no busy machine loses one
// before.)
func TestFrozenServer(t *testing.T) {
	t.Parallel()
	var suspended atomic.Int64
	s := zktest.Own(t)
	b := connected(t, Config{Servers: s.Addr(), ConnectTimeout: 2 * time.Second,
		SuspendedFor: func() time.Duration { return time.Duration(suspended.Load()) }})
	u, dir := newUser(t, b), "/d"
	u.subscribe()
	u.created(dir, "n-")
	s.Freeze(t)
	u.create(dir, "late-")
	suspended.Store(int64(b.Session().Timeout))
	zktest.Eventually(t, timeLimit, func() bool { return b.Lost(1) }, "the deadline passes")
	b.runInActor(func(a *bridgeActor) {
		if a.session.State != messages.SessionState_LOST { // the timer is not due for seconds
			a.beat()
		}
	})
	u.waitState(messages.SessionState_LOST)
	next[*messages.Failed](u)
	s.Thaw(t)
	if m := u.waitState(messages.SessionState_CONNECTED); m.GetEpoch() != 2 {
		t.Errorf("%v", m)
	}
	u.created(dir, "again-")
	s.Freeze(t)
	if err := b.Close(); err == nil || !strings.Contains(err.Error(), "expires") {
		t.Errorf("Close with a frozen server: %v", err)
	}
}

// A watch that races with the deletion of its node leads to a Wake, or its answer has the name of
// the node.
func TestEventsAndReplies(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		b := connected(t, Config{Servers: s.Addr()})
		u, watcher, dir := newUser(t, b), newUser(t, b), s.Path(t)
		early := 0
		for i := range 300 {
			node := u.created(dir, "n-").GetNode()
			u.release(dir, node)
			b.Ref().SendWatch(&messages.Watch{Id: uint64(i), Epoch: 1, Directory: dir, Nodes: []string{node}}, watcher)
			next[*messages.NodeReleased](u)
			watched := next[*messages.Watched](watcher)
			if len(watched.GetGone()) > 0 {
				continue
			}
			early += len(watcher.seen)
			if wake := next[*messages.Wake](watcher); wake.GetNode() != node {
				t.Errorf("%v", wake)
			}
		}
		none[*messages.Wake](watcher)
		t.Logf("%d events came before the reply", early)
		if n := s.Watches(t); n != 1 && !s.Real() {
			t.Errorf("%d watches are left beside that on the directory itself", n-1)
		}
	})
}

// The bridge keeps its session and all requests when the leader of three servers stops.
func TestFailover(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes seconds")
	}
	zktest.OneRunIn(t, 8)
	s := zktest.Ensemble(t, 3)
	b := connected(t, Config{Servers: s.Addr()})
	u, dir := newUser(t, b), "/d"
	node := u.created(dir, "n-").GetNode()
	leader := s.Leader(t)
	for i := range 100 {
		u.create(dir, fmt.Sprintf("n%d-", i))
	}
	u.release(dir, node)
	leader.Stop(t)
	tokens := map[string]bool{}
	for range 100 {
		m := next[*messages.Created](u)
		tokens[fmt.Sprint(m.GetCzxid(), m.GetStep())] = true
	}
	next[*messages.NodeReleased](u)
	if names := u.list(dir); len(names) != 100 || len(tokens) != 100 || b.Session().Epoch != 1 {
		t.Errorf("%d nodes, %d tokens, %+v", len(names), len(tokens), b.Session())
	}
}

// A sessionStream may receive an event after its end.
func TestSessionsAfterTheirEnd(t *testing.T) {
	t.Parallel()
	s := &sessionStream{of: connected(t, Config{Servers: zktest.Embedded(t).Addr()}), out: make(chan Session, 1)}
	s.Tell(nil)
	if now := <-s.out; now.State != messages.SessionState_CONNECTED {
		t.Errorf("%+v", now)
	}
	for range 2 { // the context has ended, and so has the bridge
		s.end()
		s.last = Session{}
		s.Tell(nil)
	}
	if _, open := <-s.out; open {
		t.Error("the channel is open")
	}
}
