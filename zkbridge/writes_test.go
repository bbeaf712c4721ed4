package zkbridge

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// The bridge sends a relaxed release with the next transaction, also while other requests read, and
// any other release at once.
func TestRelaxedRelease(t *testing.T) {
	t.Parallel()
	for relaxed, want := range map[bool]string{true: "map[getData:1 getChildren2:1 multi:2]", false: "map[delete:1 getData:1 getChildren2:1 multi:2]"} {
		t.Run(fmt.Sprint(relaxed), func(t *testing.T) {
			s := zktest.Embedded(t)
			var d testDialer
			u, dir := newUser(t, connected(t, Config{Servers: s.Addr(), Dial: d.Dial})), s.Path(t)
			first := u.created(dir, "a-")
			d.take()
			s.Embedded().Pause()
			u.createInExisting(dir, "b-")
			d.waitSent(t, embedded.OpMulti, 1)
			u.sendRelease(&messages.ReleaseNode{Directory: dir, Node: first.GetNode(), Relaxed: relaxed})
			if !relaxed {
				d.waitSent(t, embedded.OpDelete, 1)
			}
			u.flush()
			u.bridge.Ref().SendList(&messages.List{Id: u.id(), Epoch: u.epoch(), Directory: dir}, u)
			u.flush()
			u.createInExisting(dir, "c-")
			s.Embedded().Resume()
			answers := map[string]int{}
			for range 4 {
				answers[fmt.Sprintf("%T", next[any](u))]++
			}
			if got := d.take(); fmt.Sprint(got) != want || answers["*messages.Created"] != 2 {
				t.Errorf("took %v, not %v, and was answered by %v", got, want, answers)
			}
		})
	}
}

// The bridge sends a relaxed release at once if nothing is in flight.
func TestRelaxedReleaseAlone(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		u, dir := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t)
		node := u.created(dir, "a-").GetNode()
		u.flush()
		u.sendRelease(&messages.ReleaseNode{Directory: dir, Node: node, Relaxed: true})
		next[*messages.NodeReleased](u)
	})
}

// The bridge sends together all requests that are in its mailbox: a release and the next create of
// the same lock in one transaction, and all requests in one write.
func TestSentTogether(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		d := testDialer{socket: true}
		u, dir := newUser(t, connected(t, Config{Servers: s.Addr(), Dial: d.Dial})), s.Path(t)
		first, second := u.created(dir, "a-"), u.created(dir, "b-")
		d.take()
		var watching, creating uint64
		u.batch(func() {
			u.release(dir, first.GetNode())
			creating = u.create(dir, "c-")
			watching = u.id()
			u.bridge.Ref().SendWatch(&messages.Watch{Id: watching, Epoch: u.epoch(), Directory: dir,
				Nodes: []string{second.GetNode(), first.GetNode()}}, u)
		})
		next[*messages.NodeReleased](u)
		if m := next[*messages.Created](u); m.GetId() != creating || m.GetDirectoryCzxid() == 0 {
			t.Errorf("%v", m)
		}
		if m := next[*messages.Watched](u); m.GetId() != watching || fmt.Sprint(m.GetGone()) != fmt.Sprint([]string{first.GetNode()}) {
			t.Errorf("%v", m)
		}
		if n := d.written(); n > 2 { // a ping may have come between
			t.Errorf("sent in %d writes", n)
		}
		if got := fmt.Sprint(d.take()); got != "map[getData:2 multi:1]" {
			t.Errorf("they took %v", got)
		}
	})
}

