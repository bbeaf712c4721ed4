package zkbridge

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/internal/epoch"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// raise writes a generation as another client, below a chroot.
func raise(t *testing.T, conn *zk.Conn, root string, generation uint64) {
	t.Helper()
	data := []byte(strconv.FormatUint(generation, 10))
	_, err := conn.Set(root+GenerationPath, data, -1)
	if err == zk.ErrNoNode {
		_, err = conn.Create(root+GenerationPath, data, 0, zk.WorldACL(zk.PermAll))
	}
	must(t, err)
}

// userInChroot returns a user of a bridge with a chroot of its own, so that no other test changes
// the generation.
func userInChroot(t *testing.T, s *zktest.Server) (u *user, conn *zk.Conn, root string) {
	root, conn = s.Path(t), s.Client(t)
	makeNode(t, conn, root, "")
	return newUser(t, connected(t, Config{Servers: s.Addr() + root})), conn, root
}

func TestGenerationOfNode(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]uint64{"0": 0, "7": 7, "007": 7, "18446744073709551615": 1<<64 - 1} {
		if got, err := (NodeView{Exists: true, Data: []byte(text)}).Generation(); got != want || err != nil {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", " 7", "7\n", "+7", "-7", "0x7", "1_000", "seven", "18446744073709551616", strings.Repeat("x", 1<<20)} {
		_, err := (NodeView{Exists: true, Data: []byte(text)}).Generation()
		if !errors.Is(err, messages.Reason_INVALID) || !strings.Contains(err.Error(), strconv.Quote(text)[:min(20, len(text))]) || len(err.Error()) > 200 {
			t.Errorf("%.20q: %.300v", text, err)
		}
	}
}

// createdIn creates nodes until one is made in a session of the generation.
func (u *user) createdIn(generation uint64) {
	u.t.Helper()
	zktest.Eventually(u.t, timeLimit, func() bool {
		u.create("/d", "n-")
		m, ok := next[any](u).(*messages.Created)
		return ok && m.GetGeneration() == generation
	}, "a session has the generation %d", generation)
}

// While another client raises the generation and connections are cut, each node has the generation
// that was in force at its czxid: ZooKeeper sends the event before the answer to any later create.
// Each raise ends one session.
func TestGenerationIsThatOfTheCzxid(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		root, conn := s.Path(t), s.Client(t)
		makeNode(t, conn, root, "")
		proxy := zktest.Proxy(t, s.Addr())
		u := newUser(t, connected(t, Config{Servers: proxy.Addr() + root}))
		u.created("/d", "first-")
		var from []int64 // zxid of each raise
		rounds, each := uint64(4), 10
		if zktest.Exhaustive() {
			rounds = 12
		}
		sent := 0
		var answers []*messages.Created
		for g := range rounds {
			for range each {
				u.create("/d", "n-")
				sent++
			}
			raise(t, conn, root, g+1)
			_, stat, err := conn.Get(root + GenerationPath)
			must(t, err)
			from = append(from, stat.Mzxid)
			if g%4 == 3 {
				proxy.Cut()
			}
			for len(answers) == 0 || answers[len(answers)-1].GetGeneration() <= g {
				switch m := next[any](u).(type) {
				case *messages.Created:
					answers = append(answers, m)
				case *messages.Failed:
					if m.GetReason() != messages.Reason_SESSION_LOST {
						t.Errorf("%v", m)
					}
				}
				if sent--; sent == 0 {
					u.create("/d", "n-")
					sent++
				}
			}
		}
		for _, m := range answers {
			want := uint64(0)
			for i, zxid := range from {
				if zxid < m.GetCzxid() {
					want = uint64(i + 1)
				}
			}
			if m.GetGeneration() != want {
				t.Errorf("%v, want generation %d", m, want)
			}
		}
		if epoch := u.epoch(); epoch != rounds+1 {
			t.Errorf("%d sessions for %d raises", epoch, rounds)
		}
	})
}

// A process raises a generation again that was deleted or lowered, and its next session has the new
// one.
func TestGenerationGoesBack(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		u, conn, root := userInChroot(t, s)
		raise(t, conn, root, 39)
		u.createdIn(39)
		var raised uint64
		for _, lower := range []func() error{
			func() error { return conn.Delete(root+GenerationPath, -1) },
			func() error { _, err := conn.Set(root+GenerationPath, []byte("7"), -1); return err },
		} {
			must(t, lower())
			zktest.Eventually(t, timeLimit, func() bool {
				data, _, err := conn.Get(root + GenerationPath)
				was := raised
				raised, _ = strconv.ParseUint(string(data), 10, 64)
				return err == nil && raised > max(was, 39)
			}, "the bridge has raised it again")
			u.createdIn(raised)
		}
	})
}

