package zkbridge

import (
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/internal/writer"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// refused waits for the answer to the request id, which must say each of the parts, and
// checks that the session goes on.
func (u *user) refused(id uint64, why messages.Reason, parts ...string) {
	u.t.Helper()
	m := next[*messages.Failed](u.t, u.peer)
	if m.GetId() != id || m.GetReason() != why {
		u.t.Errorf("%v, not for %d because of %v", m, id, why)
	}
	for _, part := range parts {
		if !strings.Contains(m.GetDetail(), part) {
			u.t.Errorf("%q does not say %q", m.GetDetail(), part)
		}
	}
	u.goesOn()
}

func (u *user) goesOn() {
	u.t.Helper()
	if s := u.bridge.Session(); s.Epoch != 1 || s.State != messages.SessionState_CONNECTED {
		u.t.Errorf("the session does not go on: %+v", s)
	}
}

// left waits until the directory has n nodes.
func left(t *testing.T, s *zktest.Server, dir string, n int) {
	t.Helper()
	zktest.Eventually(t, patience, func() bool { return len(s.Nodes(t, dir)) == n }, "%d nodes in %s", n, dir)
}

// errors counts the errors that were logged and contain text.
func (r *record) errors(text string) (n int) {
	for line := range strings.Lines(r.String()) {
		if strings.Contains(line, "level=ERROR") && strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// without takes a right on a node away, as another client.
func without(t *testing.T, s *zktest.Server, path string, right int32) {
	t.Helper()
	_, err := s.Client(t).SetACL(path, zk.WorldACL(zk.PermAll&^right), -1)
	must(t, err)
}

// The release is refused at once, the node goes when the right is back, and no other node
// of the session goes with it.
func TestReleaseRefused(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		var log record
		u, dir := newUser(t, connected(t, log.of(t, Config{Servers: s.Addr()}))), s.Path(t)
		node := u.created(dir, "n-").GetNode()
		u.created(dir+"/other", "other-")
		without(t, s, dir, zk.PermDelete)
		u.refused(u.release(dir, node), messages.Reason_NO_AUTH, dir+"/"+node, "DELETE is not granted on "+dir)
		u.list(dir)
		left(t, s, dir, 2)
		without(t, s, dir, 0)
		left(t, s, dir, 1)
		left(t, s, dir+"/other", 1)
		u.goesOn()
		if log.errors(node) != 1 || log.errors("DELETE is not granted on "+dir) != 1 {
			t.Errorf("logged: %s", log.String())
		}
	})
}

func TestReleaseRefusedInBatch(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		u, dir := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t)
		const n = 50
		nodes := make([]string, n)
		for i := range nodes {
			nodes[i] = u.created(dir, "n-").GetNode()
		}
		u.created(dir+"/other", "other-")
		without(t, s, dir, zk.PermDelete)
		for _, node := range nodes {
			u.release(dir, node)
		}
		for range n {
			if m := next[*messages.Failed](t, u.peer); m.GetReason() != messages.Reason_NO_AUTH {
				t.Errorf("%v", m)
			}
		}
		left(t, s, dir, n+1)
		without(t, s, dir, 0)
		left(t, s, dir, 1)
		u.goesOn()
	})
}

// The bridge retries the deletion of a node as long as the session lives, also over another connection,
// and not longer. The log repeats it now and then.
func TestOrphanStays(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		var log record
		s := embedded.Run(t, embedded.ServerConfig{MemoryOnly: true, TickTime: 100 * time.Millisecond})
		u := newUser(t, connected(t, log.of(t, Config{Servers: "embedded:1", SessionTimeout: 2 * time.Second, Dial: s.Dial})))
		u.subscribe()
		node := u.created("/d", "n-").GetNode()
		setRights(t, s, "/d", zk.PermAll&^zk.PermDelete)
		u.refused(u.release("/d", node), messages.Reason_NO_AUTH)
		tries := s.Inject(embedded.Fault{Op: embedded.OpDelete, Times: -1, Action: embedded.DelayReply})
		time.Sleep(time.Hour) // virtual
		if n, most := len(tries.Firings()), int(time.Hour/(writer.MaxOrphanPause/2))+10; n < most/3 || n > most {
			t.Errorf("tried %d times within an hour", n)
		}
		if n := log.errors(node); n < 6 || n > 7 {
			t.Errorf("logged %d times within an hour", n)
		}
		s.DropConnections()
		state(t, u.peer, messages.SessionState_SUSPENDED)
		state(t, u.peer, messages.SessionState_CONNECTED)
		setRights(t, s, "/d", zk.PermAll)
		time.Sleep(writer.MaxOrphanPause + time.Second)
		if names := u.list("/d"); len(names) != 0 {
			t.Errorf("left: %v", names)
		}
		u.goesOn()
		before := len(tries.Firings())
		time.Sleep(time.Hour)
		if n := len(tries.Firings()); n != before {
			t.Errorf("%d tries after it has gone", n-before)
		}

		node = u.created("/d", "n-").GetNode()
		setRights(t, s, "/d", zk.PermAll&^zk.PermDelete)
		u.refused(u.release("/d", node), messages.Reason_NO_AUTH)
		s.Expire(u.bridge.Session().ID)
		state(t, u.peer, messages.SessionState_LOST)
		state(t, u.peer, messages.SessionState_CONNECTED)
		before = len(tries.Firings())
		time.Sleep(time.Hour)
		if n := len(tries.Firings()); n != before {
			t.Errorf("%d tries in the next session", n-before)
		}
	})
}

