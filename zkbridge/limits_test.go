package zkbridge

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

func TestChroot(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		root := s.Path(t) + "/deep"
		u := newUser(t, connected(t, Config{Servers: s.Addr() + root}))
		if names := u.list("/locks"); len(names) != 0 {
			t.Errorf("listed %v", names)
		}
		first, second := u.created("/locks/a", "n-"), u.created("/locks/a", "n-")
		if names := s.Nodes(t, root+"/locks/a"); !slices.Equal(names, []string{first.GetNode(), second.GetNode()}) {
			t.Errorf("nodes %v", names)
		}
		u.watch("/locks/a", first.GetNode())
		u.release("/locks/a", first.GetNode())
		if m := next[*messages.Wake](u); m.GetDirectory() != "/locks/a" || m.GetNode() != first.GetNode() {
			t.Errorf("%v", m)
		}
		next[*messages.NodeReleased](u)
		if names := u.list("/locks/a"); !slices.Equal(names, []string{second.GetNode()}) {
			t.Errorf("listed %v", names)
		}
		top := u.created("/", "top-")
		if names := s.Nodes(t, root); !slices.Contains(names, top.GetNode()) {
			t.Errorf("nodes %v", names)
		}
		u.create("a", "n-")
		if m := next[*messages.Failed](u); m.GetReason() != messages.Reason_INVALID {
			t.Errorf("%v", m)
		}
		u.bridge.Ref().SendList(&messages.List{Epoch: 1, Directory: "a"}, u) // not root + "a"
		if m := next[*messages.Failed](u); m.GetReason() != messages.Reason_INVALID {
			t.Errorf("%v", m)
		}
		checkMultiInChroot(t, s, u, root)
	})
}

// A bridge that requires its chroot makes neither it nor what is above, at the start or later.
func TestRequireChroot(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		conn, above := s.Client(t), s.Path(t)
		root := above + "/deep"
		cfg := Config{Servers: s.Addr() + root, RequireChroot: true, SessionTimeout: time.Minute}
		err := open(t, cfg).Connected(t.Context())
		if !errors.Is(err, ErrNoChroot) || !strings.Contains(err.Error(), "chroot "+root+": it does not exist") {
			t.Error(err)
		}
		if exists, _, err := conn.Exists(above); exists || err != nil {
			t.Errorf("%s exists, %v", above, err)
		}
		for _, path := range []string{above, root} {
			makeNode(t, conn, path, "")
		}
		u := newUser(t, connected(t, cfg))
		u.release("/locks", u.created("/locks", "n-").GetNode())
		next[*messages.NodeReleased](u)
		expectMissingNode(t, u.bridge)
		deleteTree(t, conn, root)
		for range 2 {
			u.create("/locks", "n-")
			if m := next[*messages.Failed](u); m.GetReason() != messages.Reason_UNAVAILABLE || !strings.Contains(m.GetDetail(), "chroot "+root) {
				t.Errorf("%v", m)
			}
		}
		makeNode(t, conn, root, "")
		u.created("/locks", "n-")
	})
}

// A create in the chroot itself makes the chroot again, and what is above it.
func TestCreateInADeletedChroot(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		root := s.Path(t)
		u := newUser(t, connected(t, Config{Servers: s.Addr() + root + "/deep"}))
		deleteTree(t, s.Client(t), root)
		u.created("/", "n-")
	})
}

// Without a chroot it means nothing.
func TestRequireNoChroot(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		expectMissingNode(t, connected(t, Config{Servers: s.Addr(), RequireChroot: true}))
	})
}

// expectMissingNode checks that a transaction in the root fails because of its own node.
func expectMissingNode(t *testing.T, b *internals) {
	t.Helper()
	if _, err := b.MultiWithin(within(t), "/", CheckNode("/none")); !errors.Is(err, zk.ErrNoNode) {
		t.Errorf("a missing node in the root that exists: %v", err)
	}
}

// deleteTree deletes a node and all below it. The server may delete an empty container first.
func deleteTree(t *testing.T, conn *zk.Conn, path string) {
	t.Helper()
	names, _, err := conn.Children(path)
	for _, name := range names {
		deleteTree(t, conn, path+"/"+name)
	}
	if err == nil {
		err = conn.Delete(path, -1)
	}
	if !errors.Is(err, zk.ErrNoNode) {
		must(t, err)
	}
}

