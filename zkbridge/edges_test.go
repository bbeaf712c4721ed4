package zkbridge

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// A node of the same name that another session made is not adopted.
func TestAdoptsOnlyItsOwn(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		var n atomic.Int32
		u := withFaults(t, s, &faulty{multi: func(ops []zkconn.Op, send func() ([]zk.MultiResponse, error)) ([]zk.MultiResponse, error) {
			if ops[0].Kind == zkconn.OpCreate && n.Add(1) == 2 {
				return nil, zk.ErrConnectionClosed // neither executed nor answered
			}
			return send()
		}})
		dir, c := s.Path(t), s.Client(t)
		u.created(dir, "other-")
		other, err := c.Create(dir+"/x-lock-", nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
		must(t, err)
		made := u.created(dir, "x-lock-")
		if dir+"/"+made.GetNode() == other {
			t.Fatalf("%s of another session is adopted", other)
		}
		_, stat, err := c.Exists(dir + "/" + made.GetNode())
		must(t, err)
		if stat.EphemeralOwner != u.bridge.Session().ID {
			t.Errorf("%s belongs to session %#x", made.GetNode(), stat.EphemeralOwner)
		}
	})
}

// A second watch that fails leaves the first one's interest as it is.
func TestFailedWatchKeepsTheFirst(t *testing.T) {
	t.Parallel()
	who, table := &peer{}, &watchTable{}
	table.onRead(table.add(who, "/d/n"), true)
	table.onRead(table.add(who, "/d/n"), false)
	if table.byRecipient[who]["/d/n"] == nil {
		t.Error("no contender would be woken")
	}
	table.onRead(table.add(who, "/d/m"), false)
	if table.byRecipient[who]["/d/m"] != nil {
		t.Error("an interest without a watch is left")
	}
}

// A name that is no node of a directory must not reach beyond the directory.
func TestReleaseOfNothing(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		root, c := s.Path(t), s.Client(t)
		_, err := c.Create(root, nil, 0, zk.WorldACL(zk.PermAll))
		must(t, err)
		t.Cleanup(func() { c.Delete(root, -1) })
		u := newUser(t, connected(t, Config{Servers: s.Addr() + root}))
		for _, r := range []*messages.ReleaseNode{{Directory: "/"}, {}, {Directory: "/a", Node: "b/c"}} {
			r.Id, r.Epoch = u.id(), u.epoch()
			u.bridge.Ref().SendReleaseNode(r, u)
			if got := next[*messages.Failed](t, u.peer); got.GetReason() != messages.Reason_INVALID {
				t.Errorf("%v: %v", r, got)
			}
		}
		if exists, _, _ := c.Exists(root); !exists {
			t.Error("the chroot is deleted")
		}
	})
}

// A transaction that is too large only with the chroot is refused before it is sent:
// the client library would panic.
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

// A server that grants no time is refused in the handshake: the client library's
// timers would panic.
func TestNoTimeGranted(t *testing.T) {
	t.Parallel()
	for _, timeout := range []int32{0, -5} {
		// Length, protocol, timeout, session, and a password of 16 bytes.
		hello := make([]byte, 0, 40)
		for _, field := range []int32{36, 0, timeout, 0, 77, 16, 0, 0, 0, 0} {
			hello = binary.BigEndian.AppendUint32(hello, uint32(field))
		}
		b := open(t, Config{Servers: says(t, hello), ConnectTimeout: patience})
		attemptFails(t, b, "session timeout of")
	}
}

// says starts a server that answers each client with the same bytes.
func says(t *testing.T, hello []byte) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				defer conn.Close()
				io.ReadAtLeast(conn, make([]byte, 4096), 1)
				conn.Write(hello)
				io.Copy(io.Discard, conn)
			})
		}
	})
	t.Cleanup(func() {
		listener.Close()
		conns.Wait()
	})
	return listener.Addr().String()
}

func TestSequenceExhausted(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	u := newUser(t, connected(t, Config{Servers: s.Addr()}))
	u.created("/a", "n-")
	s.Embedded().SetCreateCount("/a", 1<<31-1)
	var failed int
	for range 4 { // one by one: those of one transaction are counted on
		u.create("/a", "n-")
		switch m := (<-u.inbox).(type) {
		case *messages.Failed:
			failed++
			if m.GetReason() != messages.Reason_SEQUENCE_EXHAUSTED {
				t.Errorf("%v", m)
			}
		}
	}
	if failed == 0 {
		t.Error("none has failed")
	}
}
