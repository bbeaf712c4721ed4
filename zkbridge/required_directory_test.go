package zkbridge

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// A create whose directory must exist fails where it is missing, and nothing is made: also if the
// directory was deleted after a node was in it, and if only a directory above it must exist. Other
// creates of the same transaction are done.
func TestRequiredDirectory(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		var d testDialer
		u, dir, conn := newUser(t, connected(t, Config{Servers: s.Addr(), Dial: d.Dial})), s.Path(t), s.Client(t)
		missing := dir + "/missing"
		for _, path := range []string{dir, dir + "/there", dir + "/deleted"} {
			makeNode(t, conn, path, "")
		}
		requiring := func(directory, required string) uint64 {
			return u.sendCreate(&messages.Create{Directory: directory, Prefix: "n-", ListAfter: true, Required: required, ParentIsOwn: directory != required})
		}
		refused := func(id uint64, required string) {
			t.Helper()
			u.refused(id, messages.Reason_NO_DIRECTORY, "directory "+required+" does not exist")
		}
		refused(requiring(missing, missing), missing)
		refused(requiring(missing+"/locks", missing), missing)
		refused(requiring(missing+"/deep/locks", missing+"/deep"), missing+"/deep")
		refused(requiring(missing+"/deep/locks", missing), missing)

		d.take()
		requiring(dir+"/there", dir+"/there")
		next[*messages.Created](u)
		if multis := d.take()[embedded.OpMulti]; multis != 1 {
			t.Errorf("a create in an existing directory takes %d transactions", multis)
		}
		requiring(dir+"/there/locks", dir+"/there")
		requiring(dir+"/there/deep/locks", dir+"/there")
		for range 2 {
			next[*messages.Created](u)
		}

		const n = 20
		u.batch(func() {
			for i := range n {
				requiring(fmt.Sprintf("%s/%d", missing, i), fmt.Sprintf("%s/%d", missing, i))
				requiring(fmt.Sprintf("%s/%d/locks", missing, i), fmt.Sprintf("%s/%d", missing, i))
				requiring(dir+"/there", dir+"/there")
				u.create(fmt.Sprintf("%s/new/%d", dir, i), "n-")
			}
		})
		for range 2 * n {
			if m := next[*messages.Failed](u); m.GetReason() != messages.Reason_NO_DIRECTORY {
				t.Errorf("%v", m)
			}
			next[*messages.Created](u)
		}

		for _, known := range []bool{true, false} { // whether the sender takes the directory for existing
			deleted := dir + "/deleted"
			must(t, conn.Delete(deleted, -1))
			id := u.sendCreate(&messages.Create{Directory: deleted, Prefix: "n-", Required: deleted, DirectoryExists: known})
			refused(id, deleted)
			makeNode(t, conn, deleted, "")
			id = requiring(deleted, deleted)
			node := next[*messages.Created](u)
			if node.GetId() != id {
				t.Errorf("%v, not of %d", node, id)
			}
			u.release(deleted, node.GetNode())
			next[*messages.NodeReleased](u)
		}
		if exists, _, err := conn.Exists(missing); exists || err != nil {
			t.Errorf("%s exists: %v, %v", missing, exists, err)
		}
		u.failed(requiring(dir, dir+"/below"), messages.Reason_INVALID, `required directory "`+dir+`/below"`)
	})
}

// Another client makes the directory while an answer is on its way that it is missing. A create that
// comes after that is done.
func TestRequiredDirectoryIsMadeMeanwhile(t *testing.T) {
	for _, below := range []string{"", "/locks", "/deep/locks"} {
		t.Run(below, func(t *testing.T) {
			refusals := 0
			for nth := 1; ; nth++ { // of the requests, whose answer is late
				fired := false
				zktest.Bubble(t, func(t *testing.T) {
					v := zktest.Virtual(t)
					conn, s := v.Client(t), v.Embedded()
					u := newUser(t, connected(t, Config{Servers: "embedded:1", Dial: s.Dial}))
					fault := s.Inject(embedded.Fault{Op: embedded.OpAny, Path: "/d", Nth: nth, Action: embedded.DelayReply, Delay: time.Second})
					create := func() uint64 {
						return u.sendCreate(&messages.Create{Directory: "/d" + below, Prefix: "n-", Required: "/d", ParentIsOwn: below != ""})
					}
					early := create()
					synctest.Wait()
					makeNode(t, conn, "/d", "")
					if fired = len(fault.Firings()) > 0; fired {
						late := create()
						node := next[*messages.Created](u)
						if node.GetId() == early { // it has seen the directory by a later request
							node = next[*messages.Created](u)
						} else {
							u.refused(early, messages.Reason_NO_DIRECTORY, "directory /d does not exist")
							refusals++
						}
						if node.GetId() != late {
							t.Errorf("%v, not of %d", node, late)
						}
					}
				})
				if !fired {
					break
				}
			}
			if refusals == 0 {
				t.Error("no answer came too late for the first create")
			}
		})
	}
}

// A create that makes the directory lets others of the same transaction in that would not make it.
func TestRequiredDirectoryIsMadeByAnother(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		u, dir := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t)
		for _, first := range []string{dir, ""} { // what the first of the two requires
			dir := dir + "-" + fmt.Sprint(first == "")
			if first != "" {
				first = dir
			}
			u.batch(func() {
				u.sendCreate(&messages.Create{Directory: dir, Prefix: "a-", Required: first})
				u.sendCreate(&messages.Create{Directory: dir, Prefix: "b-"})
				u.sendCreate(&messages.Create{Directory: dir, Prefix: "c-", Required: dir})
			})
			for range 3 {
				next[*messages.Created](u)
			}
		}
	})
}

// An atomic create with a part whose directory must exist, and does not, makes nothing.
func TestRequiredDirectoryOfAnAtomicCreate(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		u, dir := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t)
		create := func() {
			u.bridge.CreateAtomically([]*Create{
				u.bridge.NewCreate(u, &messages.Create{Id: u.id(), Epoch: u.epoch(), Directory: dir + "-a", Prefix: "n-"}),
				u.bridge.NewCreate(u, &messages.Create{Id: u.id(), Epoch: u.epoch(), Directory: dir + "-b", Prefix: "n-", Required: dir + "-b"}),
			})
		}
		create()
		for range 2 {
			if m := next[*messages.Failed](u); m.GetReason() != messages.Reason_NO_DIRECTORY {
				t.Errorf("%v", m)
			}
		}
		if exists, _, err := s.Client(t).Exists(dir + "-a"); exists || err != nil {
			t.Errorf("the directory of the other part exists: %v, %v", exists, err)
		}
		makeNode(t, s.Client(t), dir+"-b", "")
		create()
		for range 2 {
			next[*messages.Created](u)
		}
	})
}
