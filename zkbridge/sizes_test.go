package zkbridge

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/epoch"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Missing directories that are too many or too long for one message are made by several, also below
// a chroot and with a long ACL, and the connection stays.
func TestManyDirectoriesAbove(t *testing.T) {
	for _, c := range []struct {
		name   string
		levels int
		level  string
		acl    int
	}{
		{"900 short levels", 900, "/ab", 0},
		{"10 long levels", 10, "/" + strings.Repeat("x", 24<<10), 0},
		{"100 levels with a long ACL", 100, "/ab", 30 << 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			each(t, func(t *testing.T, s *zktest.Server) {
				root := s.Path(t)
				_, err := s.Client(t).Create(root, nil, 0, zk.WorldACL(zk.PermAll))
				must(t, err)
				var largest atomic.Int64
				var connections atomic.Int32
				dial := func(ctx context.Context, network, address string) (net.Conn, error) {
					connections.Add(1)
					return new(net.Dialer).DialContext(ctx, network, address)
				}
				d := testDialer{dial: dial, onMessage: func(message []byte) { largest.Store(max(largest.Load(), int64(len(message)))) }}
				cfg := Config{Servers: s.Addr() + root, Dial: d.Dial}
				if c.acl > 0 {
					cfg.ACL = longACL(c.acl)
				}
				u := newUser(t, connected(t, cfg))
				dir := "/d" + strings.Repeat(c.level, c.levels)
				u.sendCreate(&messages.Create{Directory: "/other", Prefix: "n-"})
				next[*messages.Created](u)
				before := u.bridge.Session().Epoch
				u.sendCreate(&messages.Create{Directory: dir, Prefix: "n-"})
				next[*messages.Created](u)
				u.sendCreate(&messages.Create{Directory: dir + "/one/more", Prefix: "n-"})
				next[*messages.Created](u)
				if got := connections.Load(); got != 1 || u.bridge.Session().Epoch != before {
					t.Errorf("%d connections", got)
				}
				if got := largest.Load(); got > zkconn.MaxRequest+zkconn.MaxRequest/2 {
					t.Errorf("a message of %d bytes", got)
				}
			})
		})
	}
}

// A directory above that may not be made fails the request, which names it.
func TestManyDirectoriesAboveRefused(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		root := s.Path(t)
		_, err := s.Client(t).Create(root, nil, 0, zk.WorldACL(zk.PermRead))
		must(t, err)
		u := newUser(t, connected(t, Config{Servers: s.Addr()}))
		u.sendCreate(&messages.Create{Directory: root + strings.Repeat("/ab", 300), Prefix: "n-"})
		if m := next[*messages.Failed](u); m.GetReason() != messages.Reason_NO_AUTH || !strings.Contains(m.GetDetail(), root+"/ab") {
			t.Errorf("%.300v", m)
		}
	})
}

// A create whose message, with the directory that it may have to make, both ACLs and the chroot,
// is longer than the limit is refused.
func TestCreateTooLongWithDirectory(t *testing.T) {
	s := zktest.Embedded(t)
	u := newUser(t, connected(t, Config{Servers: s.Addr()}))
	for _, length := range []int{zkconn.MaxRequest / 2, zkconn.MaxRequest/2 - 1<<10} {
		var want string
		if length == zkconn.MaxRequest/2 {
			want = fmt.Sprintf("the limit is %d", zkconn.MaxRequest)
		}
		u.sendCreate(&messages.Create{Directory: "/" + strings.Repeat("x", length), Prefix: "n-"})
		if want == "" {
			next[*messages.Created](u)
		} else if m := next[*messages.Failed](u); m.GetReason() != messages.Reason_INVALID || !strings.Contains(m.GetDetail(), want) {
			t.Errorf("%.300v", m)
		}
	}
}

// The check with the leader goes in pieces where paths are long.
func TestCheckLongPathsWithLeader(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		u, dir := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t)
		u.created(dir, "n-")
		c, before := u.bridge.state.Load().conn, u.bridge.Session().Epoch
		var nodes []string
		conn := s.Client(t)
		for i := range 60 {
			nodes = append(nodes, fmt.Sprintf("%s/%d%s", dir, i, strings.Repeat("x", 30<<10)))
			makeNode(t, conn, nodes[i], "")
		}
		if confirmed, phantoms := epoch.CheckWithLeader(zkconn.NewClient(c), nodes); len(confirmed) != 60 || len(phantoms) != 0 {
			t.Errorf("confirmed %d, phantoms %d", len(confirmed), len(phantoms))
		}
		u.created(dir, "n-")
		if u.bridge.Session().Epoch != before {
			t.Error("the session was lost")
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
