package zkbridge

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zkpath"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

func TestListWatch(t *testing.T) {
	eachOwn(t, func(t *testing.T, s *zktest.Server) {
		u, dir, conn := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t), s.Client(t)
		watch := &messages.List{Directory: dir, Watch: true}
		if m := u.listed(watch); m.GetDirectoryCzxid() != 0 || len(m.GetChildren()) != 0 {
			t.Errorf("no directory: %v", m)
		}
		if n := s.Watches(t); n != 0 {
			t.Errorf("%d watches on a missing directory", n)
		}
		first := u.created(dir, "a-")
		none[*messages.Wake](u)
		other := newUser(t, u.bridge)
		for _, u := range []*user{u, u, other} {
			if m := u.listed(watch); !slices.Equal(m.GetChildren(), []string{first.GetNode()}) || m.GetDirectoryCzxid() != first.GetDirectoryCzxid() {
				t.Errorf("%v", m)
			}
		}
		second := u.created(dir, "b-") // a child is created
		u.waitDirectoryWake(dir, false)
		other.waitDirectoryWake(dir, false)
		_, err := conn.Set(dir+"/"+second.GetNode(), []byte("x"), -1) // the children stay the same
		must(t, err)
		u.created(dir, "c-") // the user has set no watch since
		u.noWake()
		u.listed(watch)
		must(t, conn.Delete(dir+"/"+second.GetNode(), -1)) // a child is deleted
		u.waitDirectoryWake(dir, false)
		if n := s.Watches(t); n != 1 {
			t.Errorf("%d watches are left beside that on the directory itself", n-1)
		}

		// The directory is deleted. It is no container, which the server would delete.
		u.transacted(makeOp(dir+"/plain", ""))
		watch.Directory += "/plain"
		if m := u.listed(watch); len(m.GetChildren()) != 0 || m.GetDirectoryCzxid() == 0 {
			t.Errorf("%v", m)
		}
		must(t, conn.Delete(dir+"/plain", -1))
		u.waitDirectoryWake(dir+"/plain", true)
		if n := s.Watches(t); n != 1 {
			t.Errorf("%d watches are left beside that on the directory itself", n-1)
		}
		u.created(dir+"/plain", "again-")
		u.noWake()
		other.noWake()
	})
}

// A watch of a directory ends when its recipient unsubscribes.
func TestListWatchUnsubscribe(t *testing.T) {
	eachOwn(t, func(t *testing.T, s *zktest.Server) {
		u, dir := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t)
		other := newUser(t, u.bridge)
		u.created(dir, "a-")
		u.listed(&messages.List{Directory: dir, Watch: true})
		other.listed(&messages.List{Directory: dir, Watch: true})
		u.bridge.Ref().SendUnsubscribe(&messages.Unsubscribe{}, u)
		other.created(dir, "b-")
		other.waitDirectoryWake(dir, false)
		u.noWake()
		if n := s.Watches(t); n != 0 {
			t.Errorf("%d watches are left", n)
		}
	})
}

func TestListWatchOverReconnect(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(dir string, node string) []any{
		"a child is created": func(dir, _ string) []any {
			return []any{&zk.CreateRequest{Path: dir + "/new", Acl: zk.WorldACL(zk.PermAll)}}
		},
		"a child is deleted": func(dir, node string) []any { return []any{&zk.DeleteRequest{Path: dir + "/" + node, Version: -1}} },
		"the directory is deleted": func(dir, node string) []any {
			return []any{&zk.DeleteRequest{Path: dir + "/" + node, Version: -1}, &zk.DeleteRequest{Path: dir, Version: -1}}
		},
		"nothing": func(dir, _ string) []any { return []any{&zk.CheckVersionRequest{Path: dir, Version: -1}} },
	} {
		t.Run(name, func(t *testing.T) {
			zktest.Each(t, func(t *testing.T, s *zktest.Server) {
				t.Parallel()
				proxy := zktest.Proxy(t, s.Addr())
				u, dir, conn := newUser(t, connected(t, Config{Servers: proxy.Addr()})), s.Path(t), s.Client(t)
				u.subscribe()
				node := u.created(dir, "n-").GetNode()
				if name != "the directory is deleted" {
					u.created(dir, "stays-") // or the server would delete the container
				}
				u.listed(&messages.List{Directory: dir, Watch: true})
				u.cutOff(proxy)
				_, err := conn.Multi(change(dir, node)...)
				must(t, err)
				proxy.Refuse(false)
				u.waitState(messages.SessionState_CONNECTED)
				if name == "nothing" {
					u.noWake()
					makeNode(t, conn, dir+"/new", "")
				}
				u.waitDirectoryWake(dir, name == "the directory is deleted")
			})
		})
	}
}

func TestListRefusedLeavesNoWatcher(t *testing.T) {
	eachOwn(t, func(t *testing.T, s *zktest.Server) {
		u, dir, conn := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t), s.Client(t)
		u.created(dir, "n-")
		setRights(t, conn, dir, zk.PermAll&^zk.PermRead)
		u.bridge.Ref().SendList(&messages.List{Id: 70, Epoch: u.epoch(), Directory: dir, Watch: true}, u)
		u.failed(70, messages.Reason_NO_AUTH)
		u.watch(dir, "missing")
		u.bridge.runInActor(func(c *bridgeActor) {
			if c.epoch.Watches().Has(zkpath.Children(dir)) || c.epoch.Watches().Has(zkpath.Join(dir, "missing")) {
				t.Error("an interest is left")
			}
		})
		_, err := conn.Create(dir+"/new", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		must(t, err)
		u.noWake()
		if n := s.Watches(t); n != 0 {
			t.Errorf("%d watches are left", n)
		}
	})
}

