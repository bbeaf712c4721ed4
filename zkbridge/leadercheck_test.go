package zkbridge

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/internal/epoch"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// phantomTest is a user in virtual time that watches the node of another one.
type phantomTest struct {
	*user
	dialer       testDialer
	server       *embedded.Server
	log          bridgeLog
	other        *user
	node         string
	transactions *embedded.Injected // of the user's session, on the watched node
}

func inPhantomTest(t *testing.T, servers string, f func(t *testing.T, p *phantomTest)) {
	zktest.Bubble(t, func(t *testing.T) {
		p := &phantomTest{server: embedded.Run(t, embedded.ServerConfig{MemoryOnly: true, TickTime: time.Second, MaxSessionTimeout: time.Minute})}
		p.dialer.dial = p.server.Dial
		b := connected(t, p.log.config(t, Config{Servers: servers, SessionTimeout: 10 * time.Second, Dial: p.dialer.Dial}))
		p.user = newUser(t, b)
		p.other = newUser(t, connected(t, Config{Servers: "other:1", SessionTimeout: 10 * time.Second, Dial: p.server.Dial}))
		p.node = p.other.created("/d", "n-").GetNode()
		p.watch("/d", p.node)
		p.transactions = p.server.Inject(embedded.Fault{Op: embedded.OpMulti, Path: "/d/" + p.node, Session: b.Session().ID,
			Action: embedded.DelayReply, Times: -1})
		f(t, p)
		for _, b := range []*internals{b, p.other.bridge} {
			b.Close()
			<-b.ended
		}
	})
}

// deleteUnseen deletes the watched node. The user's server goes on to show it.
func (p *phantomTest) deleteUnseen() {
	p.server.Haunt(p.dialer.lastAddress(), "/d/"+p.node)
	p.other.release("/d", p.node)
	next[*messages.NodeReleased](p.other)
}

// sawDeletion reports whether the user has received a Wake for the deletion of the node.
func (p *phantomTest) sawDeletion() bool {
	synctest.Wait()
	for len(p.mailbox) > 0 {
		p.seen = append(p.seen, <-p.mailbox)
	}
	return slices.ContainsFunc(p.seen, func(msg any) bool {
		wake, ok := msg.(*messages.Wake)
		return ok && wake.GetNode() == p.node && wake.GetDeleted()
	})
}

const longestPhantom = epoch.LeaderCheckPause + epoch.LeaderCheckPause/4 + time.Second

// A bridge whose server shows a node that the leader does not have logs that, and learns from
// another server that the node is gone. Its session goes on.
func TestPhantom(t *testing.T) {
	t.Parallel()
	inPhantomTest(t, "one:1,two:1", func(t *testing.T, p *phantomTest) {
		first := p.dialer.lastAddress()
		time.Sleep(10 * time.Second)
		p.deleteUnseen()
		time.Sleep(epoch.LeaderCheckPause - 11*time.Second)
		if p.sawDeletion() || p.log.errors("") != 0 {
			t.Fatal("the server does not show the deleted node")
		}
		time.Sleep(2 * longestPhantom)
		if !p.sawDeletion() {
			t.Errorf("the user has not learned that the node is gone:\n%s", &p.log)
		}
		if p.log.errors("leader does not have") != 1 || p.log.errors(first) != 1 || p.log.errors("/d/"+p.node) != 1 {
			t.Errorf("the log does not name server and node once:\n%s", &p.log)
		}
		if now := p.bridge.Session(); now.Epoch != 1 || p.dialer.lastAddress() == first {
			t.Errorf("%+v at %s", now, p.dialer.lastAddress())
		}
	})
}

// A bridge with a single server stays with it, and logs each time that the leader does not have the
// node.
func TestPhantomOfTheOnlyServer(t *testing.T) {
	t.Parallel()
	inPhantomTest(t, "one:1", func(t *testing.T, p *phantomTest) {
		p.deleteUnseen()
		time.Sleep(3 * longestPhantom)
		if p.sawDeletion() || p.log.errors("leader does not have") < 2 || strings.Contains(p.log.String(), "SUSPENDED") {
			t.Errorf("saw the deletion: %v; the log:\n%s", p.sawDeletion(), &p.log)
		}
	})
}

