package zkbridge

import (
	"fmt"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// together has all that send asks for sent in one transaction, if it fits.
func (u *user) together(send func()) {
	leave := make(chan struct{})
	u.bridge.ref.Tell(task(func(*core) { <-leave }))
	send()
	close(leave)
}

// A directory is not written where a node follows another that was alone; and what is
// told is as true as ever.
func TestSpared(t *testing.T) {
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		u, at, conn := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t), s.Client(t)
		names := []string{"spared", "joined", "visited", "two", "behind"}
		nodes := map[string]string{}
		for _, name := range names {
			nodes[name] = u.created(at+"/"+name, "n-").GetNode()
		}
		round := func(want map[string]string) {
			t.Helper()
			versions := map[string]int32{}
			for _, name := range names {
				_, stat, err := conn.Exists(at + "/" + name)
				must(t, err)
				versions[name] = stat.Version
			}
			asked := map[uint64]string{}
			u.together(func() {
				for _, name := range names {
					dir := at + "/" + name
					switch name {
					case "two":
						u.release(dir, nodes[name])
						asked[u.create(dir, "n-")] = name
						asked[u.create(dir, "n-")] = name + "'s second"
					case "behind":
						asked[u.create(dir, "n-")] = name
						u.release(dir, nodes[name])
					default:
						u.release(dir, nodes[name])
						asked[u.create(dir, "n-")] = name
					}
				}
			})
			got := map[string]*messages.Created{}
			for range asked {
				m := next[*messages.Created](t, u.peer)
				got[asked[m.GetId()]] = m
			}
			for range names {
				next[*messages.NodeReleased](t, u.peer)
			}
			for _, name := range names {
				dir := at + "/" + name
				m := got[name]
				_, stat, err := conn.Exists(dir)
				must(t, err)
				_, node, err := conn.Exists(dir + "/" + m.GetNode())
				must(t, err)
				told := fmt.Sprintf("%d others, written %d times", m.GetOthers(), stat.Version-versions[name])
				if told != want[name] {
					t.Errorf("%s: %s, want %s", name, told, want[name])
				}
				if m.GetCzxid() != node.Czxid || m.GetDirectoryCzxid() != stat.Czxid || m.GetStep() != 0 {
					t.Errorf("%s: %v, but it is %v in %v", name, m, node, stat)
				}
				nodes[name] = m.GetNode()
			}
			second := got["two's second"]
			if second.GetStep() != 1 || second.GetCzxid() != got["two"].GetCzxid() {
				t.Errorf("after %v comes %v", got["two"], second)
			}
			u.release(at+"/two", second.GetNode())
			next[*messages.NodeReleased](t, u.peer)
		}
		_, err := conn.Create(at+"/joined/other", nil, 0, zk.WorldACL(zk.PermAll))
		must(t, err)
		_, err = conn.Create(at+"/visited/other", nil, 0, zk.WorldACL(zk.PermAll))
		must(t, err)
		must(t, conn.Delete(at+"/visited/other", -1))
		round(map[string]string{
			"spared":  "0 others, written 0 times",
			"joined":  "-1 others, written 0 times", // numbers were skipped
			"visited": "-1 others, written 0 times",
			"two":     "0 others, written 1 times",
			"behind":  "0 others, written 1 times",
		})
		round(map[string]string{
			"spared":  "0 others, written 0 times",
			"joined":  "1 others, written 1 times",
			"visited": "0 others, written 1 times",
			"two":     "0 others, written 1 times",
			"behind":  "0 others, written 1 times",
		})
	})
}

