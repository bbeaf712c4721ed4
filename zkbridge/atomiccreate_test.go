package zkbridge

import (
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
	"github.com/actorlock/actorlock/zkbridge/zkpath"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// createAtomically sends an atomic create with a node of each user in its directory.
func createAtomically(users []*user, dirs []string) {
	var parts []*Create
	for i, u := range users {
		parts = append(parts, u.bridge.NewCreate(u, &messages.Create{Id: u.id(), Epoch: u.epoch(), Directory: dirs[i], DirectorySeen: u.saw[dirs[i]], Prefix: fmt.Sprintf("n%d-", i)}))
	}
	users[0].bridge.CreateAtomically(parts)
}

// newUsers returns n users of one bridge, with a directory for each.
func newUsers(t *testing.T, b *internals, s *zktest.Server, n int) (users []*user, dirs []string) {
	path := s.Path(t)
	for i := range n {
		users, dirs = append(users, newUser(t, b)), append(dirs, fmt.Sprintf("%s/%d", path, i))
	}
	return users, dirs
}

// createdAtomically waits for the answers, and releases the nodes. One transaction must have
// created all of them.
func createdAtomically(t *testing.T, users []*user, dirs []string, conn *zk.Conn) {
	t.Helper()
	var zxid int64
	for i, u := range users {
		m := next[*messages.Created](u)
		if zxid == 0 {
			zxid = m.GetCzxid()
		}
		exists, stat, err := conn.Exists(dirs[i] + "/" + m.GetNode())
		if err != nil || !exists || stat.Czxid != zxid || m.GetCzxid() != zxid {
			t.Errorf("node %s of transaction %#x, answered with czxid %#x, not %#x: %v", m.GetNode(), stat.Czxid, m.GetCzxid(), zxid, err)
		}
		u.release(dirs[i], m.GetNode())
		next[*messages.NodeReleased](u)
		none[*messages.Failed](u)
	}
}

func TestCreateAtomically(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		conn := s.Client(t)
		users, dirs := newUsers(t, connected(t, Config{Servers: s.Addr()}), s, 3)
		for range 3 { // the first makes the directories
			createAtomically(users, dirs)
			createdAtomically(t, users, dirs, conn)
		}
		// One of the directories was deleted.
		if err := conn.Delete(dirs[1], -1); err != nil && err != zk.ErrNoNode {
			t.Fatal(err)
		}
		createAtomically(users, dirs)
		createdAtomically(t, users, dirs, conn)
		// Twice in one directory.
		dirs[2] = dirs[0]
		createAtomically(users, dirs)
		createdAtomically(t, users, dirs, conn)
	})
}

// Without a session node the transaction does not return its zxid: a read of each node does. A node
// whose directory the client may not read is deleted again, and its create fails with the reason.
func TestCreateAtomicallyWithoutSessionNode(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	conn := s.Client(t)
	users, dirs := newUsers(t, userWithoutSessionNode(t, s).bridge, s, 3)
	home, _ := zkpath.Split(dirs[1])
	for _, path := range append([]string{home}, dirs...) { // no containers, which the server removes when they are empty, and with which the transaction returns its zxid
		if _, err := conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
	}
	createAtomically(users, dirs)
	createdAtomically(t, users, dirs, conn)
	setRights(t, conn, dirs[1], zk.PermAll&^zk.PermRead)
	createAtomically(users, dirs)
	if m := next[*messages.Failed](users[1]); m.GetReason() != messages.Reason_NO_AUTH || !strings.Contains(m.GetDetail(), "it was made and is deleted again") {
		t.Error(m)
	}
	createdAtomically(t, []*user{users[0], users[2]}, []string{dirs[0], dirs[2]}, conn)
	setRights(t, conn, dirs[1], zk.PermAll)
	if names := s.Nodes(t, dirs[1]); len(names) != 0 {
		t.Errorf("nodes %v", names)
	}
}

