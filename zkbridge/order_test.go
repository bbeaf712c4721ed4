package zkbridge

import (
	"fmt"
	"strings"
	"testing"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Creates in a missing directory make their nodes in the order in which they arrive, also if one
// transaction fails while a later create waits for the directory.
func TestOrderInMissingDirectory(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		var d testDialer
		u, dir := newUser(t, connected(t, Config{Servers: s.Addr(), Dial: d.Dial})), s.Path(t)
		d.holdReplies(2)
		u.createInExisting(dir, "a-") // another client has deleted it
		d.waitSent(t, embedded.OpMulti, 1)
		u.createInExisting(dir, "b-")
		d.waitSent(t, embedded.OpMulti, 2)
		d.passReply(0)
		d.waitSent(t, embedded.OpMulti, 3) // it makes the directory
		u.create(dir, "c-")
		u.create("no path", "d-")
		next[*messages.Failed](u) // so the bridge has received c
		d.passReply(1)
		numbers := map[uint64]string{}
		for range 3 {
			m := next[*messages.Created](u)
			numbers[m.GetId()] = m.GetNode()
		}
		if got := fmt.Sprint(numbers); got != "map[1:a-0000000000 2:b-0000000001 3:c-0000000002]" {
			t.Error(got)
		}
	})
}

// The next create comes after the first one if another process makes the missing directory after
// the first was refused. So it does if the first is part of an atomic create, and the directory of
// another part was missing.
func TestOrderWhereAnotherMakesTheDirectory(t *testing.T) {
	for _, atomic := range []bool{false, true} {
		t.Run(fmt.Sprintf("atomic %v", atomic), func(t *testing.T) {
			zktest.Each(t, func(t *testing.T, s *zktest.Server) {
				var d testDialer
				u, conn := newUser(t, connected(t, Config{Servers: s.Addr(), Dial: d.Dial})), s.Client(t)
				mkdir := func(path string) {
					makeNode(t, conn, path, "")
				}
				missing := s.Path(t)
				mkdir(missing)
				dir := missing + "/there"
				if missing += "/missing"; atomic {
					mkdir(dir)
				} else {
					dir = missing
				}
				first := func(directory string) *Create {
					return u.bridge.NewCreate(u, &messages.Create{Id: u.id(), Epoch: u.epoch(), Directory: directory, Prefix: "a-", DirectoryExists: directory != missing})
				}
				u.expectDirectories(s)
				d.take()
				d.holdReplies(1)
				if atomic {
					u.bridge.CreateAtomically([]*Create{first(dir), first(missing)})
				} else {
					u.create(dir, "a-")
				}
				d.waitSent(t, embedded.OpMulti, 1)
				mkdir(missing)
				u.createInExisting(dir, "b-")
				u.create("no path", "c-")
				next[*messages.Failed](u) // so the bridge has received b
				d.passReply(0)
				numbers := map[uint64]string{}
				want := "map[1:a-0000000000 2:b-0000000001]"
				if atomic {
					want = "map[1:a-0000000000 2:a-0000000000 3:b-0000000001]"
				}
				for range strings.Count(want, "-") {
					m := next[*messages.Created](u)
					numbers[m.GetId()] = m.GetNode()
				}
				if got := fmt.Sprint(numbers); got != want {
					t.Error(got)
				}
			})
		})
	}
}