func TestWatchWithData(t *testing.T) {
	eachOwn(t, func(t *testing.T, s *zktest.Server) {
		u, dir, conn := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t), s.Client(t)
		u.transacted(makeOp(dir, ""), makeOp(dir+"/full", "data"), makeOp(dir+"/empty", ""))
		ask := func(with bool) *messages.Watched {
			u.bridge.Ref().SendWatch(&messages.Watch{Id: u.id(), Epoch: u.epoch(), Directory: dir,
				Nodes: []string{"full", "empty", "none"}, WithData: with}, u)
			return next[*messages.Watched](u)
		}
		m := ask(true)
		empty, exists := m.GetData()["empty"]
		if !slices.Equal(m.GetGone(), []string{"none"}) || string(m.GetData()["full"]) != "data" || len(empty) != 0 || !exists || len(m.GetData()) != 2 {
			t.Errorf("%v", m)
		}
		if m := ask(false); m.GetData() != nil {
			t.Errorf("not asked for: %v", m)
		}
		// The next change of the data leads to a Wake, and the next watch returns the new data.
		_, err := conn.Set(dir+"/full", []byte("new"), -1)
		must(t, err)
		if m := next[*messages.Wake](u); m.GetNode() != "full" || m.GetDeleted() {
			t.Errorf("%v", m)
		}
		if m := ask(true); string(m.GetData()["full"]) != "new" {
			t.Errorf("%v", m)
		}
		must(t, conn.Delete(dir+"/full", -1))
		must(t, conn.Delete(dir+"/empty", -1))
		u.waitDeleted([]string{"full", "empty"})
		if n := s.Watches(t); n != 0 {
			t.Errorf("%d watches are left", n)
		}
	})
}

// A change while there is no connection leads to a Wake, also if a read over the next connection
// shows it before the watches are set again.
func TestNoRequestBeforeWatchesAreSetAgain(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		proxy, f := zktest.Proxy(t, s.Addr()), &faultyClient{}
		u, dir := userOfFaulty(t, Config{Servers: proxy.Addr()}, f), s.Path(t)
		f.beforeSetWatches = func() { f.Client.Exists("/") }
		u.subscribe()
		u.created(dir, "a-")
		u.listed(&messages.List{Directory: dir, Watch: true})
		u.cutOff(proxy)
		makeNode(t, s.Client(t), dir+"/b", "")
		proxy.Refuse(false)
		u.waitDirectoryWake(dir, false)
	})
}

// The bridge sets its watches again also with a chroot.
func TestWatchesAreSetAgainBelowChroot(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		proxy, root, conn := zktest.Proxy(t, s.Addr()), s.Path(t), s.Client(t)
		makeNode(t, conn, root, "")
		u := newUser(t, connected(t, Config{Servers: proxy.Addr() + root}))
		u.subscribe()
		u.waitState(messages.SessionState_CONNECTED)
		node := u.created("/d", "n-").GetNode()
		u.watch("/d", node)
		u.listed(&messages.List{Directory: "/d", Watch: true})
		proxy.Cut()
		u.waitState(messages.SessionState_SUSPENDED)
		u.waitState(messages.SessionState_CONNECTED)
		u.noWake()
		must(t, conn.Delete(root+"/d/"+node, -1))
		changed := map[string]bool{}
		for range 2 {
			m := next[*messages.Wake](u)
			changed[m.GetDirectory()+"/"+m.GetNode()] = true
		}
		if !changed["/d/"] || !changed["/d/"+node] {
			t.Errorf("events at %v", changed)
		}
	})
}

// incomparable is a recipient that cannot be compared with others.
type incomparable struct {
	*user
	tags any
}

// Requests of a recipient that cannot be compared fail if the bridge would have to find it again.
func TestIncomparableRecipient(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	u, dir := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t)
	node := u.created(dir, "n-").GetNode()
	odd := incomparable{newUser(t, u.bridge), []string{"a slice"}}
	refused := func() {
		t.Helper()
		m := next[*messages.Failed](odd.user)
		if m.GetReason() != messages.Reason_INVALID || !strings.Contains(m.GetDetail(), "zkbridge.incomparable") {
			t.Errorf("%v", m)
		}
	}
	u.bridge.Ref().SendSubscribe(&messages.Subscribe{}, odd)
	refused()
	u.bridge.Ref().SendUnsubscribe(&messages.Unsubscribe{}, odd)
	u.bridge.Ref().SendWatch(&messages.Watch{Epoch: 1, Directory: dir, Nodes: []string{node}}, odd)
	refused()
	u.bridge.Ref().SendList(&messages.List{Epoch: 1, Directory: dir, Watch: true}, odd)
	refused()
	u.bridge.Ref().SendList(&messages.List{Epoch: 1, Directory: dir}, odd)
	next[*messages.Listed](odd.user)
	u.keepsSession()
}
