package zkbridge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

func TestSubscribe(t *testing.T) {
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		const timeout = time.Minute
		b := open(t, Config{Servers: s.Addr(), SessionTimeout: timeout})
		u := newUser(t, b)
		u.subscribe()
		if m := next[*messages.SessionChanged](t, u.peer); m.GetState() == messages.SessionState_LOST {
			if m.GetEpoch() != 0 {
				t.Errorf("before the first session: %v", m)
			}
			u.seen = append(u.seen, next[*messages.SessionChanged](t, u.peer))
		} else {
			u.seen = append(u.seen, m)
		}
		m, now := state(t, u.peer, messages.SessionState_CONNECTED), b.Session()
		if m.GetEpoch() != 1 || m.GetSessionId() != now.ID || now.ID == 0 || now.Epoch != 1 || now.Timeout != timeout {
			t.Errorf("told %v, is %+v", m, now)
		}
		if left := time.Until(now.Deadline); left < timeout/4 || left > timeout-timeout/5 {
			t.Errorf("deadline in %v", left)
		}
		other := newUser(t, b)
		other.subscribe()
		state(t, other.peer, messages.SessionState_CONNECTED)
		b.Ref().SendUnsubscribe(&messages.Unsubscribe{}, other)
		other.list("/") // answered after that
		must(t, b.Close())
		state(t, u.peer, messages.SessionState_SHUT)
		none[*messages.SessionChanged](t, other.peer)
		other.subscribe() // too late
		state(t, other.peer, messages.SessionState_SHUT)
		other.create("/a", "n-")
		if m := next[*messages.Failed](t, other.peer); m.GetReason() != messages.Reason_CLOSED {
			t.Errorf("after Close: %v", m)
		}
	})
}

func TestEpochs(t *testing.T) {
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		b := connected(t, Config{Servers: s.Addr()})
		u, dir := newUser(t, b), s.Path(t)
		u.subscribe()
		state(t, u.peer, messages.SessionState_CONNECTED)
		node := u.created(dir, "n-").GetNode()
		u.watch(dir, node)
		old := b.Session()
		s.Expire(t, old.ID)
		u.create(dir, "dying-") // may fail by itself, or with the session
		if m := state(t, u.peer, messages.SessionState_LOST); m.GetEpoch() != old.Epoch || m.GetSessionId() != old.ID {
			t.Errorf("lost: %v", m)
		}
		m := state(t, u.peer, messages.SessionState_CONNECTED)
		if m.GetEpoch() != old.Epoch+1 || m.GetSessionId() == old.ID {
			t.Errorf("next: %v", m)
		}
		if m := next[*messages.Failed](t, u.peer); m.GetReason() != messages.Reason_SESSION_LOST {
			t.Errorf("create: %v", m)
		}
		b.Ref().SendCreate(&messages.Create{Id: 90, Epoch: old.Epoch, Directory: dir, Prefix: "late-"}, u)
		if m := next[*messages.Failed](t, u.peer); m.GetId() != 90 || m.GetReason() != messages.Reason_SESSION_LOST {
			t.Errorf("create of an old epoch: %v", m)
		}
		b.Ref().SendReleaseNode(&messages.ReleaseNode{Id: 91, Epoch: old.Epoch, Directory: dir, Node: node}, u)
		if m := next[*messages.Failed](t, u.peer); m.GetId() != 91 || m.GetReason() != messages.Reason_SESSION_LOST {
			t.Errorf("release of an old epoch: %v", m)
		}
		if got := u.list(dir); len(got) != 0 {
			t.Errorf("the new session sees %v", got)
		}
		u.created(dir, "new-")
	})
}

func TestReconnect(t *testing.T) {
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		proxy := zktest.Proxy(t, s.Addr())
		b := connected(t, Config{Servers: proxy.Addr()})
		u, dir := newUser(t, b), s.Path(t)
		u.subscribe()
		node := u.created(dir, "n-").GetNode()
		u.watch(dir, node)

		proxy.Refuse(true)
		proxy.Cut()
		state(t, u.peer, messages.SessionState_SUSPENDED)
		create, release := u.create(dir, "kept-"), u.release(dir, node)
		b.Ref().SendList(&messages.List{Id: 50, Epoch: 1, Directory: dir}, u)
		b.Ref().SendWatch(&messages.Watch{Id: 51, Epoch: 1, Directory: dir, Nodes: []string{"none"}}, u)
		proxy.Refuse(false)
		state(t, u.peer, messages.SessionState_CONNECTED)
		if m := next[*messages.Created](t, u.peer); m.GetId() != create || m.GetEpoch() != 1 {
			t.Errorf("%v", m)
		}
		if m := next[*messages.NodeReleased](t, u.peer); m.GetId() != release {
			t.Errorf("%v", m)
		}
		next[*messages.Listed](t, u.peer)
		next[*messages.Watched](t, u.peer)
		if m := next[*messages.Wake](t, u.peer); m.GetNode() != node {
			t.Errorf("%v", m)
		}
		if names := s.Nodes(t, dir); len(names) != 1 {
			t.Errorf("left: %v", names)
		}
	})
}

