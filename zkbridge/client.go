package zkbridge

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/semaphore"
)

// client is all that the bridge uses of a ZooKeeper client. Its methods block,
// until Close at the latest, and may be called from any goroutine.
type client interface {
	// Multi sends its transaction when it is the turn of its place in the line; nil
	// stands for the last one.
	Multi(at *place, ops ...any) ([]zk.MultiResponse, error)
	// Create makes an ephemeral sequential node and gives its path.
	Create(path string, data []byte) (string, error)
	// CreateBeside makes an ephemeral node of just this path, while another is there.
	CreateBeside(path string, data []byte, other string) (string, error)
	// CreateContainer and CreatePersistent make a directory without data.
	CreateContainer(path string) error
	CreatePersistent(path string) error
	Get(path string) ([]byte, zk.Stat, error)
	// GetW watches the node, unless that fails.
	GetW(path string) ([]byte, error)
	Children(path string) (listing, error)
	// ChildrenW watches what is in the directory, unless that fails.
	ChildrenW(path string) (listing, error)
	Exists(path string) (stat zk.Stat, exists bool, err error)
	Delete(path string) error
	// above is the client of the directory above this one's root, which is a
	// chroot; nil if there is none.
	above() client
	// Close ends the session. It takes up to three seconds if no server answers.
	Close()
}

// noData is empty data. nil would be another thing to Java clients, some of which
// do not expect it.
var noData = []byte{}

// anyVersion makes an operation unconditional.
const anyVersion = -1

// listing is what is in a directory, and the czxid of the directory itself: that of
// another directory of the same path is another.
type listing struct {
	children []string
	czxid    int64
}

// zkClient is the client on go-zookeeper. What it makes has its ACL. All paths are
// below its root, and given without it.
type zkClient struct {
	conn *zk.Conn
	acl  []zk.ACL
	root chroot
	// making counts the calls that must not be under way when conn is closed.
	making *semaphore.Weighted
	line   *line
}

func (c zkClient) Multi(at *place, ops ...any) ([]zk.MultiResponse, error) {
	if at == nil {
		at = c.line.join()
	}
	at.wait()
	defer at.leave()
	results, err := c.conn.Multi(c.root.ops(ops)...)
	for i := range results {
		if r := &results[i]; r.String != "" {
			r.String = c.root.without(r.String)
		}
	}
	return results, named(err)
}

func (c zkClient) Create(path string, data []byte) (string, error) {
	made, err := c.conn.Create(c.root.with(path), data, zk.FlagEphemeralSequential, c.acl)
	return c.root.without(made), err
}

func (c zkClient) CreateBeside(path string, data []byte, other string) (string, error) {
	results, err := c.Multi(nil, &zk.CheckVersionRequest{Path: other, Version: anyVersion},
		&zk.CreateRequest{Path: path, Data: data, Acl: c.acl, Flags: zk.FlagEphemeral})
	if _, cause := culprit(results); cause != nil {
		return "", cause
	}
	return path, err
}

// CreateContainer is a call of its own: asked for a container, Conn.Create makes
// a persistent node without a word, and a multi makes one and returns an error.
//
// go-zookeeper reads its reply also when Close has made it return early, while the
// reply may be being written. See link.close.
func (c zkClient) CreateContainer(path string) error {
	if !c.making.TryAcquire(1) {
		return zk.ErrConnectionClosed
	}
	defer c.making.Release(1)
	_, err := c.conn.CreateContainer(c.root.with(path), noData, zk.FlagContainer, c.acl)
	return err
}

func (c zkClient) CreatePersistent(path string) error {
	_, err := c.conn.Create(c.root.with(path), noData, zk.FlagPersistent, c.acl)
	return err
}

func (c zkClient) Get(path string) ([]byte, zk.Stat, error) {
	data, stat, err := c.conn.Get(c.root.with(path))
	if err != nil {
		return nil, zk.Stat{}, named(err)
	}
	return data, *stat, nil
}

// GetW leaves the watch's own channel alone: events come through the callback.
func (c zkClient) GetW(path string) ([]byte, error) {
	data, _, _, err := c.conn.GetW(c.root.with(path))
	return data, named(err)
}

func (c zkClient) Children(path string) (listing, error) {
	children, stat, err := c.conn.Children(c.root.with(path))
	if err != nil {
		return listing{}, named(err)
	}
	return listing{children, stat.Czxid}, nil
}

func (c zkClient) ChildrenW(path string) (listing, error) {
	children, stat, _, err := c.conn.ChildrenW(c.root.with(path))
	if err != nil {
		return listing{}, named(err)
	}
	return listing{children, stat.Czxid}, nil
}

func (c zkClient) Exists(path string) (zk.Stat, bool, error) {
	exists, stat, err := c.conn.Exists(c.root.with(path))
	if err != nil {
		return zk.Stat{}, false, err
	}
	return *stat, exists, nil
}

func (c zkClient) Delete(path string) error { return c.conn.Delete(c.root.with(path), anyVersion) }

func (c zkClient) Close() { c.conn.Close() }

func (c zkClient) above() client {
	if c.root == "" {
		return nil
	}
	parent, _ := splitPath(string(c.root))
	c.root = chroot(strings.TrimSuffix(parent, "/"))
	return c
}

// makeDirectory makes path and what is missing above it. It reports whether path
// was made by this call.
func makeDirectory(c client, path string) (bool, error) {
	err := makeNode(c, path)
	if isMissing(err) {
		if err := makeParent(c, path); err != nil {
			return false, err
		}
		err = makeNode(c, path)
	}
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, zk.ErrNodeExists):
		return false, nil
	}
	return false, fmt.Errorf("make directory %s: %w", path, need{right: "CREATE"}.of(path).explain(err))
}

func makeParent(c client, path string) error {
	parent, _ := splitPath(path)
	if path == "/" {
		if c = c.above(); c == nil {
			return zk.ErrNoNode
		}
	}
	_, err := makeDirectory(c, parent)
	return err
}

// makeNode makes a container, which goes away when its last lock has gone, or a
// persistent node where the server will have no containers.
func makeNode(c client, path string) error {
	err := c.CreateContainer(path)
	if err == nil || errors.Is(err, zk.ErrNodeExists) || errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNoAuth) {
		return err
	}
	if code, unnamed := unnamedCode(err); !unnamed || code != codeUnimplemented {
		if o, _ := judge(err); o != refused {
			return err
		}
	}
	return c.CreatePersistent(path)
}

// zkLogger passes what go-zookeeper logs on, at debug level: the bridge itself
// tells what matters.
type zkLogger struct {
	log   *slog.Logger
	epoch uint64
}

func (l zkLogger) Printf(format string, args ...any) {
	l.log.Debug(fmt.Sprintf(format, args...), "epoch", l.epoch)
}