// setRights is the reverse of without, in virtual time.
func setRights(t *testing.T, s *embedded.Server, path string, rights int32) {
	t.Helper()
	conn, events, err := zk.Connect([]string{"127.0.0.1:1"}, time.Minute, zk.WithLogInfo(false),
		zk.WithDialer(func(string, string, time.Duration) (net.Conn, error) { return s.Dial(t.Context(), "tcp", "embedded:1") }))
	must(t, err)
	_, err = conn.SetACL(path, zk.WorldACL(rights), -1)
	must(t, err)
	conn.Close()
	for range events {
	}
}

// A delete that never gets a clear answer is answered in time, and done later.
func TestReleaseInconclusive(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		const timeout = 500 * time.Millisecond
		s := embedded.Run(t, embedded.ServerConfig{MemoryOnly: true, TickTime: 100 * time.Millisecond})
		var unclear atomic.Bool
		f := &faulty{remove: func() error {
			if unclear.Load() {
				return zkconn.ServerError(-5)
			}
			return nil
		}}
		u := withFaultsAnd(t, Config{Servers: "embedded:1", SessionTimeout: timeout, Dial: s.Dial}, f)
		node := u.created("/d", "n-").GetNode()
		unclear.Store(true)
		begun := time.Now()
		u.refused(u.release("/d", node), messages.Reason_UNAVAILABLE, node, "-5")
		if took := time.Since(begun); took < writer.MaxUnknownTimeouts*timeout || took > writer.MaxUnknownTimeouts*timeout+2*retryPause {
			t.Errorf("answered after %v", took)
		}
		time.Sleep(time.Minute)
		if names := u.list("/d"); len(names) != 1 {
			t.Errorf("is: %v", names)
		}
		unclear.Store(false)
		time.Sleep(writer.MaxOrphanPause)
		if names := u.list("/d"); len(names) != 0 {
			t.Errorf("left: %v", names)
		}
		u.goesOn()
	})
}

// TestForeignNode asks for what is not the bridge's: that is no reason to end the
// session.
func TestForeignNode(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		u, dir := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t)
		_, err := s.Client(t).Create(dir, nil, 0, zk.WorldACL(zk.PermAll&^zk.PermDelete))
		must(t, err)
		_, err = s.Client(t).Create(dir+"/foreign", nil, 0, zk.WorldACL(zk.PermAll))
		must(t, err)
		u.release(dir, "foreign")
		m := next[*messages.Failed](t, u.peer)
		if m.GetReason() != messages.Reason_NO_AUTH || !strings.Contains(m.GetDetail(), "DELETE is not granted on "+dir) {
			t.Errorf("%v", m)
		}
		if u.epoch() != 1 {
			t.Errorf("the session was given up")
		}
	})
}

// dropping is a client that loses the answers of creates, once.
func dropping() *faulty {
	var dropped atomic.Bool
	return &faulty{multi: func(ops []zkconn.Op, send func() ([]zk.MultiResponse, error)) ([]zk.MultiResponse, error) {
		results, err := send()
		if isCheck(ops) || dropped.Swap(true) {
			return results, err
		}
		return nil, zk.ErrConnectionClosed
	}}
}

func TestOutcomeUnknownAndReadsDenied(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		dir := s.Path(t)
		newUser(t, connected(t, Config{Servers: s.Addr()})).created(dir, "first-")
		u := withFaults(t, s, dropping())
		without(t, s, dir, zk.PermRead)
		u.refused(u.create(dir, "n-"), messages.Reason_NO_AUTH, dir+"/n-", "READ is not granted on "+dir)
		conn := s.Client(t)
		zktest.Eventually(t, patience, func() bool {
			_, stat, err := conn.Exists(dir)
			return err == nil && stat.NumChildren == 1
		}, "the node is found and deleted without the right to read")
		u.goesOn()
	})
}

// On a server that cannot list a session's nodes, such as ZooKeeper before 3.6, the node is
// found when the right is back.
func TestOutcomeUnknownOnAnOldServer(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		dir := s.Path(t)
		newUser(t, connected(t, Config{Servers: s.Addr()})).created(dir, "first-")
		f := dropping()
		asked := make(chan struct{}, 1000)
		f.ephemeral = func() error {
			asked <- struct{}{}
			return zkconn.ServerError(zkconn.CodeUnimplemented)
		}
		u := withFaults(t, s, f)
		without(t, s, dir, zk.PermRead)
		u.refused(u.create(dir, "n-"), messages.Reason_NO_AUTH, dir+"/n-", "READ is not granted on "+dir)
		<-asked
		<-asked
		without(t, s, dir, 0)
		left(t, s, dir, 1)
		u.goesOn()
	})
}

