package zkbridge

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/internal/writer"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// TestOutcomeUnknown cuts the connection at a multi, before and after it is executed.
func TestOutcomeUnknown(t *testing.T) {
	t.Parallel()
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
		if len(m.GetChildren()) > 0 { // as only the search for it has read them
			adopted++
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

// The connection is lost each time that the node is looked for. The create is answered in
// time, not as if the session was lost, and the node goes later.
func TestOutcomeUnknownAndCutEachTime(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		const timeout = time.Second
		s := embedded.Run(t, embedded.ServerConfig{MemoryOnly: true, TickTime: 100 * time.Millisecond})
		u := newUser(t, connected(t, Config{Servers: "embedded:1", SessionTimeout: timeout, Dial: s.Dial}))
		u.created("/d", "first-")
		s.Inject(embedded.Fault{Op: embedded.OpMulti, Path: "/d/n-", Action: embedded.DropReply})
		cut := s.Inject(embedded.Fault{Op: embedded.OpMulti, Path: "/d", Nth: 2, Action: embedded.CutBefore, Times: -1})
		begun := time.Now()
		id := u.create("/d", "n-")
		m := next[*messages.Failed](t, u.peer)
		if took := time.Since(begun); m.GetId() != id || m.GetReason() != messages.Reason_UNAVAILABLE ||
			took < writer.MaxUnknownTimeouts*timeout || took > (writer.MaxUnknownTimeouts+1)*timeout {
			t.Errorf("after %v: %v", took, m)
		}
		cut.Remove()
		time.Sleep(writer.MaxOrphanPause) // virtual
		if names := u.list("/d"); len(names) != 1 {
			t.Errorf("left: %v", names)
		}
		u.goesOn()
	})
}

// TestOutcomeUnknownAndExecutedLate has a create that is on its way when the bridge has given it up,
// and when its orphan is looked for: no transaction has come through since.
func TestOutcomeUnknownAndExecutedLate(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		const timeout, late = time.Second, 20 * time.Second
		s := embedded.Run(t, embedded.ServerConfig{MemoryOnly: true, TickTime: 100 * time.Millisecond})
		var last atomic.Pointer[net.Conn]
		dial := func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := s.Dial(ctx, network, address)
			last.Store(&conn)
			return conn, err
		}
		u := newUser(t, connected(t, Config{Servers: "embedded:1", SessionTimeout: timeout, Dial: dial}))
		u.created("/d", "first-")
		delayed := s.Inject(embedded.Fault{Op: embedded.OpMulti, Path: "/d/n-", Action: embedded.DelayRequest, Delay: late})
		cut := s.Inject(embedded.Fault{Op: embedded.OpMulti, Path: "/d", Nth: 2, Action: embedded.CutBefore, Times: -1})
		id := u.create("/d", "n-")
		<-delayed.Fired()
		(*last.Load()).Close()
		if m := next[*messages.Failed](t, u.peer); m.GetId() != id || m.GetReason() != messages.Reason_UNAVAILABLE {
			t.Errorf("%v", m)
		}
		synctest.Wait()
		cut.Remove()
		time.Sleep(late) // virtual
		if names := u.list("/d"); len(names) != 1 {
			t.Errorf("left: %v", names)
		}
		u.goesOn()
	})
}

// TestOutcomeUnknownDiesWithSession loses the reply of a create and then the session.
func TestOutcomeUnknownDiesWithSession(t *testing.T) {
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

// withoutOwn is a user of a bridge whose sessions may have no nodes of their own.
func withoutOwn(t *testing.T, s *zktest.Server) *user {
	t.Helper()
	conn := s.Client(t)
	_, err := conn.Create(homeDirectory, nil, 0, zk.WorldACL(zk.PermAll))
	if err != nil && err != zk.ErrNodeExists {
		t.Fatal(err)
	}
	_, err = conn.SetACL(homeDirectory, zk.WorldACL(zk.PermRead|zk.PermAdmin), -1)
	must(t, err)
	t.Cleanup(func() {
		_, err := conn.SetACL(homeDirectory, zk.WorldACL(zk.PermAll), -1)
		must(t, err)
	})
	u := newUser(t, connected(t, Config{Servers: s.Addr()}))
	u.do(func(c *bridgeActor) {})
	zktest.Eventually(t, patience, func() bool {
		ready := make(chan bool, 1)
		u.do(func(c *bridgeActor) { ready <- c.epoch.ready && c.epoch.writer.SessionNode == "" })
		return <-ready
	}, "the session begins without a session node")
	return u
}

// TestOutcomeUnknownWithoutSessionNode cuts the connection at a create that is a request of its own.
func TestOutcomeUnknownWithoutSessionNode(t *testing.T) {
	t.Parallel()
	for _, action := range []embedded.Action{embedded.CutBefore, embedded.DropReply} {
		s := zktest.Embedded(t)
		u, dir := withoutOwn(t, s), s.Path(t)
		u.created(dir, "first-")
		fault := s.Embedded().Inject(embedded.Fault{Op: embedded.OpCreate2, Path: dir, Action: action})
		m := u.created(dir, "n-")
		fired(t, fault)
		adopted := action == embedded.DropReply
		if names := s.Nodes(t, dir); len(names) != 2 || (len(m.GetChildren()) == 2) != adopted {
			t.Errorf("%v: %v with nodes %v", action, m, names)
		}
	}
}

// TestLookupLost cuts the connection at the read behind a create: that is answered all the same.
func TestLookupLost(t *testing.T) {
	t.Parallel()
	for _, op := range []embedded.Op{embedded.OpExists, embedded.OpGetChildren2} {
		s := zktest.Embedded(t)
		u, dir := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t)
		u.created(dir, "first-")
		fault := s.Embedded().Inject(embedded.Fault{Op: op, Path: dir, Action: embedded.CutBefore})
		u.bridge.Ref().SendCreate(&messages.Create{Id: u.id(), Epoch: u.epoch(), Directory: dir, Prefix: "n-",
			ListAfter: op == embedded.OpGetChildren2}, u)
		m := next[*messages.Created](t, u.peer)
		fired(t, fault)
		if names := s.Nodes(t, dir); len(names) != 2 || m.GetCzxid() == 0 || m.GetDirectoryCzxid() != 0 || len(m.GetChildren()) != 0 {
			t.Errorf("%v: %v with nodes %v", op, m, names)
		}
	}
}
