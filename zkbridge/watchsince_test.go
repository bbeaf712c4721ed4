package zkbridge

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// watchSince sends a Watch with Since, and returns its id.
func (u *user) watchSince(since int64, directory string, nodes ...string) uint64 {
	id := u.id()
	u.bridge.Ref().SendWatch(&messages.Watch{Id: id, Epoch: u.epoch(), Directory: directory, Nodes: nodes, WithData: true, Since: since}, u)
	return id
}

// wakes waits for n Wakes, and returns their nodes: those that are gone, and those that exist.
func (u *user) wakes(n int) (gone, changed []string) {
	u.t.Helper()
	for range n {
		if m := next[*messages.Wake](u); m.GetDeleted() {
			gone = append(gone, m.GetNode())
		} else {
			changed = append(changed, m.GetNode())
		}
	}
	slices.Sort(changed)
	return gone, changed
}

// One message sets all watches. What has changed since the zxid is reported at once, all else when
// it changes.
func TestWatchSince(t *testing.T) {
	eachOwn(t, func(t *testing.T, s *zktest.Server) {
		root, conn := s.Path(t), s.Client(t)
		makeNode(t, conn, root, "")
		var d testDialer
		u := newUser(t, connected(t, Config{Servers: s.Addr() + root, Dial: d.Dial}))
		gone, written, same := u.created("/d", "gone-"), u.created("/d", "written-"), u.created("/d", "same-")
		later := u.created("/d", "later-").GetNode()
		path := func(node string) string { return root + "/d/" + node }
		_, err := conn.Set(path(written.GetNode()), []byte("data"), -1)
		must(t, err)
		must(t, conn.Delete(path(gone.GetNode()), -1))
		u.list("/d") // the bridge's server has executed that
		d.take()
		id := u.watchSince(same.GetCzxid(), "/d", gone.GetNode(), written.GetNode(), same.GetNode(), later)
		deleted, changed := u.wakes(3)
		if !slices.Equal(deleted, []string{gone.GetNode()}) || !slices.Equal(changed, []string{later, written.GetNode()}) {
			t.Errorf("gone: %v, changed: %v", deleted, changed)
		}
		if m := next[*messages.Watched](u); m.GetId() != id || len(m.GetGone())+len(m.GetData()) > 0 {
			t.Errorf("%v", m)
		}
		if ops := d.take(); ops[embedded.OpSetWatches] != 1 || ops[embedded.OpGetData] > 0 {
			t.Errorf("the bridge sends %v", ops)
		}
		u.noWake()
		must(t, conn.Delete(path(same.GetNode()), -1))
		u.waitDeleted([]string{same.GetNode()})
		if n := s.Watches(t); n != 1 {
			t.Errorf("%d watches are left beside that on the directory itself", n-1)
		}
	})
}

// Many nodes take several messages, and one answer.
func TestManyWatchesSince(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		var d testDialer
		u, dir, conn := newUser(t, connected(t, Config{Servers: s.Addr(), Dial: d.Dial})), s.Path(t), s.Client(t)
		const n = 500 // of 300 bytes
		for range n {
			u.create(dir, strings.Repeat("x", 250)+"-")
		}
		var nodes []string
		var ops []any
		var last int64
		for range n {
			m := next[*messages.Created](u)
			nodes, last = append(nodes, m.GetNode()), max(last, m.GetCzxid())
			ops = append(ops, &zk.DeleteRequest{Path: dir + "/" + m.GetNode(), Version: -1})
		}
		d.take()
		u.watchSince(last, dir, nodes...)
		next[*messages.Watched](u)
		if n := d.take()[embedded.OpSetWatches]; n != 2 {
			t.Errorf("%d messages set the watches", n)
		}
		_, err := conn.Multi(ops...)
		must(t, err)
		u.waitDeleted(nodes)
		none[*messages.Watched](u)
	})
}

// The watches are set although the connection is lost meanwhile, and an event of that time is not
// missed.
func TestWatchSinceThroughFaults(t *testing.T) {
	t.Parallel()
	for _, action := range []embedded.Action{embedded.CutBefore, embedded.DropReply, embedded.CutAfter} {
		t.Run(action.String(), func(t *testing.T) {
			t.Parallel()
			s := zktest.Embedded(t)
			u, conn := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Client(t)
			gone, same := u.created("/d", "gone-").GetNode(), u.created("/d", "same-")
			fault := s.Embedded().Inject(embedded.Fault{Op: embedded.OpSetWatches, Path: "/d/" + gone, Action: action})
			u.watchSince(same.GetCzxid(), "/d", gone, same.GetNode())
			waitFired(t, fault)
			must(t, conn.Delete("/d/"+gone, -1))
			u.waitDeleted([]string{gone})
			next[*messages.Watched](u)
			must(t, conn.Delete("/d/"+same.GetNode(), -1))
			u.waitDeleted([]string{same.GetNode()})
			u.keepsSession()
		})
	}
}

// If the server refuses to set several watches, the bridge reads the nodes, which shows the reason.
func TestWatchSinceRefused(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		f := &faultyClient{watchSince: func() error { return zkconn.ServerError(zkconn.CodeUnimplemented) }}
		u, dir, conn := userOfFaulty(t, Config{Servers: s.Addr()}, f), s.Path(t), s.Client(t)
		one, other := u.created(dir, "n-"), u.created(dir, "n-")
		u.watchSince(one.GetCzxid(), dir, "none", one.GetNode(), other.GetNode())
		if m := next[*messages.Watched](u); !slices.Equal(m.GetGone(), []string{"none"}) || len(m.GetData()) != 2 {
			t.Errorf("%v", m)
		}
		must(t, conn.Delete(dir+"/"+one.GetNode(), -1))
		u.waitDeleted([]string{one.GetNode()})

		setRights(t, conn, dir+"/"+other.GetNode(), zk.PermAll&^zk.PermRead)
		u.refused(u.watchSince(one.GetCzxid(), dir, other.GetNode()), messages.Reason_NO_AUTH, dir+"/"+other.GetNode())
		u.noWake()
	})
}

// Where a server hangs up on the message that sets many watches each time, as on one that is too large,
// though it knows such messages, reads set the watches.
func TestWatchSinceHungUpOn(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		s := zktest.Virtual(t)
		u := newUser(t, connected(t, Config{Servers: s.Addr(), Dial: s.Dial, SessionTimeout: 40 * time.Second}))
		first, second := u.created("/d", "n-"), u.created("/d", "n-")
		// The probe names no node.
		fault := s.Embedded().Inject(embedded.Fault{Op: embedded.OpSetWatches, Path: "/d/", Action: embedded.CutBefore, Times: -1})
		id := u.watchSince(second.GetCzxid(), "/d", first.GetNode(), second.GetNode())
		if m := next[*messages.Watched](u); m.GetId() != id {
			t.Errorf("%v", m)
		}
		if n := len(fault.Firings()); n == 0 || n > 8 {
			t.Errorf("the server hung up %d times", n)
		}
		fault.Remove()
		must(t, s.Client(t).Delete("/d/"+first.GetNode(), -1))
		u.waitDeleted([]string{first.GetNode()})
	})
}