// The bridge keeps the data of a directory, and reads its czxid, which the transaction does not
// return.
func TestCreateAtomicallyInADirectoryWithData(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		conn := s.Client(t)
		users, dirs := newUsers(t, connected(t, Config{Servers: s.Addr()}), s, 2)
		home, _ := zkpath.Split(dirs[0])
		for _, path := range []string{home, dirs[1]} {
			if _, err := conn.Create(path, []byte("theirs"), 0, zk.WorldACL(zk.PermAll)); err != nil {
				t.Fatal(err)
			}
		}
		createAtomically(users, dirs)
		createdAtomically(t, users, dirs, conn)
		if data, _, err := conn.Get(dirs[1]); string(data) != "theirs" {
			t.Error(string(data), err)
		}
		for _, path := range []string{dirs[1], dirs[0], home} {
			conn.Delete(path, -1)
		}
	})
}

// An atomic create fails if one of its nodes cannot be created.
func TestCreateAllOrNone(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		conn := s.Client(t)
		b := connected(t, Config{Servers: s.Addr()})
		users, dirs := newUsers(t, b, s, 3)
		createAtomically(users, dirs)
		createdAtomically(t, users, dirs, conn)
		closed := s.Path(t) + "-closed"
		if _, err := conn.Create(closed, nil, 0, zk.WorldACL(zk.PermRead)); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			dir  string
			want messages.Reason
		}{{closed, messages.Reason_NO_AUTH}, {"relative", messages.Reason_INVALID}} {
			createAtomically(users, []string{dirs[0], c.dir, dirs[2]})
			for _, u := range users {
				if m := next[*messages.Failed](u); m.GetReason() != c.want {
					t.Errorf("%v in %s", m, c.dir)
				}
				none[*messages.Created](u)
			}
		}
		for _, dir := range dirs {
			if names := s.Nodes(t, dir); len(names) > 0 {
				t.Errorf("%v is left in %s", names, dir)
			}
		}
		conn.Delete(closed, -1)
	})
}

// An atomic create whose request or reply is lost creates one node for each user, in one
// transaction.
func TestCreateAtomicallyOutcomeUnknown(t *testing.T) {
	t.Parallel()
	for _, actions := range [][]embedded.Action{
		{embedded.DropReply}, {embedded.CutBefore},
		{embedded.CutBefore, embedded.DropReply}, // the outcome is unknown twice: not executed, then executed
	} {
		t.Run(fmt.Sprint(actions), func(t *testing.T) {
			zktest.Bubble(t, func(t *testing.T) {
				s := zktest.Virtual(t)
				conn := s.Client(t)
				users, dirs := newUsers(t, connected(t, Config{Servers: s.Addr(), Dial: s.Dial}), s, 3)
				createAtomically(users, dirs)
				createdAtomically(t, users, dirs, conn)
				var faults []*embedded.Injected
				for _, action := range actions {
					faults = append(faults, s.Embedded().Inject(embedded.Fault{Op: embedded.OpMulti, Path: dirs[0] + "/", Action: action}))
				}
				createAtomically(users, dirs)
				createdAtomically(t, users, dirs, conn)
				for _, fault := range faults {
					if len(fault.Firings()) != 1 {
						t.Error("the fault did not fire")
					}
				}
				for _, dir := range dirs {
					if names := s.Nodes(t, dir); len(names) > 0 {
						t.Errorf("%v is left in %s", names, dir)
					}
				}
			})
		})
	}
}

