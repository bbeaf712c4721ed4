package zkbridge

import (
	"fmt"
	"slices"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// createInEach creates a node in each of some directories at one moment, and returns the answers in
// the order of the directories, which exist.
func (u *user) createInEach(dirs []string, withNames func(i int) bool) (all []*messages.Created) {
	u.t.Helper()
	ids := map[uint64]int{}
	u.batch(func() {
		for i, dir := range dirs {
			u.saw[dir] = withNames(i) // otherwise a watch would take the place of a read without names
			ids[u.sendCreate(&messages.Create{Directory: dir, Prefix: "n-", DirectoryExists: true, ListAfter: withNames(i)})] = i
		}
	})
	all = make([]*messages.Created, len(dirs))
	for range dirs {
		m := next[*messages.Created](u)
		all[ids[m.GetId()]] = m
	}
	return all
}

func always(int) bool { return true }

// One message reads the directories of a transaction's creates, some with names and some without.
func TestDirectoriesAreReadTogether(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		var d testDialer
		u, home, conn := newUser(t, connected(t, Config{Servers: s.Addr(), Dial: d.Dial})), s.Path(t), s.Client(t)
		dirs, czxids := make([]string, 4), make([]int64, 4)
		for i := range dirs {
			dirs[i] = fmt.Sprintf("%s/%d", home, i)
			czxids[i] = u.created(dirs[i], "first-").GetDirectoryCzxid()
		}
		_, err := conn.Create(dirs[2]+"/other", []byte("theirs"), 0, zk.WorldACL(zk.PermAll))
		must(t, err)
		_, err = conn.Set(dirs[1], []byte("data of the directory"), -1)
		must(t, err)
		u.flush()
		d.take()
		answers := u.createInEach(dirs, func(i int) bool { return i > 0 })
		if got := fmt.Sprint(d.take()); got != "map[multi:1 multiRead:1]" {
			t.Errorf("took %v", got)
		}
		for i, m := range answers {
			want := []string{"first-0000000000", "n-0000000001"}
			switch i {
			case 0:
				want = nil
			case 2:
				want = []string{"first-0000000000", "n-0000000002", "other"}
			}
			slices.Sort(m.Children)
			if m.GetDirectoryCzxid() != czxids[i] || !slices.Equal(m.GetChildren(), want) {
				t.Errorf("%v, want %v in a directory of %d", m, want, czxids[i])
			}
		}
	})
}

// A bridge that may not read one of the directories reads the others, and later each by itself: the
// stat needs no right on some servers.
func TestDirectoryThatMayNotBeReadWithOthers(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		var d testDialer
		u, home := newUser(t, connected(t, Config{Servers: s.Addr(), Dial: d.Dial})), s.Path(t)
		dirs := []string{home + "/a", home + "/b", home + "/c"}
		for _, dir := range dirs {
			u.created(dir, "first-")
		}
		setRights(t, s.Client(t), dirs[1], zk.PermAll&^zk.PermRead)
		for round, requests := range []string{"map[multi:1 multiRead:1]", "map[getChildren2:3 multi:1]"} {
			d.take()
			for i, m := range u.createInEach(dirs, always) {
				if readable := i != 1; readable != (m.GetDirectoryCzxid() != 0) || readable != (len(m.GetChildren()) == 2+round) {
					t.Errorf("round %d: %v", round, m)
				}
			}
			if got := fmt.Sprint(d.take()); got != requests {
				t.Errorf("round %d took %v, want %s", round, got, requests)
			}
		}
	})
}

// A bridge whose server hangs up on the message reads each directory by itself.
func TestServerWithoutMultiRead(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		s := zktest.Virtual(t)
		d := testDialer{dial: s.Dial}
		u, home := newUser(t, connected(t, Config{Servers: s.Addr(), Dial: d.Dial})), s.Path(t)
		dirs := []string{home + "/a", home + "/b"}
		for _, dir := range dirs {
			u.created(dir, "first-")
		}
		s.Embedded().Inject(embedded.Fault{Op: embedded.OpMultiRead, Action: embedded.CutBefore, Times: -1})
		const hangUps = 2 // the server had answered the first before, over that connection
		for range hangUps {
			u.createInEach(dirs, always)
		}
		u.list(home) // behind the requests that follow a reconnect
		d.take()
		for _, m := range u.createInEach(dirs, always) {
			if m.GetDirectoryCzxid() == 0 || len(m.GetChildren()) != 2+hangUps {
				t.Errorf("%v", m)
			}
		}
		if got := fmt.Sprint(d.take()); got != "map[getChildren2:2 multi:1]" {
			t.Errorf("took %v", got)
		}
		u.keepsSession()
	})
}

// Directories whose data are too large for one answer are read one by one from then on.
func TestDirectoriesThatAreTooLargeTogether(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		var d testDialer
		u, home, conn := newUser(t, connected(t, Config{Servers: s.Addr(), Dial: d.Dial, MaxReply: 1 << 20})), s.Path(t), s.Client(t)
		dirs := []string{home + "/a", home + "/b", home + "/c"}
		for _, dir := range dirs {
			u.created(dir, "first-")
			_, err := conn.Set(dir, make([]byte, 400<<10), -1)
			must(t, err)
		}
		for _, m := range u.createInEach(dirs, always) {
			if m.GetDirectoryCzxid() != 0 {
				t.Errorf("%v", m)
			}
		}
		d.take()
		for _, m := range u.createInEach(dirs, always) {
			if m.GetDirectoryCzxid() == 0 || len(m.GetChildren()) != 3 {
				t.Errorf("%v", m)
			}
		}
		if got := fmt.Sprint(d.take()); got != "map[getChildren2:3 multi:1]" {
			t.Errorf("took %v", got)
		}
		u.keepsSession()
	})
}
