package zkbridge

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// phantomTest is a client in virtual time that watches a node of another one, at the first of
// its servers.
type phantomTest struct {
	*user
	server       *embedded.Server
	log          *record
	other        *user
	address      string // of the client's server
	node         string
	transactions *embedded.Injected // of the client's session, on the watched node
}

func inPhantomTest(t *testing.T, servers string, f func(t *testing.T, p *phantomTest)) {
	zktest.Bubble(t, func(t *testing.T) {
		p := &phantomTest{log: &record{},
			server: embedded.Run(t, embedded.ServerConfig{MemoryOnly: true, TickTime: time.Second, MaxSessionTimeout: time.Minute})}
		dial := func(ctx context.Context, network, address string) (net.Conn, error) {
			p.address = address
			return p.server.Dial(ctx, network, address)
		}
		b := connected(t, p.log.of(t, Config{Servers: servers, SessionTimeout: 10 * time.Second, Dial: dial}))
		p.user = newUser(t, b)
		p.other = newUser(t, connected(t, Config{Servers: "other:1", SessionTimeout: 10 * time.Second, Dial: p.server.Dial}))
		p.node = p.other.created("/d", "n-").GetNode()
		p.watch("/d", p.node)
		p.transactions = p.server.Inject(embedded.Fault{Op: embedded.OpMulti, Path: "/d/" + p.node, Session: b.Session().ID,
			Action: embedded.DelayReply, Times: -1})
		f(t, p)
		for _, b := range []*Bridge{b, p.other.bridge} {
			b.Close()
			<-b.ended
		}
	})
}

// leave deletes the watched node, so that the client's server goes on to show it.
func (p *phantomTest) leave() {
	p.server.Haunt(p.address, "/d/"+p.node)
	p.other.release("/d", p.node)
	next[*messages.NodeReleased](p.t, p.other.peer)
}

// woken reports whether the client has been told that the node is gone.
func (p *phantomTest) woken() bool {
	synctest.Wait()
	for len(p.inbox) > 0 {
		p.seen = append(p.seen, <-p.inbox)
	}
	return slices.ContainsFunc(p.seen, func(msg any) bool {
		wake, ok := msg.(*messages.Wake)
		return ok && wake.GetNode() == p.node && wake.GetDeleted()
	})
}

const longestPhantom = leaderCheckPause + leaderCheckPause/4 + time.Second

// A client whose server shows a node that the leader does not have says so, and learns from
// another server that the node is gone. Its session goes on.
func TestPhantom(t *testing.T) {
	t.Parallel()
	inPhantomTest(t, "one:1,two:1", func(t *testing.T, p *phantomTest) {
		bad := p.address
		time.Sleep(10 * time.Second)
		p.leave()
		time.Sleep(leaderCheckPause - 11*time.Second)
		if p.woken() || p.log.errors("") != 0 {
			t.Fatal("the test does not show the client a phantom")
		}
		time.Sleep(2 * longestPhantom)
		if !p.woken() {
			t.Errorf("the client waits for a node that is gone:\n%s", p.log)
		}
		if p.log.errors("leader does not have") != 1 || p.log.errors(bad) != 1 || p.log.errors("/d/"+p.node) != 1 {
			t.Errorf("the log does not name server and node once:\n%s", p.log)
		}
		if now := p.bridge.Session(); now.Epoch != 1 || p.address == bad {
			t.Errorf("%+v at %s", now, p.address)
		}
	})
}

// A client of a single server stays with it, and says so each time.
func TestPhantomOfTheOnlyServer(t *testing.T) {
	t.Parallel()
	inPhantomTest(t, "one:1", func(t *testing.T, p *phantomTest) {
		p.leave()
		time.Sleep(3 * longestPhantom)
		if p.woken() || p.log.errors("leader does not have") < 2 || strings.Contains(p.log.String(), "SUSPENDED") {
			t.Errorf("woken %v; the log:\n%s", p.woken(), p.log)
		}
	})
}

// The leader is asked once a minute, or a session timeout, for what does not change. It is not
// asked for what has changed.
func TestLeaderIsAskedSeldom(t *testing.T) {
	t.Parallel()
	inPhantomTest(t, "one:1,two:1", func(t *testing.T, p *phantomTest) {
		time.Sleep(leaderCheckPause - time.Second)
		if n := len(p.transactions.Firings()); n != 0 {
			t.Errorf("asked %d times within %v", n, leaderCheckPause)
		}
		time.Sleep(time.Hour)
		if n := len(p.transactions.Firings()); n > 61 || n < 20 {
			t.Errorf("asked %d times in an hour", n)
		}
		p.other.release("/d", p.node)
		next[*messages.Wake](t, p.peer)
		asked := len(p.transactions.Firings())
		time.Sleep(time.Hour)
		if n := len(p.transactions.Firings()); n != asked || p.log.errors("") != 0 {
			t.Errorf("asked %d times, then %d times, without a watch: %s", asked, n, p.log)
		}
	})
}

// While the leader is asked the connection may be lost, and the node may go.
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
				fired(t, fault)
				p.other.release("/d", p.node)
				time.Sleep(longestPhantom)
				if p.woken() != (name != "expired") || p.log.errors("leader does not have") != 0 {
					t.Errorf("woken %v; the log:\n%s", p.woken(), p.log)
				}
			})
		})
	}
}

// The leader reports which of many nodes exist, whichever client may read them, and nothing changes.
func TestCheckWithLeader(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		askLeaderOf(t, s, s.Path(t))
	})
	t.Run("follower", func(t *testing.T) {
		zktest.OneRunIn(t, 8)
		s := zktest.Ensemble(t, 3)
		for _, m := range s.Members() {
			if m != s.Leader(t) {
				askLeaderOf(t, m, "/d")
				return
			}
		}
	})
}

func askLeaderOf(t *testing.T, s *zktest.Server, dir string) {
	u, conn := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Client(t)
	_, err := conn.Create(dir, nil, 0, zk.WorldACL(zk.PermAll))
	must(t, err)
	var nodes, there []string
	for i := range 2*maxChecks + 10 {
		path, acl := fmt.Sprintf("%s/n-%04d", dir, i), zk.WorldACL(zk.PermAll)
		nodes = append(nodes, path)
		switch i % 50 {
		case 0:
			continue
		case 1:
			acl = zk.WorldACL(zk.PermDelete)
		default:
			there = append(there, path)
		}
		_, err := conn.Create(path, nil, 0, acl)
		must(t, err)
	}
	c := u.bridge.state.Load().conn
	confirmed, phantoms := checkWithLeader(zkconn.NewClient(c, nil, ""), slices.Clone(nodes))
	if !slices.Equal(confirmed, there) || len(phantoms) != 0 {
		t.Errorf("%d of %d confirmed, phantoms %v", len(confirmed), len(there), phantoms)
	}
	_, stat, err := conn.Get(dir)
	must(t, err)
	if got := u.list(dir); len(got) != int(stat.NumChildren) || stat.Version != 0 {
		t.Errorf("%d nodes, %+v", len(got), stat)
	}
}
