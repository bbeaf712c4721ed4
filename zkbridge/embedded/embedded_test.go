package embedded_test

import (
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

type noLog struct{}

func (noLog) Printf(string, ...any) {}

// dialWithoutLimit dials without a time limit. go-zookeeper's own limit is a second, after which
// all requests that wait for the connection fail.
func dialWithoutLimit(network, address string, _ time.Duration) (net.Conn, error) {
	return net.Dial(network, address)
}

// client connects go-zookeeper's client and waits for its session.
func client(t testing.TB, s *embedded.Server) *zk.Conn {
	t.Helper()
	dial := func(network, address string, timeout time.Duration) (net.Conn, error) {
		if address == "memory:1" {
			return s.Dial(t.Context(), network, address)
		}
		return dialWithoutLimit(network, address, timeout)
	}
	addr := s.Addr()
	if addr == "" {
		addr = "memory:1"
	}
	servers := zk.WithHostProvider(&fixedHost{addr: addr})
	conn, events, err := zk.Connect([]string{addr}, 30*time.Second, zk.WithDialer(dial), zk.WithLogger(noLog{}), servers,
		zk.WithMaxConnBufferSize(1<<16))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	for e := range events {
		if e.State == zk.StateHasSession {
			return conn
		}
	}
	t.Fatal("no session")
	return nil
}

// fixedHost is a host provider that looks up no name.
type fixedHost struct{ addr string }

func (h *fixedHost) Init([]string) error  { return nil }
func (h *fixedHost) Len() int             { return 1 }
func (h *fixedHost) Next() (string, bool) { return h.addr, false }
func (h *fixedHost) Connected()           {}

var open = zk.WorldACL(zk.PermAll)

func want(t *testing.T, what string, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestBasics(t *testing.T) {
	c := client(t, embedded.Run(t))
	path, err := c.Create("/a", []byte("x"), 0, open)
	want(t, "create", fmt.Sprint(path, err), "/a<nil>")
	_, err = c.Create("/a", nil, 0, open)
	want(t, "create again", err, zk.ErrNodeExists)
	for i := range 3 {
		path, err = c.Create("/a/n-", nil, zk.FlagEphemeral|zk.FlagSequence, open)
		want(t, "sequential", fmt.Sprint(path, err), fmt.Sprintf("/a/n-%010d<nil>", i))
	}
	children, stat, err := c.Children("/a")
	want(t, "children", fmt.Sprint(len(children), stat.NumChildren, stat.Cversion, err), "3 3 3 <nil>")
	want(t, "not empty", c.Delete("/a", -1), zk.ErrNotEmpty)
	_, err = c.Create("/a/n-0000000000/x", nil, 0, open)
	want(t, "child of ephemeral", err, zk.ErrNoChildrenForEphemerals)
	want(t, "bad version", c.Delete("/a/n-0000000001", 7), zk.ErrBadVersion)
	_, err = c.Set("/none", nil, -1)
	want(t, "no node", err, zk.ErrNoNode)

	rsp, err := c.Multi(&zk.CreateRequest{Path: "/a/x-", Acl: open, Flags: 3}, &zk.SetDataRequest{Path: "/a", Version: -1})
	want(t, "multi", err, nil)
	_, own, _ := c.Get(rsp[0].String)
	want(t, "one zxid", rsp[1].Stat.Mzxid, own.Czxid)
	_, err = c.Multi(&zk.CheckVersionRequest{Path: "/a", Version: -1}, &zk.DeleteRequest{Path: "/none", Version: -1},
		&zk.CheckVersionRequest{Path: "/a", Version: -1})
	want(t, "failing multi", err, zk.ErrNoNode)

	_, _, events, err := c.ExistsW("/b")
	want(t, "exists", err, nil)
	c.Create("/b", nil, 0, open)
	want(t, "event", (<-events).Type, zk.EventNodeCreated)
	if _, err := c.CreateContainer("/c", nil, zk.FlagTTL, open); !errors.Is(err, zk.ErrInvalidFlags) {
		t.Error(err)
	}
	_, err = c.CreateContainer("/c", nil, zk.FlagContainer, open)
	want(t, "container", err, nil)
	_, err = c.Sync("/")
	want(t, "sync", err, nil)
}
