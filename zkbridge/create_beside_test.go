package zkbridge

import (
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

func (u *user) createBeside(directory, name, beside string) uint64 {
	id := u.id()
	u.bridge.Ref().SendCreate(&messages.Create{Id: id, Epoch: u.epoch(), Directory: directory, Prefix: name, Beside: beside, Data: []byte(name)}, u)
	return id
}

func TestCreateBeside(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		u, dir, conn := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t), s.Client(t)
		// The directory is not there, and is not made.
		u.failed(u.createBeside(dir, "r-0000000000", "w-0000000000"), messages.Reason_NOT_HELD)
		if exists, _, err := conn.Exists(dir); exists || err != nil {
			t.Errorf("the directory is there: %v, %v", exists, err)
		}
		leader := u.created(dir, "w-")
		id := u.createBeside(dir, "r-0000000000", leader.GetNode())
		m := next[*messages.Created](t, u.peer)
		data, stat, err := conn.Get(dir + "/r-0000000000")
		if err != nil || string(data) != "r-0000000000" || stat.EphemeralOwner != u.bridge.Session().ID {
			t.Errorf("%q, %+v, %v", data, stat, err)
		}
		if m.GetId() != id || m.GetNode() != "r-0000000000" || m.GetCzxid() != stat.Czxid ||
			len(m.GetChildren()) != 2 || m.GetDirectoryCzxid() != leader.GetDirectoryCzxid() {
			t.Errorf("%v", m)
		}
		// The name is taken by another.
		_, err = conn.Create(dir+"/theirs", nil, 0, zk.WorldACL(zk.PermAll))
		must(t, err)
		f := u.failed(u.createBeside(dir, "theirs", leader.GetNode()), messages.Reason_INVALID)
		if !strings.Contains(f.GetDetail(), dir+"/theirs") {
			t.Errorf("%v", f)
		}
		u.release(dir, leader.GetNode())
		next[*messages.NodeReleased](t, u.peer)
		f = u.failed(u.createBeside(dir, "r-0000000001", leader.GetNode()), messages.Reason_NOT_HELD)
		if !strings.Contains(f.GetDetail(), leader.GetNode()+" is not there") {
			t.Errorf("%v", f)
		}
		for _, beside := range []string{"a/b", ".."} {
			u.failed(u.createBeside(dir, "r", beside), messages.Reason_INVALID)
		}
		if names := s.Nodes(t, dir); len(names) != 2 {
			t.Errorf("nodes %v", names)
		}
	})
}

// TestCreateBesideOutcomeUnknown loses the request or the answer: the node is made once and
// found by its name.
func TestCreateBesideOutcomeUnknown(t *testing.T) {
	t.Parallel()
	for _, action := range []embedded.Action{embedded.CutBefore, embedded.DropReply} {
		for _, op := range []embedded.Op{embedded.OpMulti, embedded.OpExists, embedded.OpGetChildren2} {
			s := zktest.Embedded(t)
			u, dir := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t)
			leader := u.created(dir, "w-")
			u.created(dir, "r-") // of a name that begins as the other's
			fault := s.Embedded().Inject(embedded.Fault{Op: op, Path: dir, Action: action})
			id := u.createBeside(dir, "r-", leader.GetNode())
			m := next[*messages.Created](t, u.peer)
			fired(t, fault)
			stat, exists, err := u.exists(dir + "/r-")
			if m.GetId() != id || m.GetNode() != "r-" || !exists || err != nil || m.GetCzxid() != stat.Czxid {
				t.Errorf("%v at %v: %v, %+v, %v", action, op, m, stat, err)
			}
			if names := s.Nodes(t, dir); len(names) != 3 || len(m.GetChildren()) != 3 {
				t.Errorf("%v at %v: %v, nodes %v", action, op, m, names)
			}
		}
	}
}

// The leader goes while it is not known whether the follower is there.
func TestCreateBesideOutcomeUnknownLeaderGoes(t *testing.T) {
	t.Parallel()
	for _, action := range []embedded.Action{embedded.CutBefore, embedded.DropReply} {
		s := zktest.Embedded(t)
		u, dir, conn := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t), s.Client(t)
		leader := u.created(dir, "w-")
		u.subscribe()
		refusing := s.Embedded().Inject(embedded.Fault{Op: embedded.OpDial, Times: -1, Action: embedded.CutBefore})
		s.Embedded().Inject(embedded.Fault{Op: embedded.OpMulti, Session: u.bridge.Session().ID, Action: action})
		id := u.createBeside(dir, "r-0000000000", leader.GetNode())
		state(t, u.peer, messages.SessionState_SUSPENDED)
		must(t, conn.Delete(dir+"/"+leader.GetNode(), -1))
		refusing.Remove()
		if action == embedded.CutBefore {
			u.failed(id, messages.Reason_NOT_HELD)
		} else if m := next[*messages.Created](t, u.peer); m.GetId() != id {
			t.Errorf("%v", m)
		}
	}
}

func (u *user) exists(path string) (zk.Stat, bool, error) {
	view, err := u.bridge.GetNode(inTime(u.t), path)
	return view.Stat, view.Exists, err
}
