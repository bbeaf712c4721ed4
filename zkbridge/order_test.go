package zkbridge

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Contenders whose directory is missing get their nodes in the order in which they came: also
// one of a transaction that fails when a later one waits for the directory already.
func TestOrderInMissingDirectory(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		var replies heldReplies
		u, dir := newUser(t, connected(t, Config{Servers: s.Addr(), Dial: replies.dial})), s.Path(t)
		replies.hold(2)
		u.createInExisting(dir, "a-") // another client has deleted it
		replies.sent(t, embedded.OpMulti, 1)
		u.createInExisting(dir, "b-")
		replies.sent(t, embedded.OpMulti, 2)
		replies.pass(0)
		replies.sent(t, embedded.OpCreateContainer, 1)
		u.create(dir, "c-")
		u.create("no path", "d-")
		next[*messages.Failed](t, u.peer) // so c has been heard of
		replies.pass(1)
		numbers := map[uint64]string{}
		for range 3 {
			m := next[*messages.Created](t, u.peer)
			numbers[m.GetId()] = m.GetNode()
		}
		if got := fmt.Sprint(numbers); got != "map[1:a-0000000000 2:b-0000000001 3:c-0000000002]" {
			t.Error(got)
		}
	})
}

// createInExisting is create in a directory that the sender knows to exist.
func (u *user) createInExisting(directory, prefix string) {
	u.bridge.Ref().SendCreate(&messages.Create{Id: u.id(), Epoch: u.epoch(), Directory: directory, Prefix: prefix, DirectoryExists: true}, u)
}

// Another process makes the missing directory after the first create was refused and before the
// next could be: the next still comes behind the first. So it does where the first is one of
// several that are created together, of which another one has no directory.
func TestOrderWhereAnotherMakesTheDirectory(t *testing.T) {
	for _, together := range []bool{false, true} {
		t.Run(fmt.Sprintf("together %v", together), func(t *testing.T) {
			zktest.Each(t, func(t *testing.T, s *zktest.Server) {
				var replies heldReplies
				u, conn := newUser(t, connected(t, Config{Servers: s.Addr(), Dial: replies.dial})), s.Client(t)
				mkdir := func(path string) {
					if _, err := conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
						t.Fatal(err)
					}
				}
				missing := s.Path(t)
				mkdir(missing)
				dir := missing + "/there"
				if missing += "/missing"; together {
					mkdir(dir)
				} else {
					dir = missing
				}
				first := func(directory string) CreateSpec {
					return CreateSpec{u, &messages.Create{Id: u.id(), Epoch: u.epoch(), Directory: directory, Prefix: "a-", DirectoryExists: directory != missing}}
				}
				replies.hold(1)
				if together {
					u.bridge.CreateAtomically([]CreateSpec{first(dir), first(missing)})
				} else {
					u.create(dir, "a-")
				}
				replies.sent(t, embedded.OpMulti, 1)
				mkdir(missing)
				u.createInExisting(dir, "b-")
				u.create("no path", "c-")
				next[*messages.Failed](t, u.peer) // so b has been heard of
				replies.pass(0)
				numbers := map[uint64]string{}
				want := "map[1:a-0000000000 2:b-0000000001]"
				if together {
					want = "map[1:a-0000000000 2:a-0000000000 3:b-0000000001]"
				}
				for range strings.Count(want, "-") {
					m := next[*messages.Created](t, u.peer)
					numbers[m.GetId()] = m.GetNode()
				}
				if got := fmt.Sprint(numbers); got != want {
					t.Error(got)
				}
			})
		})
	}
}

// heldReplies makes connections on which the replies to transactions, and all behind them,
// wait until they may pass.
type heldReplies struct {
	counter
	mu      sync.Mutex
	waiting []chan struct{} // of the transactions that are held, in their order
	xids    []int32         // of those of them that were sent
}

// hold holds the replies to the next n transactions, and counts requests from now on.
func (h *heldReplies) hold(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.take()
	for range n {
		h.waiting = append(h.waiting, make(chan struct{}))
	}
}

func (h *heldReplies) pass(i int) { close(h.waiting[i]) }

func (h *heldReplies) sent(t *testing.T, op embedded.Op, n int32) {
	t.Helper()
	h.wait(t, int32(op), n)
}

func (h *heldReplies) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := tapped(h.look)(ctx, network, address)
	return &heldConn{Conn: conn, h: h}, err
}

func (h *heldReplies) look(request []byte) {
	h.mu.Lock()
	if embedded.Op(binary.BigEndian.Uint32(request[8:])) == embedded.OpMulti && len(h.xids) < len(h.waiting) {
		h.xids = append(h.xids, int32(binary.BigEndian.Uint32(request[messageLength:])))
	}
	h.mu.Unlock()
	h.count(request)
}

// await blocks until the moment when the reply with a number may pass.
func (h *heldReplies) await(xid int32) {
	h.mu.Lock()
	i := slices.Index(h.xids, xid)
	h.mu.Unlock()
	if i >= 0 {
		<-h.waiting[i]
	}
}

// heldConn reads one message at a time.
type heldConn struct {
	net.Conn
	h       *heldReplies
	greeted bool
	rest    []byte
}

func (c *heldConn) Read(b []byte) (int, error) {
	if len(c.rest) == 0 {
		var size [messageLength]byte
		if _, err := io.ReadFull(c.Conn, size[:]); err != nil {
			return 0, err
		}
		body := make([]byte, binary.BigEndian.Uint32(size[:]))
		if _, err := io.ReadFull(c.Conn, body); err != nil {
			return 0, err
		}
		if c.greeted {
			c.h.await(int32(binary.BigEndian.Uint32(body)))
		}
		c.greeted = true
		c.rest = append(size[:], body...)
	}
	n := copy(b, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}
