package zkbridge

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

func (u *user) listed(msg *messages.List) *messages.Listed {
	u.t.Helper()
	msg.Id, msg.Epoch = u.id(), u.epoch()
	u.bridge.Ref().SendList(msg, u)
	m := next[*messages.Listed](u.t, u.peer)
	if m.GetId() != msg.Id {
		u.t.Errorf("%v does not answer %v", m, msg)
	}
	return m
}

// wokenBy waits for the Wake of a directory, and sees that it is the only one.
func (u *user) wokenBy(directory string, deleted bool) {
	u.t.Helper()
	m := next[*messages.Wake](u.t, u.peer)
	if m.GetEpoch() != u.epoch() || m.GetDirectory() != directory || m.GetNode() != "" || m.GetDeleted() != deleted {
		u.t.Errorf("%v, not one of %s, deleted %v", m, directory, deleted)
	}
	u.list("/") // what came with it comes before this
	none[*messages.Wake](u.t, u.peer)
}

func TestListWatch(t *testing.T) {
	eachOwn(t, func(t *testing.T, s *zktest.Server) {
		u, dir, conn := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t), s.Client(t)
		watch := &messages.List{Directory: dir, Watch: true}
		if m := u.listed(watch); m.GetDirectoryCzxid() != 0 || len(m.GetChildren()) != 0 {
			t.Errorf("no directory: %v", m)
		}
		if n := s.Watches(t); n != 0 {
			t.Errorf("%d watches on what is not there", n)
		}
		first := u.created(dir, "a-")
		none[*messages.Wake](t, u.peer)
		other := newUser(t, u.bridge)
		for _, u := range []*user{u, u, other} {
			if m := u.listed(watch); !slices.Equal(m.GetChildren(), []string{first.GetNode()}) || m.GetDirectoryCzxid() != first.GetDirectoryCzxid() {
				t.Errorf("%v", m)
			}
		}
		second := u.created(dir, "b-") // one comes
		u.wokenBy(dir, false)
		other.wokenBy(dir, false)
		_, err := conn.Set(dir+"/"+second.GetNode(), []byte("x"), -1) // no child comes or goes
		must(t, err)
		u.created(dir, "c-") // no request has come since
		u.wokenNot()
		u.listed(watch)
		must(t, conn.Delete(dir+"/"+second.GetNode(), -1)) // one goes
		u.wokenBy(dir, false)
		if n := s.Watches(t); n != 0 {
			t.Errorf("%d watches are left", n)
		}

		// The directory goes; it is none that goes by itself.
		u.transacted(makeOp(dir+"/plain", ""))
		watch.Directory += "/plain"
		if m := u.listed(watch); len(m.GetChildren()) != 0 || m.GetDirectoryCzxid() == 0 {
			t.Errorf("%v", m)
		}
		must(t, conn.Delete(dir+"/plain", -1))
		u.wokenBy(dir+"/plain", true)
		if n := s.Watches(t); n != 0 {
			t.Errorf("%d watches are left", n)
		}
		u.created(dir+"/plain", "again-")
		u.wokenNot()
		other.wokenNot()
	})
}

func (u *user) wokenNot() {
	u.t.Helper()
	u.list("/")
	none[*messages.Wake](u.t, u.peer)
}

// A watch serves its subscriber until the subscriber unsubscribes.
func TestListWatchUnsubscribe(t *testing.T) {
	eachOwn(t, func(t *testing.T, s *zktest.Server) {
		u, dir := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t)
		other := newUser(t, u.bridge)
		u.created(dir, "a-")
		u.listed(&messages.List{Directory: dir, Watch: true})
		other.listed(&messages.List{Directory: dir, Watch: true})
		u.bridge.Ref().SendUnsubscribe(&messages.Unsubscribe{}, u)
		other.created(dir, "b-")
		other.wokenBy(dir, false)
		u.wokenNot()
		if n := s.Watches(t); n != 0 {
			t.Errorf("%d watches are left", n)
		}
	})
}