// TestUncertain cuts the connection at a multi, before and after it is executed.
func TestUncertain(t *testing.T) {
	for _, action := range []embedded.Action{embedded.CutBefore, embedded.DropReply} {
		for _, n := range []int{1, 40} {
			t.Run(fmt.Sprintf("%v/%d", action, n), func(t *testing.T) { testUncertain(t, action, n) })
		}
	}
}

func testUncertain(t *testing.T, action embedded.Action, n int) {
	s := zktest.Embedded(t)
	u, dir := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t)
	u.created(dir, "first-")
	doomed := make([]string, n)
	for i := range doomed {
		doomed[i] = u.created(dir, "doomed-").GetNode()
	}
	// The first one goes alone; the fault strikes the batch behind it.
	fault := s.Embedded().Inject(embedded.Fault{Op: embedded.OpMulti, Path: fmt.Sprintf("%s/n%d-", dir, min(n, 2)-1), Action: action})
	for i := range n {
		u.create(dir, fmt.Sprintf("n%d-", i))
	}
	for _, node := range doomed[1:] {
		u.release(dir, node)
	}
	var got []*messages.Created
	for range n {
		got = append(got, next[*messages.Created](t, u.peer))
	}
	for range n - 1 {
		next[*messages.NodeReleased](t, u.peer)
	}
	fired(t, fault)
	if names := s.Nodes(t, dir); len(names) != 2+n {
		t.Errorf("%d nodes are left: %v", len(names), names)
	}
	seen := map[string]bool{}
	adopted := 0
	for _, m := range got {
		key := fmt.Sprint(m.GetCzxid(), m.GetStep())
		if seen[key] {
			t.Errorf("%v has the token of another", m)
		}
		seen[key] = true
		if m.GetOthers() == -1 {
			adopted++
			if len(m.GetChildren()) == 0 {
				t.Errorf("no children: %v", m)
			}
		}
		_, stat, err := s.Client(t).Get(dir + "/" + m.GetNode())
		if err != nil || stat.Czxid != m.GetCzxid() {
			t.Errorf("%v: is %+v, %v", m, stat, err)
		}
	}
	if (adopted > 0) != (action == embedded.DropReply) {
		t.Errorf("%d were adopted", adopted)
	}
}

func fired(t *testing.T, fault *embedded.Injected) {
	t.Helper()
	select {
	case <-fault.Fired():
	case <-time.After(patience):
		t.Fatalf("%v has not happened", fault.Action)
	}
}

// TestUncertainDiesWithSession loses the reply of a create and then the session.
func TestUncertainDiesWithSession(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	b := connected(t, Config{Servers: s.Addr()})
	u, dir := newUser(t, b), s.Path(t)
	u.created(dir, "first-")
	u.subscribe()
	refusing := s.Embedded().Inject(embedded.Fault{Op: embedded.OpDial, Times: -1, Action: embedded.CutBefore})
	s.Embedded().Inject(embedded.Fault{Op: embedded.OpMulti, Action: embedded.DropReply})
	u.create(dir, "n-")
	state(t, u.peer, messages.SessionState_SUSPENDED)
	s.Expire(t, b.Session().ID)
	refusing.Remove()
	if m := next[*messages.Failed](t, u.peer); m.GetReason() != messages.Reason_SESSION_LOST {
		t.Errorf("%v", m)
	}
	if names := s.Nodes(t, dir); len(names) != 0 {
		t.Errorf("left: %v", names)
	}
}

func TestUncertainWithoutWritableDirectory(t *testing.T) {
	t.Parallel()
	for _, op := range []embedded.Op{embedded.OpCreate, embedded.OpExists, embedded.OpGetChildren2} {
		s := zktest.Embedded(t)
		u, dir := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t)
		u.created(dir, "first-")
		_, err := s.Client(t).Set(dir, []byte("theirs"), -1)
		must(t, err)
		u.forget(dir)
		fault := s.Embedded().Inject(embedded.Fault{Op: op, Path: dir, Action: embedded.DropReply})
		m := u.created(dir, "n-")
		fired(t, fault)
		if names := s.Nodes(t, dir); len(names) != 2 || len(m.GetChildren()) != 2 {
			t.Errorf("%v: %v with nodes %v", op, m, names)
		}
	}
}