func TestBatching(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		var d testDialer
		u, dir := newUser(t, connected(t, Config{Servers: s.Addr(), Dial: d.Dial})), s.Path(t)
		u.created(dir+"-0", "first-")
		u.created(dir+"-1", "first-")
		d.take()
		const n = 1000
		for i := range n {
			u.create(fmt.Sprintf("%s-%d", dir, i%2), fmt.Sprintf("n%d-", i))
		}
		nodes := make([][]*messages.Created, 2)
		for range n {
			m := next[*messages.Created](u)
			i := int(m.GetId()) % 2 // ids are consecutive
			nodes[i] = append(nodes[i], m)
		}
		if multis := d.take()[embedded.OpMulti]; multis > n/10 {
			t.Errorf("%d creates took %d multis", n, multis)
		}
		for _, list := range nodes {
			checkOrder(t, list)
		}
		for _, list := range nodes {
			for _, m := range list {
				u.release(fmt.Sprintf("%s-%d", dir, directoryOf(m)), m.GetNode())
			}
		}
		for range n {
			next[*messages.NodeReleased](u)
		}
		if multis := d.take(); multis[embedded.OpMulti] > n/10 {
			t.Errorf("%d releases took %v", n, multis)
		}
		for i := range 2 {
			if names := s.Nodes(t, fmt.Sprintf("%s-%d", dir, i)); len(names) != 1 {
				t.Errorf("left: %v", names)
			}
		}
	})
}

// directoryOf returns the number of the directory in which TestBatching has created a node.
func directoryOf(m *messages.Created) int {
	var i int
	fmt.Sscanf(m.GetNode(), "n%d-", &i)
	return i % 2
}

func sequence(m *messages.Created) string {
	return m.GetNode()[strings.LastIndexByte(m.GetNode(), '-'):]
}

// checkOrder fails the test unless czxid and step order nodes as their sequence
// numbers do.
func checkOrder(t *testing.T, list []*messages.Created) {
	t.Helper()
	slices.SortFunc(list, func(a, b *messages.Created) int {
		return cmp.Or(cmp.Compare(a.GetCzxid(), b.GetCzxid()), cmp.Compare(a.GetStep(), b.GetStep()))
	})
	for i, m := range list {
		if i > 0 && sequence(list[i-1]) >= sequence(m) {
			t.Fatalf("%v comes before %v", list[i-1], m)
		}
	}
}

func TestBadOperationInBatch(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		u, dir := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t)
		conn := s.Client(t)
		deletedDir := dir + "/deleted"
		u.created(dir, "first-")
		gone := u.created(deletedDir, "gone-")
		closedDir := dir + "/closed"
		u.created(closedDir, "first-")
		must(t, conn.Delete(deletedDir+"/"+gone.GetNode(), -1))
		if err := conn.Delete(deletedDir, -1); !errors.Is(err, zk.ErrNoNode) { // the server may have collected it
			must(t, err)
		}
		setRights(t, conn, closedDir, zk.PermRead|zk.PermCreate|zk.PermDelete)

		const n = 15
		u.batch(func() {
			for range n {
				u.create(dir, "good-")
				u.create(deletedDir, "good-")
				u.create(closedDir, "good-")
				u.release(deletedDir, gone.GetNode())
			}
		})
		for range 3 * n {
			next[*messages.Created](u)
		}
		for range n {
			next[*messages.NodeReleased](u)
		}
		none[*messages.Failed](u)
		for d, want := range map[string]int{dir: n + 1 + 2, deletedDir: n, closedDir: n + 1} {
			if names := s.Nodes(t, d); len(names) != want {
				t.Errorf("%d nodes in %s, not %d", len(names), d, want)
			}
		}
	})
}

