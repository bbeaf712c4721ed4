package zkbridge

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

func TestSingleCreateIsOneRoundTrip(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		var count counter
		u, dir := newUser(t, connected(t, Config{Servers: s.Addr(), Dial: count.dial})), s.Path(t)
		first := u.created(dir, "a-")
		count.take()
		u.created(dir, "b-")
		if got := fmt.Sprint(count.take()); got != "map[3:1 14:1]" { // in one flight: see TestOneFlight
			t.Errorf("a create took %v", got)
		}
		u.release(dir, first.GetNode())
		next[*messages.NodeReleased](t, u.peer)
		if got := fmt.Sprint(count.take()); got != "map[2:1]" {
			t.Errorf("a release took %v", got)
		}
	})
}

// A relaxed release goes with the next transaction, also while other clients read. Any other release
// goes at once.
func TestRelaxedRelease(t *testing.T) {
	t.Parallel()
	for relaxed, want := range map[bool]string{true: "map[3:2 12:1 14:2]", false: "map[2:1 3:2 12:1 14:2]"} {
		t.Run(fmt.Sprint(relaxed), func(t *testing.T) {
			s := zktest.Embedded(t)
			var count counter
			u, dir := newUser(t, connected(t, Config{Servers: s.Addr(), Dial: count.dial})), s.Path(t)
			first := u.created(dir, "a-")
			count.take()
			s.Embedded().Pause()
			u.createInExisting(dir, "b-")
			count.wait(t, int32(embedded.OpMulti), 1)
			u.bridge.Ref().SendReleaseNode(&messages.ReleaseNode{Id: u.id(), Epoch: u.epoch(), Directory: dir,
				Node: first.GetNode(), Relaxed: relaxed}, u)
			if !relaxed {
				count.wait(t, int32(embedded.OpDelete), 1)
			}
			u.settled()
			u.bridge.Ref().SendList(&messages.List{Id: u.id(), Epoch: u.epoch(), Directory: dir}, u)
			u.settled()
			u.createInExisting(dir, "c-")
			s.Embedded().Resume()
			answers := map[string]int{}
			for range 4 {
				answers[fmt.Sprintf("%T", next[any](t, u.peer))]++
			}
			if got := count.take(); fmt.Sprint(got) != want || answers["*messages.Created"] != 2 {
				t.Errorf("took %v, not %v, and gave %v", got, want, answers)
			}
		})
	}
}

// A release that is in no hurry waits for nothing if nothing is under way.
func TestRelaxedReleaseAlone(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		u, dir := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t)
		node := u.created(dir, "a-").GetNode()
		u.settled()
		u.bridge.Ref().SendReleaseNode(&messages.ReleaseNode{Id: u.id(), Epoch: u.epoch(), Directory: dir,
			Node: node, Relaxed: true}, u)
		next[*messages.NodeReleased](t, u.peer)
	})
}

// Requests that are in the bridge's mailbox at one moment go together: a release and the next acquire
// of the same lock in one transaction, and all requests in one piece.
func TestSentTogether(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		var count counter
		pieces := make(chan int, 100)
		dial := func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := count.dial(ctx, network, address)
			return tcpPieces{conn.(tap).Conn.(*net.TCPConn), conn, pieces}, err
		}
		u, dir := newUser(t, connected(t, Config{Servers: s.Addr(), Dial: dial})), s.Path(t)
		first, second := u.created(dir, "a-"), u.created(dir, "b-")
		count.take()
		before := len(pieces)
		var watching, creating uint64
		u.together(func() {
			u.release(dir, first.GetNode())
			creating = u.create(dir, "c-")
			watching = u.id()
			u.bridge.Ref().SendWatch(&messages.Watch{Id: watching, Epoch: u.epoch(), Directory: dir,
				Nodes: []string{second.GetNode(), first.GetNode()}}, u)
		})
		next[*messages.NodeReleased](t, u.peer)
		if m := next[*messages.Created](t, u.peer); m.GetId() != creating || m.GetDirectoryCzxid() == 0 {
			t.Errorf("%v", m)
		}
		if m := next[*messages.Watched](t, u.peer); m.GetId() != watching || fmt.Sprint(m.GetGone()) != fmt.Sprint([]string{first.GetNode()}) {
			t.Errorf("%v", m)
		}
		if got := fmt.Sprint(count.take()); got != "map[3:1 4:2 14:1]" {
			t.Errorf("they took %v", got)
		}
		if n := len(pieces) - before; n > 2 { // a ping may have come between
			t.Errorf("in %d pieces", n)
		}
	})
}

func TestBatching(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		var count counter
		u, dir := newUser(t, connected(t, Config{Servers: s.Addr(), Dial: count.dial})), s.Path(t)
		u.created(dir+"-0", "first-")
		u.created(dir+"-1", "first-")
		count.take()
		const n = 1000
		for i := range n {
			u.create(fmt.Sprintf("%s-%d", dir, i%2), fmt.Sprintf("n%d-", i))
		}
		nodes := make([][]*messages.Created, 2)
		for range n {
			m := next[*messages.Created](t, u.peer)
			i := int(m.GetId()) % 2 // ids follow each other
			nodes[i] = append(nodes[i], m)
		}
		if multis := count.take()[int32(embedded.OpMulti)]; multis > n/10 {
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
			next[*messages.NodeReleased](t, u.peer)
		}
		if multis := count.take(); multis[int32(embedded.OpMulti)] > n/10 {
			t.Errorf("%d releases took %v", n, multis)
		}
		for i := range 2 {
			if names := s.Nodes(t, fmt.Sprintf("%s-%d", dir, i)); len(names) != 1 {
				t.Errorf("left: %v", names)
			}
		}
	})
}