// The answer to a create is lost in a directory that is too large to be listed: the create
// fails, and its node goes.
func TestOutcomeUnknownInALargeDirectory(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		var log record
		settings, err := log.of(t, Config{Servers: s.Addr()}).check()
		must(t, err)
		settings.MaxReply = 2000 // bytes
		system := host.NewSystem(nil, nil)
		defer system.Close()
		b, err := start(system, settings)
		must(t, err)
		defer b.Close()
		must(t, b.Connected(inTime(t)))
		dir, others := s.Path(t), newUser(t, connected(t, Config{Servers: s.Addr()}))
		const n = 100
		for range n {
			others.created(dir, "others-")
		}
		u, f := newUser(t, b), dropping()
		u.do(func(c *bridgeActor) {
			f.Client = c.epoch.client
			c.epoch.client = f
		})
		u.refused(u.create(dir, "n-"), messages.Reason_LIMIT_EXCEEDED, dir+"/n-", "MaxReply")
		left(t, s, dir, n)
		u.goesOn()
		if log.errors("cannot be looked for") > 0 {
			t.Errorf("logged: %s", log.String())
		}
	})
}

// One of the directories of a transaction that was executed cannot be read: no part of it
// is answered as made, and no node stays.
func TestOutcomeUnknownOfAnAtomicCreate(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		u := withFaults(t, s, dropping())
		dirs := []string{s.Path(t) + "/a", s.Path(t) + "/b"}
		users := []*user{u, newUser(t, u.bridge)}
		other := newUser(t, connected(t, Config{Servers: s.Addr()}))
		for _, dir := range dirs {
			other.created(dir, "first-")
		}
		without(t, s, dirs[1], zk.PermRead)
		sendAll(users, dirs)
		for _, u := range users {
			u.refused(1, messages.Reason_NO_AUTH, "READ is not granted on "+dirs[1])
			none[*messages.Created](t, u.peer)
		}
		without(t, s, dirs[1], 0)
		for _, dir := range dirs {
			left(t, s, dir, 1)
		}
		u.goesOn()
	})
}

// TestOutcomeUnknownForTooLong has a server whose answers never decide the outcome.
func TestOutcomeUnknownForTooLong(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		const timeout = 500 * time.Millisecond
		s := embedded.Run(t, embedded.ServerConfig{MemoryOnly: true, TickTime: 100 * time.Millisecond})
		f := dropping()
		lose := f.multi
		var unclear atomic.Bool
		unclear.Store(true)
		f.multi = func(ops []zkconn.Op, send func() ([]zk.MultiResponse, error)) ([]zk.MultiResponse, error) {
			if isCheck(ops) && unclear.Load() {
				return nil, zkconn.ServerError(-5)
			}
			return lose(ops, send)
		}
		cfg := Config{Servers: "embedded:1", SessionTimeout: timeout, Dial: s.Dial}
		newUser(t, connected(t, cfg)).created("/d", "first-")
		u := withFaultsAnd(t, cfg, f)
		begun := time.Now()
		u.refused(u.create("/d", "n-"), messages.Reason_UNAVAILABLE, "/d/n-", "-5")
		if took := time.Since(begun); took < writer.MaxUnknownTimeouts*timeout || took > writer.MaxUnknownTimeouts*timeout+2*retryPause {
			t.Errorf("answered after %v", took)
		}
		if names := u.list("/d"); len(names) != 2 {
			t.Errorf("is: %v", names)
		}
		unclear.Store(false)
		time.Sleep(writer.MaxOrphanPause) // virtual
		if names := u.list("/d"); len(names) != 1 {
			t.Errorf("left: %v", names)
		}
		u.goesOn()
	})
}

// TestUnreadable has a directory that nodes may be made in and not listed.
func TestUnreadable(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		u, dir := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t)
		_, err := s.Client(t).Create(dir, []byte("theirs"), 0, zk.WorldACL(zk.PermAll))
		must(t, err)
		u.created(dir, "first-")
		without(t, s, dir, zk.PermRead)
		u.bridge.Ref().SendCreate(&messages.Create{Id: u.id(), Epoch: u.epoch(), Directory: dir, Prefix: "n-", ListAfter: true}, u)
		if m := next[*messages.Created](t, u.peer); m.GetDirectoryCzxid() != 0 || m.GetCzxid() == 0 {
			t.Errorf("%v", m)
		}
		without(t, s, dir, 0)
		if names := s.Nodes(t, dir); len(names) != 2 || u.epoch() != 1 {
			t.Errorf("left: %v", names)
		}
	})
}
