package zkbridge

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// raise writes a generation as another client would, below a chroot.
func raise(t *testing.T, conn *zk.Conn, root string, generation uint64) {
	t.Helper()
	data := []byte(strconv.FormatUint(generation, 10))
	_, err := conn.Set(root+GenerationPath, data, -1)
	if err == zk.ErrNoNode {
		_, err = conn.Create(root+GenerationPath, data, 0, zk.WorldACL(zk.PermAll))
	}
	must(t, err)
}

// below is a user of a bridge below a chroot of its own: the generation is another one's.
func below(t *testing.T, s *zktest.Server) (u *user, conn *zk.Conn, root string) {
	root, conn = s.Path(t), s.Client(t)
	_, err := conn.Create(root, nil, 0, zk.WorldACL(zk.PermAll))
	must(t, err)
	return newUser(t, connected(t, Config{Servers: s.Addr() + root})), conn, root
}

// No create after a change of the generation has the earlier generation: the event of the watch comes
// before the answer, and the answer waits for the read.
func TestGenerationOfCreates(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		u, conn, root := below(t, s)
		if m := u.created("/d", "n-"); m.GetGeneration() != 0 {
			t.Errorf("before it was raised: %v", m)
		}
		for g := uint64(7); g < 40; g++ {
			raise(t, conn, root, g)
			if m := u.created("/d", "n-"); m.GetGeneration() != g {
				t.Fatalf("generation %d: %v", g, m)
			}
		}
		if err := conn.Delete(root+GenerationPath, -1); err != nil {
			t.Fatal(err)
		}
		if m := u.created("/d", "n-"); m.GetGeneration() != 39 {
			t.Errorf("after its node was deleted: %v", m)
		}
	})
}

// While others raise it, the generation of each node is the one that its czxid was made in,
// also through cuts of the connection and in the next session.
func TestGenerationIsThatOfTheCzxid(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		root, conn := s.Path(t), s.Client(t)
		_, err := conn.Create(root, nil, 0, zk.WorldACL(zk.PermAll))
		must(t, err)
		proxy := zktest.Proxy(t, s.Addr())
		u := newUser(t, connected(t, Config{Servers: proxy.Addr() + root}))
		u.created("/d", "first-")
		var from []int64 // zxid of each raise
		const rounds, each = 30, 10
		for g := range uint64(rounds) {
			for range each {
				u.create("/d", "n-")
			}
			raise(t, conn, root, g+1)
			_, stat, err := conn.Get(root + GenerationPath)
			must(t, err)
			from = append(from, stat.Mzxid)
			if g%7 == 6 {
				proxy.Cut()
			}
		}
		answered := 0
		for answered < rounds*each {
			switch m := next[any](t, u.peer).(type) {
			case *messages.Created:
				want := uint64(0)
				for i, zxid := range from {
					if zxid < m.GetCzxid() {
						want = uint64(i + 1)
					}
				}
				if m.GetGeneration() != want {
					t.Errorf("%v, want generation %d", m, want)
				}
				answered++
			case *messages.Failed: // between two changes of which only the last was seen
				if m.GetReason() != messages.Reason_NODE_DELETED {
					t.Errorf("%v", m)
				}
				answered++
			}
		}
	})
}

// The watch goes with its connection: the generation is read again over the next one.
func TestGenerationChangesWhileAway(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		root, conn := s.Path(t), s.Client(t)
		_, err := conn.Create(root, nil, 0, zk.WorldACL(zk.PermAll))
		must(t, err)
		proxy := zktest.Proxy(t, s.Addr())
		u := newUser(t, connected(t, Config{Servers: proxy.Addr() + root}))
		u.subscribe()
		u.created("/d", "n-")
		proxy.Refuse(true)
		proxy.Cut()
		state(t, u.peer, messages.SessionState_SUSPENDED)
		raise(t, conn, root, 5)
		id := u.create("/d", "n-")
		proxy.Refuse(false)
		if m := next[*messages.Created](t, u.peer); m.GetId() != id || m.GetGeneration() != 5 {
			t.Errorf("%v", m)
		}
		s.Expire(t, u.bridge.Session().ID)
		proxy.Cut()
		state(t, u.peer, messages.SessionState_LOST)
		state(t, u.peer, messages.SessionState_CONNECTED)
		if m := u.created("/d", "n-"); m.GetGeneration() != 5 {
			t.Errorf("in the next session: %v", m)
		}
	})
}

