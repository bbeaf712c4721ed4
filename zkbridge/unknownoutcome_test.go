package zkbridge

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/internal/writer"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// A transaction whose request or reply is lost has one effect, and each of its requests one answer.
func TestOutcomeUnknown(t *testing.T) {
	t.Parallel()
	for _, action := range []embedded.Action{embedded.CutBefore, embedded.DropReply} {
		for _, n := range []int{1, 40} {
			t.Run(fmt.Sprintf("%v/%d", action, n), func(t *testing.T) {
				zktest.Bubble(t, func(t *testing.T) { testOutcomeUnknown(t, action, n) })
			})
		}
	}
}

func testOutcomeUnknown(t *testing.T, action embedded.Action, n int) {
	s := zktest.Virtual(t)
	u, dir := newUser(t, connected(t, Config{Servers: s.Addr(), Dial: s.Dial})), s.Path(t)
	u.created(dir, "first-")
	released := make([]string, n)
	for i := range released {
		released[i] = u.created(dir, "released-").GetNode()
	}
	// The first create is sent alone. The fault is at the batch of the others.
	fault := s.Embedded().Inject(embedded.Fault{Op: embedded.OpMulti, Path: fmt.Sprintf("%s/n%d-", dir, min(n, 2)-1), Action: action})
	for i := range n {
		u.create(dir, fmt.Sprintf("n%d-", i))
	}
	for _, node := range released[1:] {
		u.release(dir, node)
	}
	var got []*messages.Created
	for range n {
		got = append(got, next[*messages.Created](u))
	}
	for range n - 1 {
		next[*messages.NodeReleased](u)
	}
	waitFired(t, fault)
	if names := s.Nodes(t, dir); len(names) != 2+n {
		t.Errorf("%d nodes are left: %v", len(names), names)
	}
	seen := map[string]bool{}
	found := 0 // after the reply was lost
	for _, m := range got {
		key := fmt.Sprint(m.GetCzxid(), m.GetStep())
		if seen[key] {
			t.Errorf("%v has the token of another", m)
		}
		seen[key] = true
		if len(m.GetChildren()) > 0 { // only the search for the node has read them
			found++
		}
		_, stat, err := s.Client(t).Get(dir + "/" + m.GetNode())
		if err != nil || stat.Czxid != m.GetCzxid() {
			t.Errorf("%v: is %+v, %v", m, stat, err)
		}
	}
	if (found > 0) != (action == embedded.DropReply) {
		t.Errorf("%d nodes were found", found)
	}
}

// A create fails in time, and the session goes on, if the connection is lost each time that the
// bridge looks for the node. The bridge deletes the node later.
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
		m := next[*messages.Failed](u)
		if took := time.Since(begun); m.GetId() != id || m.GetReason() != messages.Reason_UNAVAILABLE ||
			took < writer.MaxUnknownTimeouts*timeout || took > (writer.MaxUnknownTimeouts+1)*timeout {
			t.Errorf("after %v: %v", took, m)
		}
		cut.Remove()
		time.Sleep(writer.MaxOrphanPause) // virtual
		if names := u.list("/d"); len(names) != 1 {
			t.Errorf("left: %v", names)
		}
		u.keepsSession()
	})
}

// The bridge deletes the node of a create that ZooKeeper executes after the create has failed, and
// after the bridge has looked for its orphan for the first time.
func TestOutcomeUnknownAndExecutedLate(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		const timeout, late = time.Second, 20 * time.Second
		s := embedded.Run(t, embedded.ServerConfig{MemoryOnly: true, TickTime: 100 * time.Millisecond})
		d := testDialer{dial: s.Dial}
		u := newUser(t, connected(t, Config{Servers: "embedded:1", SessionTimeout: timeout, Dial: d.Dial}))
		u.created("/d", "first-")
		delayed := s.Inject(embedded.Fault{Op: embedded.OpMulti, Path: "/d/n-", Action: embedded.DelayRequest, Delay: late})
		cut := s.Inject(embedded.Fault{Op: embedded.OpMulti, Path: "/d", Nth: 2, Action: embedded.CutBefore, Times: -1})
		id := u.create("/d", "n-")
		<-delayed.Fired()
		d.cut()
		if m := next[*messages.Failed](u); m.GetId() != id || m.GetReason() != messages.Reason_UNAVAILABLE {
			t.Errorf("%v", m)
		}
		synctest.Wait()
		cut.Remove()
		time.Sleep(late) // virtual
		if names := u.list("/d"); len(names) != 1 {
			t.Errorf("left: %v", names)
		}
		u.keepsSession()
	})
}