// forget makes the bridge look at a directory again.
func (u *user) forget(dir string) {
	done := make(chan struct{})
	u.bridge.ref.Tell(task(func(c *core) { c.ep.dirs.get(dir).forget(); close(done) }))
	<-done
}

func TestNotAnswering(t *testing.T) {
	const timeout = 3 * time.Second
	synctest.Test(t, func(t *testing.T) {
		s := embedded.Run(t, embedded.Config{MemoryOnly: true, TickTime: 100 * time.Millisecond})
		b := connected(t, Config{Servers: "embedded:1", SessionTimeout: 2 * time.Second, Dial: dialEmbedded(s)})
		u := newUser(t, b)
		u.subscribe()
		state(t, u.peer, messages.SessionState_CONNECTED)
		node := u.created("/d", "n-").GetNode()
		time.Sleep(time.Hour) // virtual: pings keep the session
		if now := b.Session(); now.State != messages.SessionState_CONNECTED || now.Epoch != 1 {
			t.Fatalf("after an hour: %+v", now)
		}
		s.Pause()
		paused, deadline := time.Now(), b.Session().Deadline
		u.create("/d", "late-")
		u.release("/d", node) // which is not known to be done
		state(t, u.peer, messages.SessionState_SUSPENDED)
		state(t, u.peer, messages.SessionState_LOST)
		if late := time.Since(deadline); late != 0 {
			t.Errorf("lost %v after the deadline", late)
		}
		if after := time.Since(paused); after > 1600*time.Millisecond {
			t.Errorf("lost %v after the last answer", after)
		}
		for range 2 {
			if m := next[*messages.Failed](t, u.peer); m.GetReason() != messages.Reason_SESSION_LOST {
				t.Errorf("%v", m)
			}
		}
		if dump := s.Dump(); len(s.Sessions()) != 1 || !strings.Contains(dump, node) {
			t.Errorf("the server has expired the session before: %v, %s", s.Sessions(), dump)
		}
		time.Sleep(10 * timeout)
		s.Resume()
		if m := state(t, u.peer, messages.SessionState_CONNECTED); m.GetEpoch() != 2 {
			t.Errorf("%v", m)
		}
		if names := u.list("/d"); len(names) != 0 {
			t.Errorf("left: %v", names)
		}
		b.Close()
		<-b.gone
	})
}

func dialEmbedded(s *embedded.Server) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (net.Conn, error) { return s.Dial(ctx) }
}

func TestFrozenServer(t *testing.T) {
	t.Parallel()
	const timeout = 10 * time.Second
	s := zktest.Own(t)
	b := connected(t, Config{Servers: s.Addr(), SessionTimeout: timeout})
	u, dir := newUser(t, b), "/d"
	u.subscribe()
	u.created(dir, "n-")
	s.Freeze(t)
	deadline := b.Session().Deadline
	u.create(dir, "late-")
	m := state(t, u.peer, messages.SessionState_LOST)
	if early := time.Until(deadline); early > timeout/pingsPerTimeout { // TestNotAnswering: nor late
		t.Errorf("lost %v before the deadline: %v", early, m)
	}
	next[*messages.Failed](t, u.peer)
	s.Thaw(t)
	if m := state(t, u.peer, messages.SessionState_CONNECTED); m.GetEpoch() != 2 {
		t.Errorf("%v", m)
	}
	u.created(dir, "again-")
	s.Freeze(t)
	if err := b.Close(); err == nil || !strings.Contains(err.Error(), "expires") {
		t.Errorf("Close with a frozen server: %v", err)
	}
}

// TestServerRestart has a session that outlives any restart, however long that takes.
func TestServerRestart(t *testing.T) {
	t.Parallel()
	s := zktest.Own(t, zktest.Setting("maxSessionTimeout", "3600000"))
	b := connected(t, Config{Servers: s.Addr(), SessionTimeout: time.Hour})
	u, dir := newUser(t, b), "/d"
	u.subscribe()
	node := u.created(dir, "n-").GetNode()
	s.Stop(t)
	state(t, u.peer, messages.SessionState_SUSPENDED)
	u.release(dir, node)
	s.Start(t)
	if m := state(t, u.peer, messages.SessionState_CONNECTED); m.GetEpoch() != 1 {
		t.Errorf("%v", m)
	}
	next[*messages.NodeReleased](t, u.peer)
	if names := s.Nodes(t, dir); len(names) != 0 {
		t.Errorf("left: %v", names)
	}
}

