package zkbridge

import (
	"testing"
	"time"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

func (u *user) createGuarded(directory, name, guard string) uint64 {
	return u.sendCreate(&messages.Create{Directory: directory, Prefix: name, Guard: guard, Data: []byte(name)})
}

func TestCreateGuarded(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		u, dir, conn := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t), s.Client(t)
		// The directory is missing, and is not made.
		u.failed(u.createGuarded(dir, "r-0000000000", "w-0000000000"), messages.Reason_NOT_HELD)
		if exists, _, err := conn.Exists(dir); exists || err != nil {
			t.Errorf("the directory exists: %v, %v", exists, err)
		}
		first := u.created(dir, "w-")
		id := u.createGuarded(dir, "r-0000000000", first.GetNode())
		m := next[*messages.Created](u)
		data, stat, err := conn.Get(dir + "/r-0000000000")
		if err != nil || string(data) != "r-0000000000" || stat.EphemeralOwner != u.bridge.Session().ID {
			t.Errorf("%q, %+v, %v", data, stat, err)
		}
		if m.GetId() != id || m.GetNode() != "r-0000000000" || m.GetCzxid() != stat.Czxid ||
			len(m.GetChildren()) != 2 || m.GetDirectoryCzxid() != first.GetDirectoryCzxid() {
			t.Errorf("%v", m)
		}
		// Another client has a node of that name.
		makeNode(t, conn, dir+"/theirs", "")
		u.failed(u.createGuarded(dir, "theirs", first.GetNode()), messages.Reason_INVALID, dir+"/theirs")
		u.release(dir, first.GetNode())
		next[*messages.NodeReleased](u)
		u.failed(u.createGuarded(dir, "r-0000000001", first.GetNode()), messages.Reason_NOT_HELD, first.GetNode()+" is not there")
		for _, guard := range []string{"a/b", ".."} {
			u.failed(u.createGuarded(dir, "r", guard), messages.Reason_INVALID)
		}
		if names := s.Nodes(t, dir); len(names) != 2 {
			t.Errorf("nodes %v", names)
		}
	})
}

// The node is made once, and found by its name, if the request or the reply is lost.
func TestCreateGuardedOutcomeUnknown(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		for _, action := range []embedded.Action{embedded.CutBefore, embedded.DropReply} {
			for _, op := range []embedded.Op{embedded.OpMulti, embedded.OpExists, embedded.OpGetChildren2} {
				s := zktest.Virtual(t)
				u, dir := newUser(t, connected(t, Config{Servers: s.Addr(), Dial: s.Dial})), s.Path(t)
				first := u.created(dir, "w-")
				u.created(dir, "r-") // its name begins with the name of the other one
				fault := s.Embedded().Inject(embedded.Fault{Op: op, Path: dir, Action: action})
				id := u.createGuarded(dir, "r-", first.GetNode())
				m := next[*messages.Created](u)
				waitFired(t, fault)
				stat, exists, err := u.exists(dir + "/r-")
				if m.GetId() != id || m.GetNode() != "r-" || !exists || err != nil || m.GetCzxid() != stat.Czxid {
					t.Errorf("%v at %v: %v, %+v, %v", action, op, m, stat, err)
				}
				if names := s.Nodes(t, dir); len(names) != 3 || len(m.GetChildren()) != 3 {
					t.Errorf("%v at %v: %v, nodes %v", action, op, m, names)
				}
			}
		}
	})
}

// The first node is deleted while the outcome of the create guard it is unknown.
func TestCreateGuardedOutcomeUnknownFirstDeleted(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		for _, action := range []embedded.Action{embedded.CutBefore, embedded.DropReply} {
			s := zktest.Virtual(t)
			u, dir, conn := newUser(t, connected(t, Config{Servers: s.Addr(), Dial: s.Dial})), s.Path(t), s.Client(t)
			first := u.created(dir, "w-")
			u.subscribe()
			away := s.Embedded().Inject(embedded.Fault{Op: embedded.OpDial, Times: -1, Action: embedded.CutBefore})
			s.Embedded().Inject(embedded.Fault{Op: embedded.OpMulti, Session: u.bridge.Session().ID, Action: action})
			id := u.createGuarded(dir, "r-0000000000", first.GetNode())
			u.waitState(messages.SessionState_SUSPENDED)
			must(t, conn.Delete(dir+"/"+first.GetNode(), -1))
			away.Remove()
			if action == embedded.CutBefore {
				u.failed(id, messages.Reason_NOT_HELD)
			} else if m := next[*messages.Created](u); m.GetId() != id {
				t.Errorf("%v", m)
			}
		}
	})
}

// A node whose directory another client deletes right after the create is said to be deleted, so that
// the lock looks for its other nodes, too.
func TestCreateGuardedDirectoryDeleted(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		f := &faultyClient{}
		u, dir, conn := userOfFaulty(t, Config{Servers: s.Addr()}, f), s.Path(t), s.Client(t)
		first := u.created(dir, "w-").GetNode()
		f.list = func() error { // of the read behind the create
			deleteTree(t, conn, dir)
			return nil
		}
		u.failed(u.createGuarded(dir, "r-0000000000", first), messages.Reason_NODE_DELETED, dir+"/r-0000000000")
	})
}

// A create that the server hangs up on each time, as on one that is too large, fails.
func TestCreateGuardedHungUpOn(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		s := zktest.Virtual(t)
		u, dir := newUser(t, connected(t, Config{Servers: s.Addr(), Dial: s.Dial, SessionTimeout: 40 * time.Second})), s.Path(t)
		first, other := u.created(dir, "w-"), u.created("/other", "n-")
		fault := s.Embedded().Inject(embedded.Fault{Op: embedded.OpMulti, Path: dir + "/r-", Action: embedded.CutBefore, Times: -1})
		u.failed(u.createGuarded(dir, "r-0000000000", first.GetNode()), messages.Reason_UNAVAILABLE, "jute.maxbuffer")
		if n := len(fault.Firings()); n > 8 {
			t.Errorf("the server hung up %d times", n)
		}
		if _, exists, err := u.exists("/other/" + other.GetNode()); !exists || err != nil || u.epoch() != 1 {
			t.Errorf("the other node exists: %v, %v, epoch %d", exists, err, u.epoch())
		}
	})
}