// userWithoutSessionNode returns a user of a bridge that may not create its session node.
func userWithoutSessionNode(t *testing.T, s *zktest.Server) *user {
	t.Helper()
	conn := s.Client(t)
	_, err := conn.Create(GenerationDirectory, nil, 0, zk.WorldACL(zk.PermAll))
	if err != nil && err != zk.ErrNodeExists {
		t.Fatal(err)
	}
	setRights(t, conn, GenerationDirectory, zk.PermRead|zk.PermAdmin)
	t.Cleanup(func() { setRights(t, conn, GenerationDirectory, zk.PermAll) })
	u := newUser(t, connected(t, Config{Servers: s.Addr()}))
	zktest.Eventually(t, timeLimit, func() (ready bool) {
		u.bridge.runInActor(func(c *bridgeActor) { ready = c.epoch.Ready && c.epoch.Writer.SessionNode == "" })
		return ready
	}, "the session begins without a session node")
	return u
}

// A create that is a request of its own, because there is no session node, creates one node if its
// request or reply is lost.
func TestOutcomeUnknownWithoutSessionNode(t *testing.T) {
	t.Parallel()
	for _, action := range []embedded.Action{embedded.CutBefore, embedded.DropReply} {
		s := zktest.Embedded(t)
		u, dir := userWithoutSessionNode(t, s), s.Path(t)
		u.created(dir, "first-")
		fault := s.Embedded().Inject(embedded.Fault{Op: embedded.OpCreate2, Path: dir, Action: action})
		m := u.created(dir, "n-")
		waitFired(t, fault)
		executed := action == embedded.DropReply
		if names := s.Nodes(t, dir); len(names) != 2 || (len(m.GetChildren()) == 2) != executed {
			t.Errorf("%v: %v with nodes %v", action, m, names)
		}
	}
}

// A create is answered also if the connection is lost at the read behind it.
func TestLookupLost(t *testing.T) {
	t.Parallel()
	for _, op := range []embedded.Op{embedded.OpGetData, embedded.OpGetChildren2} {
		s := zktest.Embedded(t)
		u, dir := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t)
		u.created(dir, "first-")
		fault := s.Embedded().Inject(embedded.Fault{Op: op, Path: dir, Action: embedded.CutBefore})
		u.sendCreate(&messages.Create{Directory: dir, Prefix: "n-", ListAfter: op == embedded.OpGetChildren2})
		m := next[*messages.Created](u)
		waitFired(t, fault)
		if names := s.Nodes(t, dir); len(names) != 2 || m.GetCzxid() == 0 || m.GetDirectoryCzxid() != 0 || len(m.GetChildren()) != 0 {
			t.Errorf("%v: %v with nodes %v", op, m, names)
		}
	}
}

// The bridge does not take the node of another session for that of a lost reply, though its name is
// the same.
func TestFindsOnlyOwnNode(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		var n atomic.Int32
		u := userOfFaulty(t, Config{Servers: s.Addr()}, &faultyClient{multi: func(ops []zkconn.Op, send sendFunc) ([]zk.MultiResponse, error) {
			if ops[0].Kind == zkconn.OpCreate && n.Add(1) == 2 {
				return nil, zk.ErrConnectionClosed // neither executed nor answered
			}
			return send()
		}})
		dir, c := s.Path(t), s.Client(t)
		u.created(dir, "other-")
		other, err := c.Create(dir+"/x-lock-", nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
		must(t, err)
		own := u.created(dir, "x-lock-")
		if dir+"/"+own.GetNode() == other {
			t.Fatalf("%s of another session is taken for the own node", other)
		}
		_, stat, err := c.Exists(dir + "/" + own.GetNode())
		must(t, err)
		if stat.EphemeralOwner != u.bridge.Session().ID {
			t.Errorf("%s belongs to session %#x", own.GetNode(), stat.EphemeralOwner)
		}
	})
}
