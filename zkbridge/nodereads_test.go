package zkbridge

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// watchEach sends a Watch for each node at one moment, and returns the answers in their order.
func (u *user) watchEach(dir string, nodes ...string) []any {
	u.t.Helper()
	ids := map[uint64]int{}
	u.batch(func() {
		for i, node := range nodes {
			id := u.id()
			ids[id] = i
			u.bridge.Ref().SendWatch(&messages.Watch{Id: id, Epoch: u.epoch(), Directory: dir, Nodes: []string{node}, WithData: true}, u)
		}
	})
	all := make([]any, len(nodes))
	for range nodes {
		switch m := next[any](u).(type) {
		case *messages.Watched:
			all[ids[m.GetId()]] = m
		case *messages.Failed:
			all[ids[m.GetId()]] = m
		default:
			u.t.Fatalf("received %v", m)
		}
	}
	return all
}

// expectWatched checks that an answer is a Watched with the data; "gone" is a node that does not exist.
func (u *user) expectWatched(answer any, node, data string) {
	u.t.Helper()
	m, is := answer.(*messages.Watched)
	if !is || slices.Contains(m.GetGone(), node) != (data == "gone") || data != "gone" && string(m.GetData()[node]) != data {
		u.t.Errorf("%s: %v, want %s", node, answer, data)
	}
}

// The Watches of one moment share two messages, and each has its own answer. A missing node and one that
// may not be read are as in a read of one node.
func TestWatchesOfOneMoment(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		var d testDialer
		u, dir, conn := newUser(t, connected(t, Config{Servers: s.Addr(), Dial: d.Dial})), s.Path(t), s.Client(t)
		u.transacted(makeOp(dir, ""), makeOp(dir+"/full", "data"), makeOp(dir+"/empty", ""), makeOp(dir+"/secret", "data"))
		own := u.created(dir, "n-").GetNode()
		setRights(t, conn, dir+"/secret", zk.PermAll&^zk.PermRead)
		d.take()
		all := u.watchEach(dir, "full", "none", "empty", "secret", own)
		if ops := fmt.Sprint(d.take()); ops != "map[multiRead:1 setWatches:1]" {
			t.Errorf("took %v", ops)
		}
		u.expectWatched(all[0], "full", "data")
		u.expectWatched(all[1], "none", "gone")
		u.expectWatched(all[2], "empty", "")
		u.expectWatched(all[4], own, "")
		if m, is := all[3].(*messages.Failed); !is || m.GetReason() != messages.Reason_NO_AUTH {
			t.Errorf("%v", all[3])
		}
		if m := all[0].(*messages.Watched); !slices.Equal(m.GetPersistent(), []string{"full"}) || all[4].(*messages.Watched).GetPersistent() != nil {
			t.Errorf("%v", all)
		}
		u.noWake()
		u.bridge.runInActor(func(c *bridgeActor) {
			if c.epoch.Watches().Has(dir+"/none") || c.epoch.Watches().Has(dir+"/secret") {
				t.Error("an interest is left")
			}
		})
		_, err := conn.Set(dir+"/full", []byte("new"), -1)
		must(t, err)
		if m := next[*messages.Wake](u); m.GetNode() != "full" || m.GetDeleted() {
			t.Errorf("%v", m)
		}
		must(t, conn.Delete(dir+"/empty", -1))
		must(t, conn.Delete(dir+"/"+own, -1))
		u.waitDeleted([]string{"empty", own})
	})
}

// What happens between the watches and the reads is in the answers, without a Wake, and what happens
// later leads to one.
func TestChangesBeforeReadsOfOneMoment(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		s := zktest.Virtual(t)
		u, conn := newUser(t, connected(t, Config{Servers: s.Addr(), Dial: s.Dial, SessionTimeout: 20 * time.Second})), s.Client(t)
		u.transacted(makeOp("/d", ""), makeOp("/d/kept", "data"), makeOp("/d/written", "data"), makeOp("/d/deleted", "data"), makeOp("/d/again", "data"))
		u.watch("/d", "kept") // an active watch wakes at once
		fault := s.Embedded().Inject(embedded.Fault{Op: embedded.OpMultiRead, Action: embedded.DelayRequest, Delay: 2 * time.Second})
		time.AfterFunc(time.Second, func() {
			for _, node := range []string{"deleted", "again"} {
				must(t, conn.Delete("/d/"+node, -1))
			}
			makeNode(t, conn, "/d/again", "another")
			_, err := conn.Set("/d/written", []byte("new"), -1)
			must(t, err)
		})
		all := u.watchEach("/d", "kept", "written", "deleted", "again", "none")
		waitFired(t, fault)
		for i, want := range []struct{ node, data string }{{"kept", "data"}, {"written", "new"}, {"deleted", "gone"}, {"again", "another"}, {"none", "gone"}} {
			u.expectWatched(all[i], want.node, want.data)
		}
		u.noWake()
		for _, node := range []string{"kept", "written", "again"} {
			must(t, conn.Delete("/d/"+node, -1))
		}
		u.waitDeleted([]string{"kept", "written", "again"})
		u.keepsSession()
	})
}

// Without an answer for all, each node is read by itself: the connection is lost, the server refuses a
// message, or the answer is larger than the client takes.
func TestReadsOfOneMomentFail(t *testing.T) {
	t.Parallel()
	for _, op := range []embedded.Op{embedded.OpSetWatches, embedded.OpMultiRead} {
		for _, f := range []embedded.Fault{{Action: embedded.CutBefore}, {Action: embedded.DropReply}, {Action: embedded.Refuse, Code: -6},
			{Action: embedded.Refuse, Code: -6, Times: -1}, {Action: embedded.Misreport, Code: -1}} {
			t.Run(fmt.Sprint(op, " ", f.Action, f.Code, f.Times), func(t *testing.T) {
				t.Parallel()
				zktest.Bubble(t, func(t *testing.T) {
					s := zktest.Virtual(t)
					u, conn := newUser(t, connected(t, Config{Servers: s.Addr(), Dial: s.Dial, SessionTimeout: 20 * time.Second})), s.Client(t)
					u.transacted(makeOp("/d", ""), makeOp("/d/a", "data"), makeOp("/d/b", "data"), makeOp("/d/c", "data"))
					f.Op = op
					fault := s.Embedded().Inject(f)
					all := u.watchEach("/d", "a", "none", "b", "c")
					waitFired(t, fault)
					for i, want := range []struct{ node, data string }{{"a", "data"}, {"none", "gone"}, {"b", "data"}, {"c", "data"}} {
						u.expectWatched(all[i], want.node, want.data)
					}
					must(t, conn.Delete("/d/a", -1))
					u.waitDeleted([]string{"a"})
					u.keepsSession()
				})
			})
		}
	}
}