func TestListWatchOverReconnect(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(dir string, node string) []any{
		"one comes": func(dir, _ string) []any {
			return []any{&zk.CreateRequest{Path: dir + "/new", Acl: zk.WorldACL(zk.PermAll)}}
		},
		"one goes": func(dir, node string) []any { return []any{&zk.DeleteRequest{Path: dir + "/" + node, Version: -1}} },
		"the directory goes": func(dir, node string) []any {
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
				if name != "the directory goes" {
					u.created(dir, "stays-") // or it would go by itself
				}
				u.listed(&messages.List{Directory: dir, Watch: true})
				proxy.Refuse(true)
				proxy.Cut()
				state(t, u.peer, messages.SessionState_SUSPENDED)
				_, err := conn.Multi(change(dir, node)...)
				must(t, err)
				proxy.Refuse(false)
				state(t, u.peer, messages.SessionState_CONNECTED)
				if name == "nothing" {
					u.wokenNot()
					_, err := conn.Create(dir+"/new", nil, 0, zk.WorldACL(zk.PermAll))
					must(t, err)
				}
				u.wokenBy(dir, name == "the directory goes")
			})
		})
	}
}

func TestListRefusedLeavesNoWatcher(t *testing.T) {
	eachOwn(t, func(t *testing.T, s *zktest.Server) {
		u, dir, conn := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t), s.Client(t)
		u.created(dir, "n-")
		_, err := conn.SetACL(dir, zk.WorldACL(zk.PermAll&^zk.PermRead), -1)
		must(t, err)
		u.bridge.Ref().SendList(&messages.List{Id: 70, Epoch: u.epoch(), Directory: dir, Watch: true, WithCzxids: true}, u)
		u.failed(70, messages.Reason_NO_AUTH)
		u.watch(dir, "missing")
		interests := make(chan int)
		u.bridge.ref.Tell(task(func(c *bridgeActor) { interests <- len(c.epoch.watches.byRecipient[u]) }))
		if n := <-interests; n != 0 {
			t.Errorf("%d interests are left", n)
		}
		_, err = conn.Create(dir+"/new", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		must(t, err)
		u.wokenNot()
		if n := s.Watches(t); n != 0 {
			t.Errorf("%d watches are left", n)
		}
	})
}

func TestListWithCzxids(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		u, dir := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t)
		if m := u.listed(&messages.List{Directory: dir, WithCzxids: true}); len(m.GetChildren())+len(m.GetCzxids()) != 0 {
			t.Errorf("no directory: %v", m)
		}
		czxids := map[string]int64{}
		for range 3 * maxReads {
			m := u.created(dir, "n-")
			czxids[m.GetNode()] = m.GetCzxid()
		}
		m := u.listed(&messages.List{Directory: dir, WithCzxids: true})
		if len(m.GetChildren()) != len(czxids) || len(m.GetCzxids()) != len(czxids) {
			t.Fatalf("%v", m)
		}
		for i, name := range m.GetChildren() {
			if m.GetCzxids()[i] != czxids[name] {
				t.Errorf("czxid %d of %s, which has %d", m.GetCzxids()[i], name, czxids[name])
			}
		}
		if m := u.listed(&messages.List{Directory: dir}); m.GetCzxids() != nil {
			t.Errorf("not asked for: %v", m)
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
			return next[*messages.Watched](t, u.peer)
		}
		m := ask(true)
		empty, there := m.GetData()["empty"]
		if !slices.Equal(m.GetGone(), []string{"none"}) || string(m.GetData()["full"]) != "data" || len(empty) != 0 || !there || len(m.GetData()) != 2 {
			t.Errorf("%v", m)
		}
		if m := ask(false); m.GetData() != nil {
			t.Errorf("not asked for: %v", m)
		}
		// The next change wakes, and the new data can be had with the next watch.
		_, err := conn.Set(dir+"/full", []byte("new"), -1)
		must(t, err)
		if m := next[*messages.Wake](t, u.peer); m.GetNode() != "full" || m.GetDeleted() {
			t.Errorf("%v", m)
		}
		if m := ask(true); string(m.GetData()["full"]) != "new" {
			t.Errorf("%v", m)
		}
		must(t, conn.Delete(dir+"/full", -1))
		must(t, conn.Delete(dir+"/empty", -1))
		u.woken([]string{"full", "empty"})
		if n := s.Watches(t); n != 0 {
			t.Errorf("%d watches are left", n)
		}
	})
}