// The bridge asks the leader for the watched nodes that do not change, once a minute or once in a
// session timeout, and never for nodes that have changed.
func TestLeaderIsAskedSeldom(t *testing.T) {
	t.Parallel()
	inPhantomTest(t, "one:1,two:1", func(t *testing.T, p *phantomTest) {
		time.Sleep(epoch.LeaderCheckPause - time.Second)
		if n := len(p.transactions.Firings()); n != 0 {
			t.Errorf("asked %d times within %v", n, epoch.LeaderCheckPause)
		}
		time.Sleep(time.Hour)
		if n := len(p.transactions.Firings()); n > 61 || n < 20 {
			t.Errorf("asked %d times in an hour", n)
		}
		p.other.release("/d", p.node)
		next[*messages.Wake](p.user)
		checks := len(p.transactions.Firings())
		time.Sleep(time.Hour)
		if n := len(p.transactions.Firings()); n != checks || p.log.errors("") != 0 {
			t.Errorf("asked %d times, then %d times, without a watch: %s", checks, n, &p.log)
		}
	})
}

// The bridge reports the deletion of a node also if the question to the leader has failed before.
func TestLeaderIsAskedInVain(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]embedded.Fault{
		"cut before":    {Action: embedded.CutBefore},
		"reply dropped": {Action: embedded.DropReply, Times: 3},
		"black hole":    {Action: embedded.BlackHole},
		"expired":       {Action: embedded.ExpireSession},
	} {
		t.Run(name, func(t *testing.T) {
			inPhantomTest(t, "one:1,two:1", func(t *testing.T, p *phantomTest) {
				p.transactions.Remove()
				fault.Op, fault.Path = embedded.OpMulti, "/d/"+p.node
				fault := p.server.Inject(fault)
				time.Sleep(2 * longestPhantom)
				waitFired(t, fault)
				p.other.release("/d", p.node)
				time.Sleep(longestPhantom)
				if p.sawDeletion() != (name != "expired") || p.log.errors("leader does not have") != 0 {
					t.Errorf("saw the deletion: %v; the log:\n%s", p.sawDeletion(), &p.log)
				}
			})
		})
	}
}

// checkWithLeader reports which of many nodes exist and may be read, and changes nothing.
func TestCheckWithLeader(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		testCheckWithLeader(t, s, s.Path(t))
	})
	t.Run("follower", func(t *testing.T) {
		zktest.OneRunIn(t, 8)
		s := zktest.Ensemble(t, 3)
		for _, m := range s.Members() {
			if m != s.Leader(t) {
				testCheckWithLeader(t, m, "/d")
				return
			}
		}
	})
}

func testCheckWithLeader(t *testing.T, s *zktest.Server, dir string) {
	u, conn := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Client(t)
	create := func(path string, acl []zk.ACL) {
		zktest.Eventually(t, timeLimit, func() bool { // on a busy machine a follower may lose its leader, and its clients
			_, err := conn.Create(path, nil, 0, acl)
			return err == nil || errors.Is(err, zk.ErrNodeExists)
		}, "%s is there", path)
	}
	create(dir, zk.WorldACL(zk.PermAll))
	var nodes, readable []string
	for i := range 2*epoch.MaxChecks + 10 {
		path, acl := fmt.Sprintf("%s/n-%04d", dir, i), zk.WorldACL(zk.PermAll)
		nodes = append(nodes, path)
		switch i % 50 {
		case 0:
			continue
		case 1:
			acl = zk.WorldACL(zk.PermDelete)
		default:
			readable = append(readable, path)
		}
		create(path, acl)
	}
	zktest.Eventually(t, timeLimit, func() bool { // over a connection that stays
		c := u.bridge.state.Load().conn
		if c == nil {
			return false
		}
		confirmed, phantoms := epoch.CheckWithLeader(zkconn.NewClient(c), slices.Clone(nodes))
		if len(phantoms) != 0 {
			t.Errorf("phantoms %v", phantoms)
		}
		return slices.Equal(confirmed, readable)
	}, "all nodes that may be read are confirmed")
	_, stat, err := conn.Get(dir)
	must(t, err)
	if got := u.list(dir); len(got) != int(stat.NumChildren) || stat.Version != 0 {
		t.Errorf("%d nodes, %+v", len(got), stat)
	}
}
