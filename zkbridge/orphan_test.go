package zkbridge

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/internal/epoch"
	"github.com/actorlock/actorlock/zkbridge/internal/writer"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Releases that lack a right fail at once. The bridge deletes the nodes when it has the right, and no
// other node of the session.
func TestReleaseRefused(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		var log bridgeLog
		u, dir := newUser(t, connected(t, log.config(t, Config{Servers: s.Addr()}))), s.Path(t)
		const n = 50
		nodes := make([]string, n)
		for i := range nodes {
			nodes[i] = u.created(dir, "n-").GetNode()
		}
		u.created(dir+"/other", "other-")
		setRights(t, s.Client(t), dir, zk.PermAll&^zk.PermDelete)
		for _, node := range nodes {
			u.release(dir, node)
		}
		for range n {
			m := next[*messages.Failed](u)
			if m.GetReason() != messages.Reason_NO_AUTH || !strings.Contains(m.GetDetail(), "DELETE is not granted on "+dir) {
				t.Errorf("%v", m)
			}
		}
		waitNodes(t, s, dir, n+1)
		setRights(t, s.Client(t), dir, zk.PermAll)
		waitNodes(t, s, dir, 1)
		waitNodes(t, s, dir+"/other", 1)
		u.keepsSession()
		for _, node := range nodes {
			if log.errors(node) != 1 {
				t.Errorf("%s: logged: %s", node, log.String())
			}
		}
	})
}

// The bridge retries the deletion of a node as long as the session lives, also over another
// connection, and not longer. It logs that again from time to time.
func TestOrphanStays(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		var log bridgeLog
		virtual := zktest.Virtual(t)
		s, conn := virtual.Embedded(), virtual.Client(t)
		u := newUser(t, connected(t, log.config(t, Config{Servers: "embedded:1", SessionTimeout: 2 * time.Second, Dial: s.Dial})))
		u.subscribe()
		node := u.created("/d", "n-").GetNode()
		setRights(t, conn, "/d", zk.PermAll&^zk.PermDelete)
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
		u.waitState(messages.SessionState_SUSPENDED)
		u.waitState(messages.SessionState_CONNECTED)
		<-time.After(3 * time.Second) // conn was dropped, too, and connects again after a second
		setRights(t, conn, "/d", zk.PermAll)
		time.Sleep(writer.MaxOrphanPause + time.Second)
		if names := u.list("/d"); len(names) != 0 {
			t.Errorf("left: %v", names)
		}
		u.keepsSession()
		before := len(tries.Firings())
		time.Sleep(time.Hour)
		if n := len(tries.Firings()); n != before {
			t.Errorf("%d tries after its deletion", n-before)
		}

		node = u.created("/d", "n-").GetNode()
		setRights(t, conn, "/d", zk.PermAll&^zk.PermDelete)
		u.refused(u.release("/d", node), messages.Reason_NO_AUTH)
		s.Expire(u.bridge.Session().ID)
		u.waitState(messages.SessionState_LOST)
		u.waitState(messages.SessionState_CONNECTED)
		before = len(tries.Firings())
		time.Sleep(time.Hour)
		if n := len(tries.Firings()); n != before {
			t.Errorf("%d tries in the next session", n-before)
		}
	})
}

// A release fails in time if no answer to its delete is clear. The bridge deletes the node later.
func TestReleaseInconclusive(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		const timeout = 500 * time.Millisecond
		s := embedded.Run(t, embedded.ServerConfig{MemoryOnly: true, TickTime: 100 * time.Millisecond})
		var inconclusive atomic.Bool
		f := &faultyClient{delete: func() error {
			if inconclusive.Load() {
				return zkconn.ServerError(-5)
			}
			return nil
		}}
		u := userOfFaulty(t, Config{Servers: "embedded:1", SessionTimeout: timeout, Dial: s.Dial}, f)
		node := u.created("/d", "n-").GetNode()
		inconclusive.Store(true)
		begun := time.Now()
		u.refused(u.release("/d", node), messages.Reason_UNAVAILABLE, node, "-5")
		if took := time.Since(begun); took < writer.MaxUnknownTimeouts*timeout || took > writer.MaxUnknownTimeouts*timeout+2*epoch.RetryPause {
			t.Errorf("answered after %v", took)
		}
		time.Sleep(time.Minute)
		if names := u.list("/d"); len(names) != 1 {
			t.Errorf("nodes: %v", names)
		}
		inconclusive.Store(false)
		time.Sleep(writer.MaxOrphanPause)
		if names := u.list("/d"); len(names) != 0 {
			t.Errorf("left: %v", names)
		}
		u.keepsSession()
	})
}

