package zkbridge

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// The bridge does not take the node of another session for that of a lost reply, though its name is
// the same.
func TestFindsOnlyOwnNode(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		var n atomic.Int32
		u := userOfFaulty(t, Config{Servers: s.Addr()}, &faultyClient{multi: func(ops []zkconn.Op, send sendFunc) ([]zk.MultiResponse, error) {
			if ops[0].Kind == zkconn.OpCreate && n.Add(1) == 2 {
				return nil, zk.ErrConnectionClosed // neither executed nor answered
			}
			return send()
		}})
		dir, c := s.Path(t), s.Client(t)
		u.created(dir, "other-")
		other, err := c.Create(dir+"/x-lock-", nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
		must(t, err)
		own := u.created(dir, "x-lock-")
		if dir+"/"+own.GetNode() == other {
			t.Fatalf("%s of another session is taken for the own node", other)
		}
		_, stat, err := c.Exists(dir + "/" + own.GetNode())
		must(t, err)
		if stat.EphemeralOwner != u.bridge.Session().ID {
			t.Errorf("%s belongs to session %#x", own.GetNode(), stat.EphemeralOwner)
		}
	})
}

// A failed watch does not end the interest of an earlier one.
func TestFailedWatchKeepsTheFirst(t *testing.T) {
	t.Parallel()
	recipient, table := make(mailbox), &watchTable{}
	table.onRead(table.add(recipient, "/d/n"), true)
	table.onRead(table.add(recipient, "/d/n"), false)
	if table.byRecipient[recipient]["/d/n"] == nil {
		t.Error("the first watch would lead to no Wake")
	}
	table.onRead(table.add(recipient, "/d/m"), false)
	if table.byRecipient[recipient]["/d/m"] != nil {
		t.Error("an interest without a watch is left")
	}
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

// A transaction that is too large only with the chroot fails before it is sent: the client library
// would panic.
func TestMultiTooLargeWithChroot(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	b := connected(t, Config{Servers: s.Addr() + "/" + strings.Repeat("c", 185)})
	ops := make([]any, 5141)
	for i := range ops {
		ops[i] = &zk.DeleteRequest{Path: "/a", Version: -1}
	}
	_, err := b.Multi(t.Context(), ops...)
	if !errors.Is(err, messages.Reason_INVALID) {
		t.Error(err)
	}
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
