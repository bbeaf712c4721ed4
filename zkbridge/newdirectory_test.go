package zkbridge

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// A create in a new directory is one request: the transaction makes the directory, and nothing
// needs to be read.
func TestNewDirectoryIsOneRequest(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		var d testDialer
		u, dir := newUser(t, connected(t, Config{Servers: s.Addr(), Dial: d.Dial})), s.Path(t)
		d.take()
		u.sendCreate(&messages.Create{Directory: dir, Prefix: "n-", ListAfter: true})
		m := next[*messages.Created](u)
		if got := fmt.Sprint(d.take()); got != "map[multi:1]" {
			t.Errorf("took %v", got)
		}
		_, stat, err := s.Client(t).Exists(dir)
		must(t, err)
		if m.GetDirectoryCzxid() != stat.Czxid || !slices.Equal(m.GetChildren(), []string{"n-0000000000"}) {
			t.Errorf("%v, in a directory of %d", m, stat.Czxid)
		}
		u.batch(func() { // of several nodes, too
			for _, of := range []string{"-a", "-b", "-a"} {
				u.sendCreate(&messages.Create{Directory: dir + of, Prefix: "n-", ListAfter: true})
			}
		})
		for _, children := range []string{"[n-0000000000 n-0000000001]", "[n-0000000000 n-0000000001]", "[n-0000000000]"} {
			if m := next[*messages.Created](u); fmt.Sprint(m.GetChildren()) != children {
				t.Errorf("%v, want the children %s", m, children)
			}
		}
		if got := fmt.Sprint(d.take()); got != "map[multi:1]" {
			t.Errorf("took %v for several", got)
		}
	})
}

// A directory that exists although the bridge expects none is read: other clients' nodes are there.
// So it is if another client makes it between two transactions of the bridge, or deletes it.
func TestUnexpectedDirectory(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		var d testDialer
		u, dir, conn := newUser(t, connected(t, Config{Servers: s.Addr(), Dial: d.Dial})), s.Path(t), s.Client(t)
		foreign := func(i int) string {
			path, all := fmt.Sprintf("%s-%d", dir, i), zk.WorldACL(zk.PermAll)
			_, err := conn.Multi(&zk.CreateRequest{Path: path, Data: []byte{}, Acl: all}, // at once: no create comes between
				&zk.CreateRequest{Path: path + "/other-", Data: []byte{}, Acl: all, Flags: zk.FlagSequence})
			must(t, err)
			return path
		}
		create := func(path string) {
			u.sendCreate(&messages.Create{Directory: path, Prefix: "n-", ListAfter: true})
		}
		expect := func(names ...string) {
			t.Helper()
			m := next[*messages.Created](u)
			slices.Sort(m.Children)
			if !slices.Equal(m.GetChildren(), names) {
				t.Errorf("%v, not among %v", m, names)
			}
		}
		create(foreign(0)) // a wrong guess
		expect("n-0000000001", "other-0000000000")
		u.batch(func() { // one of several
			create(dir + "-1")
			create(foreign(2))
			create(dir + "-3")
		})
		expect("n-0000000000")
		expect("n-0000000001", "other-0000000000")
		expect("n-0000000000")

		u.expectDirectories(s)
		d.holdReplies(1)
		create(dir + "-4") // is refused, because there is no directory
		d.waitSent(t, embedded.OpMulti, 1)
		foreign(4)
		d.passReply(0)
		expect("n-0000000001", "other-0000000000")
	})
}

// A hundred new directories of which every third exists: the answer to a failed transaction shows
// which of them, so that the number of transactions does not grow with their number.
func TestFewTransactionsForManyDirectories(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		var d testDialer
		u, dir, conn := newUser(t, connected(t, Config{Servers: s.Addr(), Dial: d.Dial})), s.Path(t), s.Client(t)
		const n = 60
		for i := range n {
			if i%3 == 1 {
				makeNode(t, conn, fmt.Sprintf("%s-%d", dir, i), "")
			}
		}
		d.take()
		u.batch(func() {
			for i := range n {
				u.create(fmt.Sprintf("%s-%d", dir, i), "n-")
			}
		})
		for range n {
			next[*messages.Created](u)
		}
		if multis := d.take()[embedded.OpMulti]; multis > 4 {
			t.Errorf("%d transactions", multis)
		}
	})
}

// Creates in new directories do not hold up those in directories that are known, however many there
// are, and whatever becomes of their transactions.
func TestKnownDirectoryGoesFirst(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	u, dir := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t)
	known := u.created(dir, "known-").GetNode()
	u.flush()
	const n = 1000
	var id, released uint64
	s.Freeze(t)
	u.batch(func() {
		for i := range n {
			u.create(fmt.Sprintf("%s/below/%d", dir, i), "n-") // the directory above is missing
		}
		id = u.create(dir, "known-")
		released = u.release(dir, known)
	})
	u.bridge.runInActor(func(*bridgeActor) {}) // all requests came before the bridge had an answer
	s.Thaw(t)
	if m := next[*messages.Created](u); m.GetId() != id {
		t.Errorf("%v comes before the create in a directory that is known", m)
	}
	if m := next[*messages.NodeReleased](u); m.GetId() != released {
		t.Errorf("%v", m)
	}
	for range n {
		next[*messages.Created](u)
	}
}