// directoryOf is where TestBatching has put a node, by its name.
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
		vanishing := dir + "/vanishing"
		u.created(dir, "first-")
		gone := u.created(vanishing, "gone-")
		closedDir := dir + "/closed"
		u.created(closedDir, "first-")
		must(t, conn.Delete(vanishing+"/"+gone.GetNode(), -1))
		if err := conn.Delete(vanishing, -1); !errors.Is(err, zk.ErrNoNode) { // the server may have collected it
			must(t, err)
		}
		_, err := conn.SetACL(closedDir, zk.WorldACL(zk.PermRead|zk.PermCreate|zk.PermDelete), -1)
		must(t, err)

		const n = 15
		u.together(func() {
			for range n {
				u.create(dir, "good-")
				u.create(vanishing, "good-")
				u.create(closedDir, "good-")
				u.release(vanishing, gone.GetNode())
			}
		})
		for range 3 * n {
			next[*messages.Created](t, u.peer)
		}
		for range n {
			next[*messages.NodeReleased](t, u.peer)
		}
		none[*messages.Failed](t, u.peer)
		for d, want := range map[string]int{dir: n + 1 + 2, vanishing: n, closedDir: n + 1} {
			if names := s.Nodes(t, d); len(names) != want {
				t.Errorf("%d nodes in %s, not %d", len(names), d, want)
			}
		}
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestRefusedInBatch(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		u, dir := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t)
		u.created(dir, "first-")
		node := u.created(dir, "parent-").GetNode()
		u.create(dir+"/"+node, "child-of-ephemeral-")
		next[*messages.Failed](t, u.peer) // from now on the bridge knows that directory
		var bad, good uint64
		u.together(func() {
			bad = u.create(dir+"/"+node, "child-of-ephemeral-")
			good = u.create(dir, "good-")
		})
		if m := next[*messages.Failed](t, u.peer); m.GetId() != bad || m.GetReason() != messages.Reason_INVALID {
			t.Errorf("%v", m)
		}
		if m := next[*messages.Created](t, u.peer); m.GetId() != good {
			t.Errorf("%v", m)
		}
	})
}

func TestDirectoryNotWritable(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		u, dir := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t)
		_, err := s.Client(t).Create(dir, nil, 0, zk.WorldACL(zk.PermRead|zk.PermCreate|zk.PermDelete))
		must(t, err)
		checkLooks(t, s, u, dir)
	})
}

func TestDirectoryWithDataKeepsIt(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		u, dir := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t)
		_, err := s.Client(t).Create(dir, []byte("theirs"), 0, zk.WorldACL(zk.PermAll))
		must(t, err)
		checkLooks(t, s, u, dir)
		if data, stat, err := s.Client(t).Get(dir); string(data) != "theirs" || stat.Version != 0 {
			t.Errorf("data is %q, %+v, %v", data, stat, err)
		}
	})
}

func checkLooks(t *testing.T, s *zktest.Server, u *user, dir string) {
	t.Helper()
	looking := func() *messages.Created {
		u.bridge.Ref().SendCreate(&messages.Create{Id: u.id(), Epoch: u.epoch(), Directory: dir, Prefix: "n-", ListAfter: true}, u)
		return next[*messages.Created](t, u.peer)
	}
	first, second := looking(), looking()
	if !slices.Equal(first.GetChildren(), []string{first.GetNode()}) {
		t.Errorf("first: %v", first)
	}
	if len(second.GetChildren()) != 2 || second.GetCzxid() <= first.GetCzxid() {
		t.Errorf("second: %v", second)
	}
	if _, stat, err := s.Client(t).Get(dir + "/" + second.GetNode()); err != nil || stat.Czxid != second.GetCzxid() {
		t.Errorf("%+v, %v", stat, err)
	}
}

func TestNoRightToCreate(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		u, dir := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t)
		_, err := s.Client(t).Create(dir, nil, 0, zk.WorldACL(zk.PermRead|zk.PermWrite))
		must(t, err)
		for _, d := range []string{dir, dir + "/below"} {
			u.create(d, "n-")
			m := next[*messages.Failed](t, u.peer)
			if m.GetReason() != messages.Reason_NO_AUTH || !strings.Contains(m.GetDetail(), d) {
				t.Errorf("%v", m)
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
		says string
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
		m := next[*messages.Failed](t, u.peer)
		if m.GetReason() != messages.Reason_INVALID || !strings.Contains(m.GetDetail(), c.says) {
			t.Errorf("%v: %v", c.msg, m)
		}
	}
	// A big one is fine, also where several of them meet.
	for range 10 {
		u.bridge.Ref().SendCreate(&messages.Create{Epoch: epoch, Directory: "/big", Prefix: "n-",
			Data: bytes.Repeat([]byte("x"), 511<<10)}, u)
	}
	for range 10 {
		next[*messages.Created](t, u.peer)
	}
}

// TestDataIsKept looks at what go-zookeeper shows of the difference between no
// data and null.
func TestDataIsKept(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		u, dir := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t)
		conn := s.Client(t)
		_, err := conn.Create(dir, nil, 0, zk.WorldACL(zk.PermAll))
		must(t, err)
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

// tcpPieces is a socket, so that a request that is not held back is written at once. It counts the
// pieces that are written.
type tcpPieces struct {
	*net.TCPConn
	to    net.Conn
	sizes chan int
}

func (p tcpPieces) Write(b []byte) (int, error) {
	p.sizes <- len(b)
	return p.to.Write(b)
}