// One directory is always written: how else could the zxid be learnt?
func TestSparedButOne(t *testing.T) {
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		u, at, conn := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t), s.Client(t)
		var dirs, nodes []string
		for i := range 3 {
			dirs = append(dirs, fmt.Sprintf("%s/%d", at, i))
			nodes = append(nodes, u.created(dirs[i], "n-").GetNode())
		}
		u.together(func() {
			for i, dir := range dirs {
				u.release(dir, nodes[i])
				u.create(dir, "n-")
			}
		})
		for i, dir := range dirs {
			m := next[*messages.Created](t, u.peer)
			_, node, err := conn.Exists(dir + "/" + m.GetNode())
			must(t, err)
			_, stat, err := conn.Exists(dir)
			must(t, err)
			if m.GetCzxid() != node.Czxid || m.GetOthers() != 0 || m.GetDirectoryCzxid() != stat.Czxid {
				t.Errorf("%v, but it is %v in %v", m, node, stat)
			}
			if written := stat.Version == 2; written != (i == 0) {
				t.Errorf("%s was written %d times", dir, stat.Version)
			}
		}
	})
}

// A directory that was made anew is not taken for the former, though the numbers fit.
func TestNotSparedIfNew(t *testing.T) {
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		u, dir, conn := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t), s.Client(t)
		former := u.created(dir, "n-").GetNode()
		must(t, conn.Delete(dir+"/"+former, -1))
		must(t, conn.Delete(dir, -1))
		_, err := conn.Create(dir, nil, 0, zk.WorldACL(zk.PermAll))
		must(t, err)
		_, err = conn.Create(dir+"/other-", nil, zk.FlagSequence, zk.WorldACL(zk.PermAll))
		must(t, err)
		if m := u.replaced(t, dir, former, "n-"); m.GetNode() != "n-0000000001" || m.GetOthers() != 1 {
			t.Errorf("%v, but there is another", m)
		}
	})
}

// Batches are full when they have as many operations as they may have.
func TestSparedBatchIsBounded(t *testing.T) {
	b := &batch{number: 1}
	for i := 0; ; i++ {
		path := fmt.Sprintf("/%d", i)
		dir := &directory{path: path, state: dirEmpty, rewrite: &zk.SetDataRequest{Path: path}}
		c := &create{directory: path, prefix: "n-", dir: dir}
		dir.made(c, "n-0000000007", true, 1)
		if !b.add(write{r: &release{path: path + "/n-0000000007", dir: dir}}) || !b.add(write{c: c}) {
			break
		}
	}
	if b.seal(nil); len(b.ops) > maxOps || len(b.ops) < maxOps-2 || b.creates() != maxOps/2-1 {
		t.Errorf("%d operations, %d creates", len(b.ops), b.creates())
	}
}

// A directory that is forgotten while contenders for it wait is looked at anew: they do
// not come to share a token.
func TestForgottenWhileCreating(t *testing.T) {
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		u, dir := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t)
		u.created(dir, "first-")
		u.together(func() {
			u.create(dir, "n-")
			u.bridge.Forget(dir)
			u.create(dir, "n-")
		})
		one, two := next[*messages.Created](t, u.peer), next[*messages.Created](t, u.peer)
		if one.GetCzxid() == two.GetCzxid() && one.GetStep() == two.GetStep() {
			t.Errorf("%v and %v", one, two)
		}
		for _, m := range []*messages.Created{one, two} {
			if before := m.GetNode() == "n-0000000002" && m.GetStep() == 0; m.GetOthers() != 1 && !(before && m.GetOthers() == 2) {
				t.Errorf("%v", m)
			}
		}
	})
}

func TestNumberOf(t *testing.T) {
	for node, want := range map[string]int64{"n-0000000007": 7, "n-2147483646": 2147483646, "n-2147483647": -1, "n--2147483648": -1,
		"n--2147483646": -1, "n--000000001": -1, "0000000000": 0, "n-": -1, "": -1, "n-000000000x": -1} {
		if n, ok := numberOf(node, "n-"); ok != (want >= 0) || ok && n != want {
			t.Errorf("%q: %d, %v", node, n, ok)
		}
	}
	for node, want := range map[string]int32{"n-0000000008": 0, "n-0000000009": -1, "n-0000000007": -1, "n--000000008": -1} {
		if got := (&create{prefix: "n-"}).othersBeside(node, 8); got != want {
			t.Errorf("%s: %d others", node, got)
		}
	}
}
