package zkbridge

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// The first create in a directory that the session has seen sets a watch, which takes the place of
// the reads behind the next ones. An event, a new connection and an Unsubscribe end it.
func TestWatchedDirectory(t *testing.T) {
	eachOwn(t, func(t *testing.T, s *zktest.Server) {
		var d testDialer
		u, dir, conn := newUser(t, connected(t, Config{Servers: s.Addr(), Dial: d.Dial})), s.Path(t), s.Client(t)
		makeNode(t, conn, dir, "")
		czxid := u.created(dir, "first-").GetDirectoryCzxid()
		create := func(why string, want map[embedded.Op]int) {
			t.Helper()
			u.flush()
			d.take()
			if m := u.created(dir, "n-"); m.GetDirectoryCzxid() != czxid || len(m.GetChildren()) > 0 {
				t.Errorf("%s: %v, want directory %d", why, m, czxid)
			}
			if got := d.take(); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: took %v, want %v", why, got, want)
			}
		}
		reads, bare := map[embedded.Op]int{embedded.OpMulti: 1, embedded.OpGetData: 1}, map[embedded.Op]int{embedded.OpMulti: 1}
		before := s.Watches(t)
		create("the first", reads)
		create("the second", bare)
		if n := s.Watches(t) - before; n != 1 {
			t.Errorf("%d watches", n)
		}
		_, err := conn.Set(dir, []byte("x"), -1)
		must(t, err)
		u.list(dir) // the event comes before the answer
		create("after a write to the directory", reads)
		create("then", bare)
		d.cut()
		u.list(dir)
		create("over another connection", reads)
		create("then", bare)
		u.bridge.Ref().SendUnsubscribe(&messages.Unsubscribe{Directories: []string{dir, "/none"}}, u)
		zktest.Eventually(t, timeLimit, func() bool { return s.Watches(t) == before }, "the watch is taken back")
		create("after an Unsubscribe", reads)
		create("then", bare)
	})
}

// Creates, while another client replaces the directory by one with the same numbers, deletes nodes
// and writes to the directory, and connections break. No Created ever names another directory than
// that of its node.
func TestWatchedDirectoryHistories(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		runs := 2
		if zktest.Exhaustive() {
			runs = 20 // some 40 s
		}
		var d testDialer
		b, conn := connected(t, Config{Servers: s.Addr(), Dial: d.Dial}), s.Client(t)
		known := 0
		for range runs {
			h := &watchedHistory{user: newUser(t, b), dialer: &d, conn: conn, dir: s.Path(t), seed: rand.Uint64()}
			known += h.run()
		}
		if known < 10*runs {
			t.Errorf("%d answers say which directory it is, in %d runs", known, runs)
		}
	})
}

type watchedHistory struct {
	*user
	dialer *testDialer
	conn   *zk.Conn // of the other client
	dir    string
	seed   uint64
	czxids []int64 // of the directories at dir, one after the other
}

// run runs the history, and returns how many answers name the directory.
func (h *watchedHistory) run() (known int) {
	r := rand.New(rand.NewPCG(h.seed, 0))
	makeNode(h.t, h.conn, h.dir, "")
	h.noteDirectory()
	var answers []*messages.Created
	for range 60 {
		replaced := make(chan struct{})
		go func(does int) {
			defer close(replaced)
			switch does {
			case 0, 1, 2:
				h.replace()
			case 3:
				h.conn.Set(h.dir, []byte("x"), -1)
			case 4:
				h.dialer.cut()
			case 5:
				h.bridge.Ref().SendUnsubscribe(&messages.Unsubscribe{Directories: []string{h.dir}}, h)
			}
		}(r.IntN(18))
		creates := 1 + r.IntN(3)
		for range creates {
			h.sendCreate(&messages.Create{Directory: h.dir, Prefix: "n-", ListAfter: r.IntN(8) == 0})
			h.saw[h.dir] = true
		}
		for range creates {
			switch m := next[any](h.user).(type) {
			case *messages.Created:
				answers = append(answers, m)
			case *messages.Failed:
				if m.GetReason() != messages.Reason_NODE_DELETED {
					h.t.Errorf("seed %d: %v", h.seed, m)
				}
			}
		}
		<-replaced
	}
	for _, m := range answers {
		i, exact := slices.BinarySearch(h.czxids, m.GetCzxid())
		named := m.GetDirectoryCzxid()
		switch {
		case exact || i == 0:
			h.t.Errorf("seed %d: %v is of none of the directories %v", h.seed, m, h.czxids)
		case named == 0:
		case named < m.GetCzxid() && named != h.czxids[i-1]:
			h.t.Errorf("seed %d: %v is in directory %d of %v", h.seed, m, h.czxids[i-1], h.czxids)
		default:
			known++
		}
	}
	return known
}

func (h *watchedHistory) noteDirectory() {
	_, stat, err := h.conn.Exists(h.dir)
	must(h.t, err)
	h.czxids = append(h.czxids, stat.Czxid)
}

// replace replaces the directory by one whose next child has the same number, by one transaction.
func (h *watchedHistory) replace() {
	for {
		names, stat, err := h.conn.Children(h.dir)
		must(h.t, err)
		var ops []any
		for _, name := range names {
			ops = append(ops, &zk.DeleteRequest{Path: h.dir + "/" + name, Version: -1})
		}
		acl := zk.WorldACL(zk.PermAll)
		ops = append(ops, &zk.DeleteRequest{Path: h.dir, Version: -1}, &zk.CreateRequest{Path: h.dir, Acl: acl})
		for i := range (int(stat.Cversion) + len(names)) / 2 { // so many children were created
			child := fmt.Sprintf("%s/%d", h.dir, i)
			ops = append(ops, &zk.CreateRequest{Path: child, Acl: acl}, &zk.DeleteRequest{Path: child, Version: -1})
		}
		switch _, err := h.conn.Multi(ops...); err {
		case nil:
			h.noteDirectory()
			return
		case zk.ErrNotEmpty, zk.ErrNoNode: // a child has come meanwhile, or gone
		default:
			must(h.t, err)
		}
	}
}
