package zkbridge

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// expectChildren checks the nodes of a directory, by their names.
func (u *user) expectChildren(directory string, want map[string]string) {
	u.t.Helper()
	all, err := u.bridge.Children(within(u.t), directory, nil)
	must(u.t, err)
	found := map[string]string{}
	for _, c := range all {
		if found[c.Name] = string(c.Data); c.Stat.Czxid == 0 || int(c.Stat.DataLength) != len(c.Data) {
			u.t.Errorf("%s: %v", c.Name, c.Stat)
		}
	}
	if len(all) != len(want) || !maps.Equal(found, want) {
		u.t.Errorf("%d children, %d names, want %d: %.2000v", len(all), len(found), len(want), found)
	}
}

// The nodes of a directory share messages: of 16 nodes first, and of up to 64 then.
func TestChildrenShareMessages(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		var d testDialer
		u, dir, conn := newUser(t, connected(t, Config{Servers: s.Addr(), Dial: d.Dial})), s.Path(t), s.Client(t)
		makeNode(t, conn, dir, "")
		want := map[string]string{}
		for n, messages := range []string{"getChildren2:1 multi:1", "getData:1 getChildren2:1 multi:1", "getData:2 getChildren2:1 multi:1", "getChildren2:1 multi:1 multiRead:1"} {
			for len(want) < n {
				name := fmt.Sprint("n", len(want))
				want[name] = name
				makeNode(t, conn, dir+"/"+name, name)
			}
			d.take()
			u.expectChildren(dir, want)
			if got := fmt.Sprint(d.take()); got != "map["+messages+"]" {
				t.Errorf("%d nodes took %v, not %v", n, got, messages)
			}
		}
		var ops []any
		for n := range 130 {
			name, data := fmt.Sprint("many", n), slices.Repeat([]byte{'x'}, n%3)
			want[name] = string(data)
			ops = append(ops, &zk.CreateRequest{Path: dir + "/" + name, Data: data, Acl: zk.WorldACL(zk.PermAll)})
		}
		_, err := conn.Multi(ops...)
		must(t, err)
		d.take()
		u.expectChildren(dir, want)
		if got := d.take(); got[embedded.OpMultiRead] != 4 || got[embedded.OpGetData] != 0 {
			t.Errorf("%d nodes took %v", len(want), got)
		}
	})
}

// Where the first nodes are large, the rest is read one by one.
func TestLargeChildrenShareOneMessage(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		var d testDialer
		u, dir, conn := newUser(t, connected(t, Config{Servers: s.Addr(), Dial: d.Dial})), s.Path(t), s.Client(t)
		makeNode(t, conn, dir, "")
		want := map[string]string{}
		for n := range 3 * firstChildren {
			name := fmt.Sprint("n", n)
			want[name] = string(bytes.Repeat([]byte{byte(n)}, manyBytes/firstChildren))
			makeNode(t, conn, dir+"/"+name, want[name])
		}
		d.take()
		u.expectChildren(dir, want)
		if got := d.take(); got[embedded.OpMultiRead] != 1 || got[embedded.OpGetData] != 2*firstChildren {
			t.Errorf("%d nodes took %v", len(want), got)
		}
	})
}

// A node that may not be read, in a message with others, is as one that is read by itself.
func TestChildWithoutReadAmongOthers(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		u, dir, conn := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t), s.Client(t)
		u.transacted(makeOp(dir, ""), makeOp(dir+"/a", "data"), makeOp(dir+"/secret", "data"), makeOp(dir+"/b", ""), makeOp(dir+"/c", "data"))
		setRights(t, conn, dir+"/secret", zk.PermAll&^zk.PermRead)
		all, err := u.bridge.Children(within(t), dir, nil)
		must(t, err)
		alone, err := u.bridge.Children(within(t), dir, func(name string) bool { return name == "secret" })
		must(t, err)
		stat := func(of []Child) zk.Stat {
			return of[slices.IndexFunc(of, func(c Child) bool { return c.Name == "secret" })].Stat
		}
		if among, own := stat(all), stat(alone); among != own {
			t.Errorf("the stat %v among others, and %v by itself", among, own)
		}
		data := map[string]string{}
		for _, c := range all {
			data[c.Name] = string(c.Data)
		}
		if want := map[string]string{"a": "data", "b": "", "c": "data", "secret": ""}; !maps.Equal(data, want) {
			t.Errorf("%v, want %v", data, want)
		}
	})
}

// Where a message with many nodes gets no answer that counts, each node is read by itself, or all again
// over the next connection. A node that is gone meanwhile is left out.
func TestChildrenWithoutSharedAnswer(t *testing.T) {
	t.Parallel()
	for _, f := range []embedded.Fault{{Action: embedded.CutBefore}, {Action: embedded.DropReply}, {Action: embedded.Refuse, Code: -6},
		{Action: embedded.Refuse, Code: -6, Times: -1}, {Action: embedded.Refuse, Code: -127}, {Action: embedded.Misreport, Code: -1}} {
		t.Run(fmt.Sprint(f.Action, f.Code, f.Times), func(t *testing.T) {
			t.Parallel()
			zktest.Bubble(t, func(t *testing.T) {
				s := zktest.Virtual(t)
				u, conn := newUser(t, connected(t, Config{Servers: s.Addr(), Dial: s.Dial, SessionTimeout: 20 * time.Second})), s.Client(t)
				u.transacted(makeOp("/d", ""), makeOp("/d/a", "data"), makeOp("/d/b", ""), makeOp("/d/c", "more"))
				f.Op = embedded.OpMultiRead
				fault := s.Embedded().Inject(f)
				u.expectChildren("/d", map[string]string{"a": "data", "b": "", "c": "more"})
				waitFired(t, fault)
				if f.Code != -6 { // otherwise the message is not sent any more
					slow := s.Embedded().Inject(embedded.Fault{Op: embedded.OpMultiRead, Action: embedded.DelayRequest, Delay: 2 * time.Second})
					time.AfterFunc(time.Second, func() { must(t, conn.Delete("/d/b", -1)) })
					u.expectChildren("/d", map[string]string{"a": "data", "c": "more"})
					waitFired(t, slow)
				}
				u.keepsSession()
			})
		})
	}
}

// Nodes that are together larger than an answer may be are read one by one.
func TestLargeChildren(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		u, dir, conn := newUser(t, connected(t, Config{Servers: s.Addr(), MaxReply: minMaxReply})), s.Path(t), s.Client(t)
		makeNode(t, conn, dir, "")
		want := map[string]string{}
		for n := range 40 {
			name, size := fmt.Sprint("n", n), 20<<10
			if n < 4 {
				size = 400 << 10
			}
			want[name] = string(bytes.Repeat([]byte{byte(n)}, size))
			makeNode(t, conn, dir+"/"+name, want[name])
		}
		u.expectChildren(dir, want)
		u.keepsSession()
	})
}