// The bridge keeps its session if it may not delete a node of another client.
func TestForeignNode(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		u, dir := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t)
		_, err := s.Client(t).Create(dir, nil, 0, zk.WorldACL(zk.PermAll&^zk.PermDelete))
		must(t, err)
		makeNode(t, s.Client(t), dir+"/foreign", "")
		u.refused(u.release(dir, "foreign"), messages.Reason_NO_AUTH, "DELETE is not granted on "+dir)
	})
}

// A client without the right to read finds and deletes the node of a create whose reply is lost.
func TestOutcomeUnknownAndReadsDenied(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		dir := s.Path(t)
		newUser(t, connected(t, Config{Servers: s.Addr()})).created(dir, "first-")
		u := userOfFaulty(t, Config{Servers: s.Addr()}, loseCreateReply())
		conn := denyRead(t, s, dir)
		u.refused(u.create(dir, "n-"), messages.Reason_NO_AUTH, dir+"/n-", "READ is not granted on "+dir)
		zktest.Eventually(t, timeLimit, func() bool {
			names, _, err := conn.Children(dir)
			return err == nil && len(names) == 1
		}, "the node is found and deleted without the right to read")
		u.keepsSession()
	})
}

// denyRead takes the right to read a directory from all clients but the one that it returns.
func denyRead(t *testing.T, s *zktest.Server, dir string) *zk.Conn {
	t.Helper()
	conn := s.Client(t)
	must(t, conn.AddAuth("digest", []byte("reader:secret")))
	_, err := conn.SetACL(dir, append(zk.WorldACL(zk.PermAll&^zk.PermRead), zk.AuthACL(zk.PermAll)...), -1)
	must(t, err)
	return conn
}

// On a server that cannot list a session's nodes, such as ZooKeeper before 3.6, only the end of the
// session deletes a node that the bridge may not look for. So the bridge ends the session, and goes
// on with another one.
func TestOutcomeUnknownOnAnOldServer(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		var log bridgeLog
		dir := s.Path(t)
		newUser(t, connected(t, Config{Servers: s.Addr()})).created(dir, "first-")
		f := loseCreateReply()
		f.ephemerals = func() error { return zkconn.ServerError(zkconn.CodeUnimplemented) }
		u := userOfFaulty(t, log.config(t, Config{Servers: s.Addr(), SessionTimeout: 30 * time.Second, Margin: 100 * time.Millisecond}), f)
		u.subscribe()
		conn := denyRead(t, s, dir)
		u.failed(u.create(dir, "n-"), messages.Reason_NO_AUTH, dir+"/n-", "READ is not granted on "+dir)
		u.waitState(messages.SessionState_LOST)
		if m := u.waitState(messages.SessionState_CONNECTED); m.GetEpoch() != 2 {
			t.Errorf("%v", m)
		}
		zktest.Eventually(t, timeLimit, func() bool {
			names, _, err := conn.Children(dir)
			return err == nil && len(names) == 1
		}, "the node goes with its session, long before that expires")
		if log.errors("READ is not granted on "+dir) != 1 {
			t.Errorf("logged: %s", log.String())
		}
	})
}

// A node of another session is not taken for an orphan if this one may neither delete nor read it.
func TestReleaseOfHiddenNode(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		var log bridgeLog
		u, dir, conn := newUser(t, connected(t, log.config(t, Config{Servers: s.Addr()}))), s.Path(t), s.Client(t)
		must(t, conn.AddAuth("digest", []byte("other:secret")))
		_, err := conn.Create(dir, nil, 0, zk.WorldACL(zk.PermAll&^zk.PermDelete))
		must(t, err)
		_, err = conn.Create(dir+"/hidden", nil, zk.FlagEphemeral, zk.AuthACL(zk.PermAll))
		must(t, err)
		u.refused(u.release(dir, "hidden"), messages.Reason_NO_AUTH, "DELETE is not granted on "+dir)
		if log.errors("hidden") != 0 {
			t.Errorf("logged: %s", log.String())
		}
	})
}

// A create needs no right to read a directory that may be missing and exists.
func TestDirectoryExistsUnread(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		u, dir, conn := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t), s.Client(t)
		must(t, conn.AddAuth("digest", []byte("other:secret")))
		_, err := conn.Create(dir, nil, 0, zk.AuthACL(zk.PermAll))
		must(t, err)
		readable, unreadable := dir+"/missing", dir+"/exists"
		_, err = conn.Create(unreadable, nil, 0, zk.WorldACL(zk.PermCreate))
		must(t, err)
		u.batch(func() {
			u.create(readable, "n-") // NO_AUTH; the other create, behind it in the same transaction, was not looked at
			u.create(unreadable, "n-")
		})
		next[*messages.Failed](u)
		next[*messages.Created](u)
	})
}