// One node of an atomic create whose outcome is unknown is deleted before the bridge looks for it.
// The other nodes show that the transaction was executed, and only the sender of the deleted one
// gets a failure.
func TestCreateAtomicallyOutcomeUnknownAndOneDeleted(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		s := zktest.Virtual(t)
		conn := s.Client(t)
		users, dirs := newUsers(t, connected(t, Config{Servers: s.Addr(), Dial: s.Dial}), s, 3)
		for _, dir := range append([]string{path.Dir(dirs[0])}, dirs...) { // no containers, which the server would delete
			makeNode(t, conn, dir, "")
		}
		for i, u := range users {
			u.saw[dirs[i]] = true
		}
		for deleted := range dirs {
			fault := s.Embedded().Inject(embedded.Fault{Op: embedded.OpMulti, Path: dirs[0] + "/", Action: embedded.DropReply})
			away := s.Embedded().Inject(embedded.Fault{Op: embedded.OpDial, Action: embedded.CutBefore, Times: 1000})
			createAtomically(users, dirs)
			<-fault.Fired()
			var names []string
			zktest.Eventually(t, timeLimit, func() bool {
				names, _, _ = conn.Children(dirs[deleted])
				return len(names) == 1
			}, "the node is created")
			if err := conn.Delete(dirs[deleted]+"/"+names[0], -1); err != nil {
				t.Fatal(err)
			}
			away.Remove()
			for i, u := range users {
				if i == deleted {
					if m := next[*messages.Failed](u); m.GetReason() != messages.Reason_NODE_DELETED {
						t.Error(m)
					}
					continue
				}
				u.release(dirs[i], next[*messages.Created](u).GetNode())
				next[*messages.NodeReleased](u)
			}
		}
	})
}

// Many atomic creates run beside creates and releases of single nodes.
func TestCreateAtomicallyAmongOthers(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		const rounds = 50
		conn := s.Client(t)
		b := connected(t, Config{Servers: s.Addr()})
		users, dirs := newUsers(t, b, s, 4)
		single := newUser(t, b)
		for range rounds {
			createAtomically(users, dirs)
			single.create(dirs[0], "single-")
		}
		for range rounds {
			zxids := map[int64]bool{}
			for i, u := range users {
				m := next[*messages.Created](u)
				zxids[m.GetCzxid()] = true
				u.release(dirs[i], m.GetNode())
			}
			if len(zxids) != 1 {
				t.Errorf("nodes of %d transactions", len(zxids))
			}
			single.release(dirs[0], next[*messages.Created](single).GetNode())
		}
		for range rounds {
			for _, u := range append(users, single) {
				next[*messages.NodeReleased](u)
			}
		}
		for _, dir := range dirs {
			if names, _, err := conn.Children(dir); err == nil && len(names) > 0 {
				t.Errorf("%v is left in %s", names, dir)
			}
		}
	})
}

func TestCreateAtomicallyRefused(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	b := connected(t, Config{Servers: s.Addr(), MaxOutstanding: 2})
	users, dirs := newUsers(t, b, s, MaxAtomicCreates+1)
	createAtomically(users, dirs)
	for _, u := range users {
		if m := next[*messages.Failed](u); m.GetReason() != messages.Reason_INVALID {
			t.Fatal(m)
		}
	}
	// Each is small enough by itself; together they are more than ZooKeeper accepts.
	var large []*Create
	for i, u := range users[:2] {
		large = append(large, b.NewCreate(u, &messages.Create{Id: 6, Epoch: b.Session().Epoch, Directory: dirs[i], Prefix: "n-", Data: make([]byte, zkconn.MaxRequest*3/4)}))
	}
	b.CreateAtomically(large)
	for _, u := range users[:2] {
		if m := next[*messages.Failed](u); m.GetReason() != messages.Reason_INVALID || m.GetId() != 6 {
			t.Error(m)
		}
	}
	createAtomically(users[:3], dirs)
	for _, u := range users[:3] { // all for the same reason
		if m := next[*messages.Failed](u); m.GetReason() != messages.Reason_LIMIT_EXCEEDED {
			t.Error(m)
		}
	}
	epoch := b.Session().Epoch
	b.Close()
	b.CreateAtomically([]*Create{b.NewCreate(users[0], &messages.Create{Id: 7, Epoch: epoch, Directory: dirs[0], Prefix: "n-"})})
	if m := next[*messages.Failed](users[0]); m.GetReason() != messages.Reason_CLOSED || m.GetId() != 7 {
		t.Error(m)
	}
}