// A watch is in place from the answer that sets it, whatever else the request reads: it
// is set again over the next connection.
func TestWatchedBeforeCzxidsAreRead(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		proxy := zktest.Proxy(t, s.Addr())
		asked, goOn := make(chan struct{}), make(chan struct{})
		u := withFaultsAnd(t, Config{Servers: proxy.Addr()}, &faulty{exists: func() error {
			asked <- struct{}{}
			<-goOn
			return nil
		}})
		dir := s.Path(t)
		u.created(dir, "n-")
		u.subscribe()
		state(t, u.peer, messages.SessionState_CONNECTED)
		u.bridge.Ref().SendList(&messages.List{Id: u.id(), Epoch: 1, Directory: dir, Watch: true, WithCzxids: true}, u)
		<-asked
		proxy.Cut()
		state(t, u.peer, messages.SessionState_SUSPENDED)
		state(t, u.peer, messages.SessionState_CONNECTED)
		close(goOn)
		if m := next[*messages.Listed](t, u.peer); len(m.GetCzxids()) != 1 {
			t.Errorf("%v", m)
		}
		_, err := s.Client(t).Create(dir+"/other", nil, 0, zk.WorldACL(zk.PermAll))
		must(t, err)
		next[*messages.Wake](t, u.peer)
	})
}

// A request over a new connection shows what has happened since the last one. It must not keep the
// watches from reporting it.
func TestNoRequestBeforeWatchesAreSetAgain(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		proxy, f := zktest.Proxy(t, s.Addr()), &faulty{}
		u, dir := withFaultsAnd(t, Config{Servers: proxy.Addr()}, f), s.Path(t)
		f.rewatch = func() { f.Client.Exists("/", false) }
		u.subscribe()
		u.created(dir, "a-")
		u.listed(&messages.List{Directory: dir, Watch: true})
		proxy.Refuse(true)
		proxy.Cut()
		state(t, u.peer, messages.SessionState_SUSPENDED)
		_, err := s.Client(t).Create(dir+"/b", nil, 0, zk.WorldACL(zk.PermAll))
		must(t, err)
		proxy.Refuse(false)
		u.wokenBy(dir, false)
	})
}

// Below a chroot, too, what is watched stays so.
func TestWatchesAreSetAgainBelowChroot(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		proxy, root, conn := zktest.Proxy(t, s.Addr()), s.Path(t), s.Client(t)
		_, err := conn.Create(root, nil, 0, zk.WorldACL(zk.PermAll))
		must(t, err)
		u := newUser(t, connected(t, Config{Servers: proxy.Addr() + root}))
		u.subscribe()
		state(t, u.peer, messages.SessionState_CONNECTED)
		node := u.created("/d", "n-").GetNode()
		u.watch("/d", node)
		u.listed(&messages.List{Directory: "/d", Watch: true})
		proxy.Cut()
		state(t, u.peer, messages.SessionState_SUSPENDED)
		state(t, u.peer, messages.SessionState_CONNECTED)
		u.wokenNot()
		must(t, conn.Delete(root+"/d/"+node, -1))
		who := map[string]bool{}
		for range 2 {
			m := next[*messages.Wake](t, u.peer)
			who[m.GetDirectory()+"/"+m.GetNode()] = true
		}
		if !who["/d/"] || !who["/d/"+node] {
			t.Errorf("events at %v", who)
		}
	})
}

// incomparable is a recipient that cannot be told apart from others.
type incomparable struct {
	*peer
	tags any
}

// A recipient that cannot be compared is refused where it would have to be, and does no
// harm.
func TestIncomparableRecipient(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	u, dir := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t)
	node := u.created(dir, "n-").GetNode()
	odd := incomparable{newPeer(), []string{"a slice"}}
	refused := func() {
		t.Helper()
		m := next[*messages.Failed](t, odd.peer)
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
	next[*messages.Listed](t, odd.peer)
	u.goesOn()
}