// A create whose reply is lost fails if its directory is too large to be listed. The bridge deletes
// the node.
func TestOutcomeUnknownInALargeDirectory(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		var log bridgeLog
		settings, err := log.config(t, Config{Servers: s.Addr(), SessionTimeout: time.Minute}).check()
		must(t, err)
		settings.MaxReply = 2000 // bytes
		system := host.NewSystem(nil, nil)
		defer system.Close()
		opened, err := start(system, settings)
		must(t, err)
		b := opened.Internals()
		defer b.Close()
		must(t, b.Connected(within(t)))
		dir, others := s.Path(t), newUser(t, connected(t, Config{Servers: s.Addr()}))
		const n = 100
		for range n {
			others.created(dir, "others-")
		}
		u, f := newUser(t, b), loseCreateReply()
		u.saw[dir] = true // otherwise ZooKeeper refuses the first transaction, which makes the directory
		f.replace(b)
		defer func() {
			if t.Failed() {
				t.Logf("logged: %s", log.String())
			}
		}()
		waitNodes(t, s, dir, n)
		u.keepsSession()
		b.runInActor(func(a *bridgeActor) {
			if a.epoch.Writer.SessionNode == "" {
				t.Error("the session has no node: its creates go alone, and the reply that is lost is another one")
			}
		})
		u.refused(u.create(dir, "n-"), messages.Reason_LIMIT_EXCEEDED, dir+"/n-", "MaxReply")
		waitNodes(t, s, dir, n)
		u.keepsSession()
		if log.errors("cannot be looked for") > 0 {
			t.Errorf("logged: %s", log.String())
		}
	})
}

// No part of an atomic create whose reply is lost is answered as created, and no node stays, if one
// of the directories cannot be read.
func TestOutcomeUnknownOfAnAtomicCreate(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		u := userOfFaulty(t, Config{Servers: s.Addr()}, loseCreateReply())
		dirs := []string{s.Path(t) + "/a", s.Path(t) + "/b"}
		users := []*user{u, newUser(t, u.bridge)}
		other := newUser(t, connected(t, Config{Servers: s.Addr()}))
		for _, dir := range dirs {
			other.created(dir, "first-")
		}
		setRights(t, s.Client(t), dirs[1], zk.PermAll&^zk.PermRead)
		createAtomically(users, dirs)
		for _, u := range users {
			u.refused(1, messages.Reason_NO_AUTH, "READ is not granted on "+dirs[1])
			none[*messages.Created](u)
		}
		setRights(t, s.Client(t), dirs[1], zk.PermAll)
		for _, dir := range dirs {
			waitNodes(t, s, dir, 1)
		}
		u.keepsSession()
	})
}

// A create whose outcome stays unknown fails in time, and the bridge deletes the node later.
func TestOutcomeUnknownForTooLong(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		const timeout = 500 * time.Millisecond
		s := embedded.Run(t, embedded.ServerConfig{MemoryOnly: true, TickTime: 100 * time.Millisecond})
		f := loseCreateReply()
		lose := f.multi
		var inconclusive atomic.Bool
		inconclusive.Store(true)
		f.multi = func(ops []zkconn.Op, send sendFunc) ([]zk.MultiResponse, error) {
			if isCheck(ops) && inconclusive.Load() {
				return nil, zkconn.ServerError(-5)
			}
			return lose(ops, send)
		}
		cfg := Config{Servers: "embedded:1", SessionTimeout: timeout, Dial: s.Dial}
		newUser(t, connected(t, cfg)).created("/d", "first-")
		u := userOfFaulty(t, cfg, f)
		u.saw["/d"] = true
		begun := time.Now()
		u.refused(u.create("/d", "n-"), messages.Reason_UNAVAILABLE, "/d/n-", "-5")
		if took := time.Since(begun); took < writer.MaxUnknownTimeouts*timeout || took > writer.MaxUnknownTimeouts*timeout+2*epoch.RetryPause {
			t.Errorf("answered after %v", took)
		}
		if names := u.list("/d"); len(names) != 2 {
			t.Errorf("nodes: %v", names)
		}
		inconclusive.Store(false)
		time.Sleep(writer.MaxOrphanPause) // virtual
		if names := u.list("/d"); len(names) != 1 {
			t.Errorf("left: %v", names)
		}
		u.keepsSession()
	})
}

// A create succeeds in a directory that the bridge may not list.
func TestUnreadable(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		u, dir := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t)
		makeNode(t, s.Client(t), dir, "theirs")
		u.created(dir, "first-")
		setRights(t, s.Client(t), dir, zk.PermAll&^zk.PermRead)
		u.sendCreate(&messages.Create{Directory: dir, Prefix: "n-", ListAfter: true})
		if m := next[*messages.Created](u); m.GetDirectoryCzxid() != 0 || m.GetCzxid() == 0 {
			t.Errorf("%v", m)
		}
		setRights(t, s.Client(t), dir, zk.PermAll)
		if names := s.Nodes(t, dir); len(names) != 2 || u.epoch() != 1 {
			t.Errorf("left: %v", names)
		}
	})
}
