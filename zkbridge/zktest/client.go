package zktest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// clientSession is the session timeout of the connections of the helpers below, the longest that
// the servers grant.
const clientSession = time.Minute

// Client returns a plain go-zookeeper connection with a session, whose timeout is a minute if the
// server grants that. It is closed, and its goroutines have ended, when the test ends. It logs
// nothing.
func (s *Server) Client(t testing.TB) *zk.Conn {
	t.Helper()
	c, err := dial(s.addr, clientSession, s.Dial)
	if err != nil {
		t.Fatalf("zktest: connect to %s: %v", s.addr, err)
	}
	t.Cleanup(func() {
		if err := c.close(); err != nil {
			t.Errorf("zktest: close the connection to %s: %v", s.addr, err)
		}
	})
	return c.Conn
}

// Nodes returns the names of a node's children in alphabetical order, and none if the node does not
// exist. It uses no connection of the test's clients, so that it works beside a blocked client, and
// with an embedded server that is paused or stopped.
func (s *Server) Nodes(t testing.TB, path string) []string {
	t.Helper()
	if !s.Real() {
		return childrenInDump(s.embedded.Dump(), path)
	}
	c := s.inspector
	if c == nil {
		var err error
		if c, err = dial(s.addr, clientSession, s.Dial); err != nil {
			t.Fatalf("zktest: connect to %s: %v", s.addr, err)
		}
		defer c.close()
	}
	end := time.Now().Add(TimeLimit)
	limit := time.AfterFunc(TimeLimit, c.hangUp) // the library itself waits for an answer without a limit
	defer limit.Stop()
	children, _, err := c.Children(path)
	for errors.Is(err, zk.ErrConnectionClosed) && time.Now().Before(end) { // a server of an ensemble that loses its leader hangs up
		children, _, err = c.Children(path)
	}
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		t.Fatalf("zktest: children of %s on %s: %v", path, s.addr, err)
	}
	slices.Sort(children)
	return children
}

// childrenInDump returns the names of a node's children in the dump of an embedded server.
func childrenInDump(dump, path string) (children []string) {
	for line := range strings.Lines(dump) {
		node, _, _ := strings.Cut(line, " czxid=") // a name may have spaces
		name, below := strings.CutPrefix(node, strings.TrimSuffix(path, "/")+"/")
		if below && !strings.Contains(name, "/") {
			children = append(children, name)
		}
	}
	return children
}

// dialFunc connects to an address.
type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// client is a go-zookeeper connection whose end can be awaited.
type client struct {
	*zk.Conn
	events <-chan zk.Event
	dial   dialFunc

	mu     sync.Mutex
	socket net.Conn // the last one
}

// dial connects and waits for the session.
func dial(addr string, sessionTimeout time.Duration, dial dialFunc) (*client, error) {
	c := &client{dial: dial}
	session := make(chan struct{})
	ready := sync.OnceFunc(func() { close(session) })
	var err error
	c.Conn, c.events, err = zk.Connect(strings.Split(addr, ","), sessionTimeout,
		zk.WithDialer(c.dialSocket), zk.WithLogger(noLog{}), zk.WithLogInfo(false),
		zk.WithEventCallback(func(e zk.Event) {
			if e.State == zk.StateHasSession {
				ready()
			}
		}))
	if err != nil {
		return nil, err
	}
	select {
	case <-session:
		return c, nil
	case <-time.After(TimeLimit):
		return nil, errors.Join(fmt.Errorf("no session within %v", TimeLimit), c.close())
	}
}

// dialSocket has a longer time limit than go-zookeeper, after whose second all requests that wait
// for the connection fail.
func (c *client) dialSocket(network, addr string, _ time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), TimeLimit)
	defer cancel()
	conn, err := c.dial(ctx, network, addr)
	if err == nil {
		c.mu.Lock()
		c.socket = conn
		c.mu.Unlock()
	}
	return conn, err
}

func (c *client) hangUp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.socket != nil {
		c.socket.Close()
	}
}

// close closes the session and waits for the end of the connection's goroutines, which close the
// channel of events then. It closes the socket if the server, which may be frozen, does not answer.
func (c *client) close() error {
	c.Conn.Close()
	limit := time.AfterFunc(200*time.Millisecond, c.hangUp)
	defer limit.Stop()
	timeout := time.After(TimeLimit)
	for {
		select {
		case _, open := <-c.events:
			if !open {
				return nil
			}
		case <-timeout:
			return errors.New("its goroutines do not end")
		}
	}
}

type noLog struct{}

func (noLog) Printf(string, ...any) {}