// The generation is read over each new connection before any request is sent: its watch has gone
// with the last one.
func TestGenerationChangesWhileAway(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		root, conn := s.Path(t), s.Client(t)
		makeNode(t, conn, root, "")
		proxy := zktest.Proxy(t, s.Addr())
		u := newUser(t, connected(t, Config{Servers: proxy.Addr() + root}))
		u.created("/d", "n-")
		wait := func(state messages.SessionState) {
			zktest.Eventually(t, timeLimit, func() bool { return u.bridge.Session().State == state }, "%v", state)
		}
		away := func(meanwhile func()) {
			wait(messages.SessionState_CONNECTED)
			proxy.Refuse(true)
			proxy.Cut()
			wait(messages.SessionState_SUSPENDED)
			meanwhile()
			proxy.Refuse(false)
		}
		away(func() {})
		away(func() { raise(t, conn, root, 5) })
		u.createdIn(5)
		away(func() {})
		away(func() { // another node with the same generation
			must(t, conn.Delete(root+GenerationPath, -1))
			raise(t, conn, root, 5)
		})
		if m := u.created("/d", "n-"); m.GetGeneration() != 5 || m.GetEpoch() != 2 {
			t.Errorf("%v", m)
		}
		away(func() {
			raise(t, conn, root, 6)
			u.create("/d", "early-")
		})
		u.failed(u.lastID, messages.Reason_SESSION_LOST, "the generation of tokens has changed")
		u.createdIn(6)
	})
}

// A create fails, with the reason, if the generation is not known, because there is no token. No
// node is made.
func TestGenerationUnreadable(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		root, conn := s.Path(t), s.Client(t)
		for _, path := range []string{root, root + GenerationDirectory} {
			makeNode(t, conn, path, "")
		}
		makeNode(t, conn, root+GenerationPath, "seven")
		u := newUser(t, connected(t, Config{Servers: s.Addr() + root}))
		u.create("/d", "n-")
		if m := next[*messages.Failed](u); m.GetReason() != messages.Reason_INVALID || !strings.Contains(m.GetDetail(), `"seven"`) {
			t.Errorf("%v", m)
		}
		if names := s.Nodes(t, root+"/d"); len(names) != 0 {
			t.Errorf("left: %v", names)
		}
		// Not in /d: it is a container, which ZooKeeper deletes once it is empty.
		if m := u.transacted(makeOp("/plain", ""), setOp("/plain", "")); m.GetNoGeneration() != messages.Reason_INVALID {
			t.Errorf("%v", m)
		}
		raise(t, conn, root, 7)
		u.createdIn(7)
		u.keepsSession() // it had no grants
		_, err := conn.Set(root+GenerationPath, []byte("eight"), -1)
		must(t, err)
		zktest.Eventually(t, timeLimit, func() bool { return u.bridge.NoTokens() != nil }, "the next session has no tokens")
		u.create("/d", "n-")
		if m := next[*messages.Failed](u); m.GetReason() != messages.Reason_INVALID || m.GetEpoch() != 2 {
			t.Errorf("%v", m)
		}
		raise(t, conn, root, 8)
		u.createdIn(8)
		if epoch := u.epoch(); epoch != 2 {
			t.Errorf("epoch %d", epoch)
		}
		setRights(t, conn, root+GenerationPath, zk.PermAll&^zk.PermRead)
		other := newUser(t, connected(t, Config{Servers: s.Addr() + root}))
		other.create("/d", "n-")
		if m := next[*messages.Failed](other); m.GetReason() != messages.Reason_NO_AUTH || !strings.Contains(m.GetDetail(), "READ is not granted on "+root+GenerationPath) {
			t.Errorf("%v", m)
		}
	})
}

// A session begins with a write, so that its first read is not older than what a former session of
// this process has seen, also on a server that lags behind.
func TestSessionBeginsWithAWrite(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	var d testDialer
	u := newUser(t, connected(t, Config{Servers: s.Addr(), Dial: d.Dial}))
	u.list("/d")
	got := d.take()
	if got[embedded.OpCreate] == 0 || got[embedded.OpGetData] != 1 {
		t.Errorf("a session began with %v", got)
	}
}