// Creates in directories that may not be made fail, each with the right that is missing. Others of
// the same transaction do not, and neither does a directory that exists where no other may be made.
func TestNewDirectoryWithoutRight(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		u, dir, conn := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t), s.Client(t)
		for _, path := range []string{dir, dir + "/closed", dir + "/closed/there"} {
			makeNode(t, conn, path, "")
		}
		setRights(t, conn, dir+"/closed", zk.PermRead|zk.PermAdmin)
		defer setRights(t, conn, dir+"/closed", zk.PermAll)
		const n = 20
		u.batch(func() {
			for i := range n {
				u.create(fmt.Sprintf("%s/closed/%d", dir, i), "n-")
				u.create(fmt.Sprintf("%s/open-%d", dir, i), "n-")
			}
			u.create(dir+"/closed/there", "n-")
			u.create(dir+"/closed/deep/er", "n-")
		})
		for range n + 1 {
			next[*messages.Created](u)
		}
		for i := range n + 1 {
			m := next[*messages.Failed](u)
			if m.GetReason() != messages.Reason_NO_AUTH {
				t.Errorf("%d: %v", i, m)
			}
			for _, part := range []string{"make directory " + dir + "/closed/", "CREATE is not granted on " + dir + "/closed"} {
				if !strings.Contains(m.GetDetail(), part) {
					t.Errorf("%q does not contain %q", m.GetDetail(), part)
				}
			}
		}
	})
}

// The directory above is made in the same transaction if it is of the same lock.
func TestNewDirectoryWithParentIsOneRequest(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		var d testDialer
		u, dir := newUser(t, connected(t, Config{Servers: s.Addr(), Dial: d.Dial})), s.Path(t)
		create := func(directory string, own bool) string {
			d.take()
			u.sendCreate(&messages.Create{Directory: directory, Prefix: "n-", ListAfter: true, ParentIsOwn: own})
			if m := next[*messages.Created](u); !slices.Equal(m.GetChildren(), []string{"n-0000000000"}) || m.GetDirectoryCzxid() != m.GetCzxid() {
				t.Errorf("%v", m)
			}
			return fmt.Sprint(d.take())
		}
		if got := create(dir+"/locks", true); got != "map[multi:1]" {
			t.Errorf("took %v", got)
		}
		if got := create(dir+"/leases", false); got != "map[multi:1]" {
			t.Errorf("a second directory took %v", got)
		}
	})
}

// A hundred new directories below others that are missing: the bridge reads once which are missing,
// and then one transaction makes them all.
func TestFewRequestsForMissingParents(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		var d testDialer
		u, dir, conn := newUser(t, connected(t, Config{Servers: s.Addr(), Dial: d.Dial})), s.Path(t), s.Client(t)
		const n = 30
		for _, path := range []string{dir, dir + "/3"} {
			makeNode(t, conn, path, "")
		}
		d.take()
		u.batch(func() {
			for i := range n {
				u.create(fmt.Sprintf("%s/%d/locks", dir, i), "n-")
				u.create(fmt.Sprintf("%s/%d/deep/er", dir, i), "n-")
			}
		})
		for range 2 * n {
			next[*messages.Created](u)
		}
		took := d.take()
		if took[embedded.OpMulti] > 4 || took[embedded.OpCreateContainer] > 0 || took[embedded.OpExists] > 4*n {
			t.Errorf("took %v", took)
		}
	})
}

// A lock in use whose directory was deleted while it was idle goes before all those that are new, but
// those that are on their way: three transactions of 63 when its create is sent, and three more when the
// failure of that has come.
func TestDeletedDirectoryGoesBeforeNewOnes(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	u, dir := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t)
	u.release(dir, u.created(dir, "known-").GetNode())
	next[*messages.NodeReleased](u)
	conn := s.Client(t)
	for _, _, err := conn.Get(dir); err == nil; _, _, err = conn.Get(dir) { // the server may be first
		conn.Delete(dir, -1)
	}
	const n = 1000
	var id uint64
	s.Freeze(t)
	u.batch(func() {
		for i := range n {
			u.create(fmt.Sprintf("%s-%d", dir, i), "n-")
		}
		id = u.create(dir, "known-")
	})
	u.bridge.runInActor(func(*bridgeActor) {}) // all requests came before the bridge had an answer
	s.Thaw(t)
	before := 0
	for ; next[*messages.Created](u).GetId() != id; before++ {
	}
	if before > 6*63 {
		t.Errorf("%d new ones come before", before)
	}
	for range n - before {
		next[*messages.Created](u)
	}
}

// A Created says whether its transaction was sent within the last second: the create may have
// waited for long before.
func TestRecentCreated(t *testing.T) {
	zktest.Bubble(t, func(t *testing.T) {
		s := zktest.Virtual(t).Embedded()
		u := newUser(t, connected(t, Config{Servers: "embedded:1", Dial: s.Dial}))
		s.Inject(embedded.Fault{Op: embedded.OpMulti, Action: embedded.DelayReply, Delay: 3 * time.Second, Times: 1})
		<-time.After(time.Second) // no create is sent at the time 0 of the bridge's clock
		u.sendCreate(&messages.Create{Directory: "/d", Prefix: "first-"})
		synctest.Wait()
		u.sendCreate(&messages.Create{Directory: "/d", Prefix: "waits-"}) // until it is known whether the directory is missing
		for _, want := range []bool{false, true} {
			if m := next[*messages.Created](u); m.GetRecent() != want {
				t.Errorf("%v, want recent %v", m, want)
			}
		}
	})
}