func TestInvalidRequests(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	u := newUser(t, connected(t, Config{Servers: s.Addr()}))
	epoch := u.epoch()
	for _, c := range []struct {
		msg  any
		want string
	}{
		{&messages.Create{Epoch: epoch, Directory: "/a", Prefix: "n-", Data: bytes.Repeat([]byte("x"), 513<<10)}, "524288"},
		{&messages.Create{Epoch: epoch, Directory: "a", Prefix: "n-"}, `"a"`},
		{&messages.Create{Epoch: epoch, Directory: "/a/", Prefix: "n-"}, `"/a/"`},
		{&messages.Create{Epoch: epoch, Directory: "/a", Prefix: ""}, `""`},
		{&messages.Create{Epoch: epoch, Directory: "/a", Prefix: "b/c"}, `"b/c"`},
		{&messages.ReleaseNode{Epoch: epoch, Directory: "/a", Node: ""}, `""`},
		{&messages.ReleaseNode{Epoch: epoch, Directory: "", Node: "x\x00"}, "not allowed"},
		{&messages.List{Epoch: epoch, Directory: "a"}, `"a"`},
		{&messages.List{Epoch: epoch, Directory: "/" + strings.Repeat("x", 2<<20)}, "524288"},
		{&messages.ReleaseNode{Epoch: epoch, Directory: "/a", Node: strings.Repeat("x", 2<<20)}, "524288"},
		{&messages.Watch{Epoch: epoch, Directory: "/a", Nodes: []string{"x", strings.Repeat("x", 2<<20)}}, "524288"},
		{&messages.Watch{Epoch: epoch, Directory: "a", Nodes: []string{"x"}}, `"a/x"`},
	} {
		u.bridge.Ref().To.Tell(&ask.Call{Message: c.msg, From: u})
		m := next[*messages.Failed](u)
		if m.GetReason() != messages.Reason_INVALID || !strings.Contains(m.GetDetail(), c.want) {
			t.Errorf("%v: %v", c.msg, m)
		}
	}
	// Large creates are accepted, also several of them at once.
	for range 10 {
		u.bridge.Ref().SendCreate(&messages.Create{Epoch: epoch, Directory: "/big", Prefix: "n-",
			Data: bytes.Repeat([]byte("x"), 511<<10)}, u)
	}
	for range 10 {
		next[*messages.Created](u)
	}
}

// The bridge changes the data neither of a directory nor of a node: go-zookeeper shows the
// difference between no data and null.
func TestDataIsKept(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		u, dir := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t)
		conn := s.Client(t)
		makeNode(t, conn, dir, "")
		for d, null := range map[string]bool{dir: true, dir + "/ours": false} {
			node := u.created(d, "n-").GetNode()
			if data, stat, err := conn.Get(d); (data == nil) != null || len(data) > 0 || stat.Version != 0 || err != nil {
				t.Errorf("%s: data %#v, %+v, %v", d, data, stat, err)
			}
			if data, _, err := conn.Get(d + "/" + node); data == nil || len(data) > 0 || err != nil {
				t.Errorf("%s/%s: data %#v, %v", d, node, data, err)
			}
		}
	})
}

// A release whose name is no node of the directory deletes nothing.
func TestReleaseOfNothing(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		root, c := s.Path(t), s.Client(t)
		makeNode(t, c, root, "")
		t.Cleanup(func() { c.Delete(root, -1) })
		u := newUser(t, connected(t, Config{Servers: s.Addr() + root}))
		for _, r := range []*messages.ReleaseNode{{Directory: "/"}, {}, {Directory: "/a", Node: "b/c"}} {
			r.Id, r.Epoch = u.id(), u.epoch()
			u.bridge.Ref().SendReleaseNode(r, u)
			if got := next[*messages.Failed](u); got.GetReason() != messages.Reason_INVALID {
				t.Errorf("%v: %v", r, got)
			}
		}
		if exists, _, _ := c.Exists(root); !exists {
			t.Error("the chroot is deleted")
		}
	})
}

func TestSequenceExhausted(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	u := newUser(t, connected(t, Config{Servers: s.Addr()}))
	u.created("/a", "n-")
	s.Embedded().SetCreateCount("/a", 1<<31-1)
	var failed int
	for range 4 { // one by one, because the sequence numbers within a transaction wrap
		u.create("/a", "n-")
		switch m := (<-u.mailbox).(type) {
		case *messages.Failed:
			failed++
			if m.GetReason() != messages.Reason_SEQUENCE_EXHAUSTED {
				t.Errorf("%v", m)
			}
		}
	}
	if failed == 0 {
		t.Error("no create has failed")
	}
}