// The log has each missing node of the chroot once.
func TestMissingChrootIsLogged(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		var log bridgeLog
		root := s.Path(t)
		for range 2 {
			u := newUser(t, connected(t, log.config(t, Config{Servers: s.Addr() + root + "/deep"})))
			u.created("/locks", "n-")
		}
		for _, path := range []string{root, root + "/deep"} {
			if n := strings.Count(log.String(), "level=WARN msg=\"the chroot was missing and is made: check its name, because locks in another chroot do not exclude these\" path="+path+"\n"); n != 1 {
				t.Errorf("%s: logged %d times: %s", path, n, log.String())
			}
		}
	})
}

func checkMultiInChroot(t *testing.T, s *zktest.Server, u *user, root string) {
	t.Helper()
	ops := []any{&zk.CreateRequest{Path: "/m-", Flags: zk.FlagSequence}, &zk.SetDataRequest{Path: "/", Data: []byte("x"), Version: -1},
		&zk.CheckVersionRequest{Path: "/locks", Version: -1}, &zk.CreateRequest{Path: "/gone"}, &zk.DeleteRequest{Path: "/gone", Version: 0}}
	results, err := u.bridge.Multi(within(t), ops...)
	must(t, err)
	if ops[1].(*zk.SetDataRequest).Path != "/" || !strings.HasPrefix(results[0].String, "/m-") {
		t.Errorf("%+v, %+v", ops[1], results[0])
	}
	data, _, err := s.Client(t).Get(root)
	if string(data) != "x" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
	view, err := u.bridge.GetNode(within(t), results[0].String)
	if err != nil || !view.Exists || !slices.Contains(view.Names, results[0].String[1:]) {
		t.Errorf("%+v, %v", view, err)
	}
	_, err = u.bridge.Multi(within(t), &zk.DeleteRequest{Path: "/none", Version: -1})
	if !errors.Is(err, zk.ErrNoNode) || strings.Contains(err.Error(), root) {
		t.Errorf("%v", err)
	}
}

// The list of a directory that is too large fails, and the connection stays.
func TestMaxReply(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		dir, conn := s.Path(t), s.Client(t)
		ops := []any{&zk.CreateRequest{Path: dir, Data: []byte{}, Acl: zk.WorldACL(zk.PermAll)}}
		for i := range 4500 {
			ops = append(ops, &zk.CreateRequest{Path: fmt.Sprintf("%s/%s%d", dir, strings.Repeat("x", 230), i), Data: []byte{},
				Acl: zk.WorldACL(zk.PermAll)})
		}
		for chunk := range slices.Chunk(ops, 1000) {
			_, err := conn.Multi(chunk...)
			must(t, err)
		}
		var log bridgeLog
		u := newUser(t, connected(t, log.config(t, Config{Servers: s.Addr(), MaxReply: minMaxReply})))
		u.subscribe()
		u.waitState(messages.SessionState_CONNECTED)
		u.bridge.Ref().SendList(&messages.List{Epoch: 1, Directory: dir}, u)
		m := next[*messages.Failed](u)
		if m.GetReason() != messages.Reason_LIMIT_EXCEEDED || !strings.Contains(m.GetDetail(), "MaxReply") {
			t.Errorf("%v", m)
		}
		if _, err := u.bridge.GetNode(within(t), dir+"/x"); !errors.Is(err, messages.Reason_LIMIT_EXCEEDED) {
			t.Errorf("%v", err)
		}
		u.created(dir+"/small", "n-") // on the same connection
		none[*messages.SessionChanged](u)
		if text := log.String(); strings.Count(text, "is larger than Config.MaxReply and") != 1 || !strings.Contains(text, "path="+dir+" error=") {
			t.Errorf("two lists are not logged once: %s", text)
		}
		if names := newUser(t, connected(t, Config{Servers: s.Addr()})).list(dir); len(names) != 4501 {
			t.Errorf("%d names", len(names))
		}
	})
}

func TestMaxOutstanding(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	u := newUser(t, connected(t, Config{Servers: s.Addr(), MaxOutstanding: 5}))
	node := u.created("/d", "n-").GetNode()
	s.Embedded().Pause()
	for range 5 {
		u.create("/d", "n-")
	}
	over := u.create("/d", "n-")
	m := next[*messages.Failed](u)
	if m.GetId() != over || m.GetReason() != messages.Reason_LIMIT_EXCEEDED || !strings.Contains(m.GetDetail(), "MaxOutstanding") {
		t.Errorf("%v", m)
	}
	if _, err := u.bridge.Multi(within(t), &zk.CreateRequest{Path: "/x"}); !errors.Is(err, messages.Reason_LIMIT_EXCEEDED) {
		t.Errorf("%v", err)
	}
	u.release("/d", node)
	s.Embedded().Resume()
	for range 5 {
		next[*messages.Created](u)
	}
	next[*messages.NodeReleased](u)
	u.created("/d", "n-")
}