// Without a generation there are no tokens: creates fail, their nodes go, and the reason is named.
func TestGenerationUnreadable(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		root, conn := s.Path(t), s.Client(t)
		for _, path := range []string{root, root + homeDirectory} {
			_, err := conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
			must(t, err)
		}
		_, err := conn.Create(root+GenerationPath, []byte("seven"), 0, zk.WorldACL(zk.PermAll))
		must(t, err)
		u := newUser(t, connected(t, Config{Servers: s.Addr() + root}))
		u.create("/d", "n-")
		if m := next[*messages.Failed](t, u.peer); m.GetReason() != messages.Reason_INVALID || !strings.Contains(m.GetDetail(), `"seven"`) {
			t.Errorf("%v", m)
		}
		if names := s.Nodes(t, root+"/d"); len(names) != 0 {
			t.Errorf("left: %v", names)
		}
		if m := u.transacted(makeOp("/d/plain", ""), setOp("/d/plain", "")); m.GetNoGeneration() != messages.Reason_INVALID {
			t.Errorf("%v", m)
		}
		raise(t, conn, root, 7)
		zktest.Eventually(t, patience, func() bool {
			u.create("/d", "n-")
			m, ok := next[any](t, u.peer).(*messages.Created)
			return ok && m.GetGeneration() == 7
		}, "the generation is read once it is one")
		_, err = conn.SetACL(root+GenerationPath, zk.WorldACL(zk.PermAll&^zk.PermRead), -1)
		must(t, err)
		other := newUser(t, connected(t, Config{Servers: s.Addr() + root}))
		other.create("/d", "n-")
		if m := next[*messages.Failed](t, other.peer); m.GetReason() != messages.Reason_NO_AUTH || !strings.Contains(m.GetDetail(), "READ is not granted on "+GenerationPath) {
			t.Errorf("%v", m)
		}
	})
}

// A session begins with a transaction: what it reads first is not older than what a former
// session of this process has seen, also on a server that lags behind.
func TestSessionBeginsWithATransaction(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	var count counter
	u := newUser(t, connected(t, Config{Servers: s.Addr(), Dial: count.dial}))
	u.list("/d")
	got := count.take()
	if got[int32(embedded.OpCreate)] == 0 || got[int32(embedded.OpGetData)] != 1 {
		t.Errorf("a session began with %v", got)
	}
}

// A generation that cannot be read is read again every generationPause, however often the connection was
// lost meanwhile.
func TestGenerationIsReadAgain(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		s := embedded.Run(t, embedded.ServerConfig{MemoryOnly: true, TickTime: 100 * time.Millisecond})
		first := connected(t, Config{Servers: "embedded:1", SessionTimeout: 2 * time.Second, Dial: s.Dial})
		newUser(t, first).transacted(makeOp(GenerationPath, "seven"))
		var count counter
		b := connected(t, Config{Servers: "embedded:1", SessionTimeout: 2 * time.Second, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := s.Dial(ctx, network, address)
			return tap{conn, count.count}, err
		}})
		u := newUser(t, b)
		u.subscribe()
		state(t, u.peer, messages.SessionState_CONNECTED)
		for range 5 {
			s.DropConnections()
			state(t, u.peer, messages.SessionState_SUSPENDED)
			state(t, u.peer, messages.SessionState_CONNECTED)
		}
		time.Sleep(generationPause) // virtual
		count.take()
		time.Sleep(10 * generationPause)
		if got := count.take()[int32(embedded.OpGetData)]; got != 10 {
			t.Errorf("read %d times", got)
		}
		for _, b := range []*Bridge{first, b} {
			b.Close()
			<-b.ended
		}
	})
}

// Whatever stands against writing the session node, it is not tried without end.
func TestSessionNodeCannotBeWritten(t *testing.T) {
	t.Parallel()
	for _, refusal := range []error{zk.ErrNoAuth, zkconn.ServerError(-125)} { // -125 is a quota
		s := zktest.Embedded(t)
		u := newUser(t, connected(t, Config{Servers: s.Addr()}))
		u.do(func(c *bridgeActor) {
			if c.epoch.SessionNodeFailed(refusal); c.epoch.writer.SessionNode != "" || !c.epoch.ready {
				t.Errorf("%v: the session node is %q", refusal, c.epoch.writer.SessionNode)
			}
		})
		u.created("/d", "n-")
	}
}

// An operator that deletes the session node, or its directory too, delays creates and deletes and no
// more.
func TestSessionNodeIsDeleted(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		u, conn, root := below(t, s)
		for _, all := range []bool{false, true, false} {
			first := u.created("/d", "n-")
			must(t, conn.Delete(root+sessionNodePath(u.bridge.Session().ID), -1))
			if all {
				if err := conn.Delete(root+homeDirectory, -1); !errors.Is(err, zk.ErrNoNode) { // the server deletes empty containers, too
					must(t, err)
				}
			}
			answers := 0
			u.together(func() {
				u.release("/d", first.GetNode())
				u.create("/d", "n-")
				u.create("/d", "n-")
			})
			for range 3 {
				switch m := next[any](t, u.peer).(type) {
				case *messages.Created, *messages.NodeReleased:
					answers++
				default:
					t.Errorf("%v", m)
				}
			}
			if exists, _, err := conn.Exists(root + sessionNodePath(u.bridge.Session().ID)); answers != 3 || !exists || err != nil {
				t.Errorf("%d answers; session node %v, %v", answers, exists, err)
			}
		}
		if names := s.Nodes(t, root+"/d"); len(names) != 6 {
			t.Errorf("%v", names)
		}
	})
}