func TestUnreachable(t *testing.T) {
	b := open(t, Config{Servers: "127.0.0.1:1,localhost:1", ConnectTimeout: patience})
	attemptFails(t, b, "refused")
	ctx, cancel := context.WithTimeoutCause(context.Background(), 200*time.Millisecond, errors.New("enough"))
	defer cancel()
	err := b.Connected(ctx)
	for _, part := range []string{"127.0.0.1:1,localhost:1", "enough", "refused"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not say %q", err, part)
		}
	}
	if !errors.Is(err, context.Cause(ctx)) {
		t.Errorf("%v does not wrap the cause", err)
	}
	checkClose(t, b, true)
}

// TestUnknownName has one name of two that does not resolve.
func TestUnknownName(t *testing.T) {
	s := zktest.Embedded(t)
	connected(t, Config{Servers: "no-such-host.invalid:2181," + s.Addr()})
}

// TestMute connects to servers that accept and then say nothing, or not enough.
func TestMute(t *testing.T) {
	for _, says := range []string{"", "\x00\x00\x00\x25", "\x00\x00\x00\x25abc", "HTTP/1.1 400 Bad Request\r\n"} {
		synctest.Test(t, func(t *testing.T) {
			var dials atomic.Int32
			b := open(t, Config{Servers: "mute:1", SessionTimeout: time.Second, ConnectTimeout: 100 * time.Millisecond,
				Dial: piped(func(conn net.Conn) {
					dials.Add(1)
					go io.WriteString(conn, says)
					io.Copy(io.Discard, conn)
				})})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := b.Connected(ctx); err == nil || !strings.Contains(err.Error(), "handshake with pipe") {
				t.Errorf("%q: %v", says, err)
			}
			if n := dials.Load(); n < 2 {
				t.Errorf("%q: %d attempts", says, n)
			}
			checkClose(t, b, true)
		})
	}
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

func TestOtherTimeoutGranted(t *testing.T) {
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		b := open(t, Config{Servers: s.Addr(), SessionTimeout: 101 * time.Millisecond})
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		err := b.Connected(ctx)
		if !errors.Is(err, ErrSessionTimeout) || !strings.Contains(err.Error(), "101ms") || !strings.Contains(err.Error(), "400ms") {
			t.Errorf("%v", err)
		}
		if err := b.Connected(ctx); !errors.Is(err, ErrSessionTimeout) {
			t.Errorf("asked again: %v", err)
		}
		b.Close()
		if err := b.Connected(ctx); !errors.Is(err, ErrSessionTimeout) {
			t.Errorf("asked after Close: %v", err)
		}
	})
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

// TestEventsAndReplies races watches against deletions: each watch is answered by
// a Wake or by the name among those that are gone.
func TestEventsAndReplies(t *testing.T) {
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		b := connected(t, Config{Servers: s.Addr()})
		u, watcher, dir := newUser(t, b), newUser(t, b), s.Path(t)
		early := 0
		for i := range 300 {
			node := u.created(dir, "n-").GetNode()
			u.release(dir, node)
			b.Ref().SendWatch(&messages.Watch{Id: uint64(i), Epoch: 1, Directory: dir, Nodes: []string{node}}, watcher)
			next[*messages.NodeReleased](t, u.peer)
			watched := next[*messages.Watched](t, watcher.peer)
			if len(watched.GetGone()) > 0 {
				continue
			}
			early += len(watcher.seen)
			if wake := next[*messages.Wake](t, watcher.peer); wake.GetNode() != node {
				t.Errorf("%v", wake)
			}
		}
		none[*messages.Wake](t, watcher.peer)
		t.Logf("%d events came before the reply", early)
		if n := s.Watches(t); n != 0 && !s.Real() {
			t.Errorf("%d watches are left", n)
		}
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

// TestFailover kills the leader of three servers.
func TestFailover(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
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
		m := next[*messages.Created](t, u.peer)
		tokens[fmt.Sprint(m.GetCzxid(), m.GetStep())] = true
	}
	next[*messages.NodeReleased](t, u.peer)
	if names := u.list(dir); len(names) != 100 || len(tokens) != 100 || b.Session().Epoch != 1 {
		t.Errorf("%d nodes, %d tokens, %+v", len(names), len(tokens), b.Session())
	}
}