// A generation that cannot be read is read again every epoch.GenerationPause, however often the
// connection was lost meanwhile.
func TestGenerationIsReadAgain(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		s := embedded.Run(t, embedded.ServerConfig{MemoryOnly: true, TickTime: 100 * time.Millisecond})
		first := connected(t, Config{Servers: "embedded:1", SessionTimeout: 2 * time.Second, Dial: s.Dial})
		first.Multi(t.Context(), &zk.CreateRequest{Path: GenerationPath, Data: []byte("seven")}) // the answer is that or the end of the session
		d := testDialer{dial: s.Dial}
		b := connected(t, Config{Servers: "embedded:1", SessionTimeout: 2 * time.Second, Dial: d.Dial})
		u := newUser(t, b)
		u.subscribe()
		u.waitState(messages.SessionState_CONNECTED)
		for range 5 {
			s.DropConnections()
			u.waitState(messages.SessionState_SUSPENDED)
			u.waitState(messages.SessionState_CONNECTED)
		}
		time.Sleep(epoch.GenerationPause) // virtual
		d.take()
		time.Sleep(10 * epoch.GenerationPause)
		if got := d.take()[embedded.OpGetData]; got != 10 {
			t.Errorf("read %d times", got)
		}
		for _, b := range []*internals{first, b} {
			b.Close()
			<-b.ended
		}
	})
}

// The bridge gives up the session node if ZooKeeper refuses to write it, for whatever reason.
func TestSessionNodeCannotBeWritten(t *testing.T) {
	t.Parallel()
	for _, refusal := range []error{zk.ErrNoAuth, zkconn.ServerError(-125)} { // -125 is a quota
		s := zktest.Embedded(t)
		u := newUser(t, connected(t, Config{Servers: s.Addr()}))
		u.bridge.runInActor(func(c *bridgeActor) {
			if c.epoch.SessionNodeFailed(refusal); c.epoch.Writer.SessionNode != "" || !c.epoch.Ready {
				t.Errorf("%v: the session node is %q", refusal, c.epoch.Writer.SessionNode)
			}
		})
		u.created("/d", "n-")
	}
}

// A deletion of the session node, or of its directory too, by an operator only delays creates and
// deletes.
func TestSessionNodeIsDeleted(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		u, conn, root := userInChroot(t, s)
		for _, all := range []bool{false, true, false} {
			first := u.created("/d", "n-")
			must(t, conn.Delete(root+epoch.SessionNodePath(u.bridge.Session().ID), -1))
			if all {
				if err := conn.Delete(root+GenerationDirectory, -1); !errors.Is(err, zk.ErrNoNode) { // the server deletes empty containers, too
					must(t, err)
				}
			}
			answers := 0
			u.batch(func() {
				u.release("/d", first.GetNode())
				u.create("/d", "n-")
				u.create("/d", "n-")
			})
			for range 3 {
				switch m := next[any](u).(type) {
				case *messages.Created, *messages.NodeReleased:
					answers++
				default:
					t.Errorf("%v", m)
				}
			}
			if exists, _, err := conn.Exists(root + epoch.SessionNodePath(u.bridge.Session().ID)); answers != 3 || !exists || err != nil {
				t.Errorf("%d answers; session node %v, %v", answers, exists, err)
			}
		}
		if names := s.Nodes(t, root+"/d"); len(names) != 6 {
			t.Errorf("%v", names)
		}
	})
}

// A process that may not write the generation's node has no tokens while the node shows a smaller
// one than it has known, and says so.
func TestGenerationThatCannotBeRaised(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		root, conn := s.Path(t), s.Client(t)
		must(t, conn.AddAuth("digest", []byte("operator:secret")))
		readable := append(zk.WorldACL(zk.PermRead|zk.PermCreate), zk.AuthACL(zk.PermAll)...)
		for _, path := range []string{root, root + GenerationDirectory} {
			makeNode(t, conn, path, "")
		}
		_, err := conn.Create(root+GenerationPath, []byte("50"), 0, readable)
		must(t, err)
		var log bridgeLog
		u := newUser(t, connected(t, log.config(t, Config{Servers: s.Addr() + root})))
		if m := u.created("/d", "n-"); m.GetGeneration() != 50 {
			t.Errorf("%v", m)
		}
		_, err = conn.Set(root+GenerationPath, []byte("7"), -1)
		must(t, err)
		zktest.Eventually(t, timeLimit, func() bool { return u.bridge.NoTokens() != nil }, "the next session has no tokens")
		u.failed(u.create("/d", "n-"), messages.Reason_NO_AUTH, "went back from 50 to 7", "WRITE is not granted on "+root+GenerationPath)
		if !strings.Contains(log.String(), "no lock can be granted") {
			t.Error(log.String())
		}
		raise(t, conn, root, 51)
		u.createdIn(51)
	})
}
